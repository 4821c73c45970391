package cli

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-isatty"

	"mcpx/executor"
	"mcpx/internal/ansi"
	"mcpx/internal/app"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
	"mcpx/registry"
)

// status is a line on stderr that tells a person what is waited for. It goes
// when the wait is over. Where nobody looks, there is none. What else goes to
// stderr is written through it, so that the two do not mix.
type status struct {
	out  io.Writer
	live bool // a person looks at it
	dumb bool // the terminal cannot clear a line: each wait is printed once

	mu   sync.Mutex
	line string // what stands there now
	held bool   // the terminal is needed for something else
}

// Times of the line.
const (
	statusDelay = 300 * time.Millisecond // shorter waits need no words
	statusEvery = 100 * time.Millisecond
)

const clearLine = "\r\x1b[K"

func newStatus(stderr io.Writer) *status {
	f, ok := stderr.(*os.File)
	live := ansi.IsTerminal(stderr)
	return &status{out: stderr, live: live, dumb: !live && ok && isatty.IsTerminal(f.Fd())}
}

// Fd lets others see that a person looks at what they write here.
func (s *status) Fd() uintptr {
	if f, ok := s.out.(*os.File); ok {
		return f.Fd()
	}
	return ^uintptr(0)
}

// Write writes above the line.
func (s *status) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.line == "" {
		return s.out.Write(b)
	}
	fmt.Fprint(s.out, clearLine)
	n, err := s.out.Write(b)
	fmt.Fprint(s.out, s.line)
	return n, err
}

// show says what is waited for, and for how long, until stop is called.
func (s *status) show(what func() string) (stop func()) {
	switch {
	case s.dumb:
		return s.tellOnce(what)
	case !s.live:
		return func() {}
	}
	begin, over := time.Now(), make(chan struct{})
	var drawing sync.WaitGroup
	drawing.Go(func() {
		ticker := time.NewTicker(statusEvery)
		defer ticker.Stop()
		for {
			select {
			case <-over:
				s.draw("")
				return
			case <-ticker.C:
			}
			waited := time.Since(begin)
			if text := what(); text != "" && waited >= statusDelay {
				s.draw(fmt.Sprintf("%s %ds", text, int(waited.Seconds())))
			}
		}
	})
	return sync.OnceFunc(func() {
		close(over)
		drawing.Wait()
	})
}

// tellOnce says what is waited for on a line of its own, unless the wait is short.
func (s *status) tellOnce(what func() string) (stop func()) {
	over := false
	time.AfterFunc(statusDelay, func() {
		text := what()
		s.mu.Lock()
		defer s.mu.Unlock()
		if text != "" && !s.held && !over {
			fmt.Fprintln(s.out, plain.Line(text))
		}
	})
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		over = true
	}
}

// hold takes the line away until it is released.
func (s *status) hold() (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put("")
	s.held = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.held = false
	}
}

// draw puts a text in the line's place.
func (s *status) draw(text string) {
	text = plain.Line(text)
	if columns := width(s.out); columns > 0 {
		text = fit(text, columns-1) // a line that wraps cannot be cleared
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(text)
}

func (s *status) put(text string) {
	if text == s.line || s.held {
		return
	}
	s.line = text
	fmt.Fprint(s.out, clearLine+text)
}

// shownStarting is how many of the servers that start are named.
const shownStarting = 3

// starting says which servers start: the one of that name, or all if it is empty or
// that of the built-in one. It is empty once none does.
func starting(a *app.App, name string) string {
	var names []string
	for _, p := range a.Profiles {
		for _, u := range p.Registry.Catalog().Upstreams {
			wanted := name == "" || name == executor.Builtin || name == u.Name
			if wanted && u.State == registry.Starting {
				names = append(names, u.Name)
			}
		}
	}
	text := strings.Join(names[:min(len(names), shownStarting)], ", ")
	switch {
	case len(names) == 0:
		return ""
	case len(names) > shownStarting:
		text = fmt.Sprintf("%s and %d more", text, len(names)-shownStarting)
	}
	return "starting " + text + "…"
}

// progress is what a tool last said of how far it is.
type progress struct {
	mu   sync.Mutex
	last string
}

// note takes the params of a progress notification.
func (p *progress) note(params []byte) {
	message, _ := rawjson.String(rawjson.Get(params, "message"))
	done, err := strconv.ParseFloat(string(rawjson.Get(params, "progress")), 64)
	total, _ := strconv.ParseFloat(string(rawjson.Get(params, "total")), 64)
	text := message
	switch {
	case err != nil:
	case total > 0:
		text = strings.TrimSpace(fmt.Sprintf("%s %s/%s (%.0f %%)", message, figure(done), figure(total), 100*done/total))
	case message == "":
		text = figure(done)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = text
}

// text is the line to show while the tool runs.
func (p *progress) text(tool string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == "" {
		return "calling " + tool + "…"
	}
	return tool + ": " + p.last
}

// figure is a number as a person writes it.
func figure(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

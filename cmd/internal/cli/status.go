package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mattn/go-isatty"

	"mcpx/executor"
	"mcpx/internal/ansi"
	"mcpx/internal/app"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
	"mcpx/registry/live"
)

// status is a line on stderr that tells a person what the command waits for. It
// disappears when the wait is over. Without a terminal there is no line. All other
// output to stderr is written through it, so that the two do not mix.
type status struct {
	out  io.Writer
	live bool // out is a terminal that can clear a line
	dumb bool // out is one that cannot: each wait is printed once

	mu   sync.Mutex
	line string // the current text
	held bool   // the terminal is needed for something else
}

// Times of the line.
const (
	statusDelay = 300 * time.Millisecond // shorter waits are not shown
	statusEvery = 100 * time.Millisecond
)

const clearLine = "\r\x1b[K"

func newStatus(stderr io.Writer) *status {
	s := &status{out: stderr, live: ansi.IsTerminal(stderr)}
	s.dumb = !s.live && isatty.IsTerminal(s.Fd())
	return s
}

// Fd returns the file descriptor of stderr, for those who look for a terminal.
func (s *status) Fd() uintptr { return descriptor(s.out) }

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

// show shows what the command waits for, and how long it has waited, until stop is
// called.
func (s *status) show(what func() string) (stop func()) {
	if !s.live && !s.dumb {
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
			switch text := what(); {
			case text == "" || waited < statusDelay:
			case s.dumb:
				s.print(text)
				<-over
				return
			default:
				s.draw(fmt.Sprintf("%s %ds", text, int(waited.Seconds())))
			}
		}
	})
	return sync.OnceFunc(func() {
		close(over)
		drawing.Wait()
	})
}

// hold removes the line until release is called.
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

// print prints a text on a line of its own.
func (s *status) print(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.held {
		fmt.Fprintln(s.out, plain.Line(text))
	}
}

// draw replaces the text of the line.
func (s *status) draw(text string) {
	text = plain.Line(text)
	if room := width(s.out); room > 0 {
		text = columns.Truncate(text, room-1, "…") // a line that wraps cannot be cleared
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(text)
}

// put writes the text of the line. s.mu must be held.
func (s *status) put(text string) {
	if text == s.line || s.held {
		return
	}
	s.line = text
	fmt.Fprint(s.out, clearLine+text)
}

// shownStarting is how many starting servers are named.
const shownStarting = 3

// starting names the servers that are starting: only the given one, or all for an empty
// name and the built-in server. It returns "" when none is starting.
func starting(a *app.App, name string) string {
	var names []string
	for _, p := range a.Profiles() {
		for _, u := range p.Registry.Catalog().Upstreams {
			wanted := name == "" || name == executor.Builtin || name == u.Name
			if wanted && u.State == live.Starting {
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

// progress is the last progress that a tool reported.
type progress struct{ last atomic.Pointer[string] }

// note reads the params of a progress notification.
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
	p.last.Store(&text)
}

// text returns the status line while the tool runs.
func (p *progress) text(tool string) string {
	if last := p.last.Load(); last != nil && *last != "" {
		return tool + ": " + *last
	}
	return "calling " + tool + "…"
}

// figure formats a number as people write it.
func figure(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

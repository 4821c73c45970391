package terminal

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mattn/go-isatty"

	"mcpx/internal/ansi"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
)

// Status is a line on stderr that tells a person what the command waits for. It
// disappears when the wait is over. Without a terminal there is no line. All other
// output to stderr is written through it, so that the two do not mix.
type Status struct {
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

// NewStatus returns the line on stderr.
func NewStatus(stderr io.Writer) *Status {
	s := &Status{out: stderr, live: ansi.IsTerminal(stderr)}
	s.dumb = !s.live && isatty.IsTerminal(s.Fd())
	return s
}

// Fd returns the file descriptor of stderr, for those who look for a terminal.
func (s *Status) Fd() uintptr { return descriptor(s.out) }

// Write writes above the line.
func (s *Status) Write(b []byte) (int, error) {
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

// Show shows what the command waits for, and how long it has waited, until stop is
// called.
func (s *Status) Show(what func() string) (stop func()) {
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

// Hold removes the line until release is called.
func (s *Status) Hold() (release func()) {
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
func (s *Status) print(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.held {
		fmt.Fprintln(s.out, plain.Line(text))
	}
}

// draw replaces the text of the line.
func (s *Status) draw(text string) {
	text = plain.Line(text)
	if room := width(s.out); room > 0 {
		text = columns.Truncate(text, room-1, "…") // a line that wraps cannot be cleared
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(text)
}

// put writes the text of the line. s.mu must be held.
func (s *Status) put(text string) {
	if text == s.line || s.held {
		return
	}
	s.line = text
	fmt.Fprint(s.out, clearLine+text)
}

// Progress is the last progress that a tool reported.
type Progress struct{ last atomic.Pointer[string] }

// Note reads the params of a progress notification.
func (p *Progress) Note(params []byte) {
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

// Text returns the status line while the tool runs.
func (p *Progress) Text(tool string) string {
	if last := p.last.Load(); last != nil && *last != "" {
		return tool + ": " + *last
	}
	return "calling " + tool + "…"
}

// figure formats a number as people write it.
func figure(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

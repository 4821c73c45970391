package cli

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/mattn/go-isatty"

	"mcpx/internal/plain"
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
	live := looksAt(stderr)
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

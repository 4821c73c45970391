package child

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"mcpx/internal/plain"
	"mcpx/internal/redact"
)

// Limits of the lines kept from a child's stderr.
const (
	stderrLines     = 10
	stderrLineBytes = 300
)

// DrainTime is how long the output of a dead child is read: a grandchild may hold
// the pipe open.
const DrainTime = 500 * time.Millisecond

// RedactBytes is how much of a line is searched for secrets before the line is cut.
// Cutting first could leave a part of a secret that no longer matches.
const RedactBytes = 64 << 10

// Stderr drains a child's stderr, so that the child never blocks on it, and keeps
// the last lines. Its methods may be called concurrently.
type Stderr struct {
	file    *os.File
	redact  func(string) string
	log     zerolog.Logger
	drained chan struct{}

	mu   sync.Mutex
	last []string
}

// NewStderr returns a Stderr that reads f, and redacts lines before it keeps and logs them.
func NewStderr(f *os.File, redact func(string) string, log zerolog.Logger) *Stderr {
	return &Stderr{file: f, redact: redact, log: log, drained: make(chan struct{})}
}

// Drain reads the file until its end, or until Stop, and closes it.
func (t *Stderr) Drain() {
	defer close(t.drained)
	defer func() { _ = t.file.Close() }()
	r := bufio.NewReader(t.file)
	var line []byte
	for late := false; ; {
		part, isPart, err := r.ReadLine()
		if len(line) < RedactBytes { // the rest of a long line is skipped
			line = append(line, part...)
		}
		if !isPart && len(line) > 0 {
			t.add(line)
			line = nil
		}
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) && !late:
			// Read what is already in the pipe. The end follows at once, unless
			// another process holds the pipe open.
			late = true
			_ = t.file.SetReadDeadline(time.Now().Add(DrainTime / 2))
		case err != nil:
			return
		}
	}
}

// add redacts and logs a line, and keeps it among the last ones.
func (t *Stderr) add(line []byte) {
	text := plain.Cut(plain.Line(t.redact(string(bytes.TrimRight(line, "\r\n")))), stderrLineBytes)
	if text == "" {
		return
	}
	t.log.Debug().Str("line", text).Msg("stderr")
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.last); text == redact.Hidden && n > 0 && t.last[n-1] == text {
		return // a key of many lines, all hidden, must not displace the other lines
	}
	if len(t.last) == stderrLines {
		t.last = slices.Delete(t.last, 0, 1)
	}
	t.last = append(t.last, text)
}

// Stop ends Drain after that time, even if another process holds the pipe open.
func (t *Stderr) Stop(after time.Duration) { _ = t.file.SetReadDeadline(time.Now().Add(after)) }

// Wait waits until everything that a dead child wrote is read.
func (t *Stderr) Wait() {
	select {
	case <-t.drained:
	case <-time.After(2 * DrainTime):
	}
}

// Lines returns the last lines, redacted.
func (t *Stderr) Lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.last)
}

package registry

import (
	"bufio"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/plain"
)

// What is kept of a child's stderr for messages.
const (
	stderrLines     = 10
	stderrLineBytes = 300
)

// redactBytes is how much of a line is redacted before it is cut to what is kept
// of it: the rest of a secret that was cut first would not be found.
const redactBytes = 64 << 10

// stderrTail drains a child's stderr, so that the child never blocks on it, and
// keeps its last lines.
type stderrTail struct {
	redact  func(string) string
	log     zerolog.Logger
	drained chan struct{}

	mu   sync.Mutex
	file *os.File
	last []string
}

func newStderrTail(redact func(string) string, log zerolog.Logger) *stderrTail {
	return &stderrTail{redact: redact, log: log, drained: make(chan struct{})}
}

// drain reads until the end, which stop can bring about.
func (t *stderrTail) drain(f *os.File) {
	defer close(t.drained)
	defer func() { _ = f.Close() }()
	t.mu.Lock()
	t.file = f
	t.mu.Unlock()
	r := bufio.NewReaderSize(f, 4096)
	for late := false; ; {
		line, err := r.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			line, err = longLine(r, line)
		}
		if len(line) > 0 {
			t.add(line)
		}
		for errors.Is(err, bufio.ErrBufferFull) { // what is too much of a long line
			_, err = r.ReadSlice('\n')
		}
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) && !late:
			// What was written by now is read still; then the end comes at once,
			// unless a stranger holds the pipe.
			late = true
			_ = f.SetReadDeadline(time.Now().Add(drainTime / 2))
		case err != nil:
			return
		}
	}
}

// longLine reads on in a line that did not fit into the reader's buffer. The error
// is bufio.ErrBufferFull if there is still more of it.
func longLine(r *bufio.Reader, start []byte) (line []byte, err error) {
	line = slices.Clone(start)
	for err = bufio.ErrBufferFull; errors.Is(err, bufio.ErrBufferFull) && len(line) < redactBytes; {
		var more []byte
		more, err = r.ReadSlice('\n')
		line = append(line, more...)
	}
	return line, err
}

func (t *stderrTail) add(line []byte) {
	text := plain.Cut(plain.Line(t.redact(trimEnd(line))), stderrLineBytes)
	if text == "" {
		return
	}
	t.keep(text)
	t.log.Debug().Str("line", text).Msg("stderr")
}

func (t *stderrTail) keep(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.last); text == config.Hidden && n > 0 && t.last[n-1] == text {
		return // the lines of a key must not push out what is said about it
	}
	if len(t.last) == stderrLines {
		t.last = slices.Delete(t.last, 0, 1)
	}
	t.last = append(t.last, text)
}

func trimEnd(line []byte) string {
	for len(line) > 0 && (line[len(line)-1] == '\n' || line[len(line)-1] == '\r') {
		line = line[:len(line)-1]
	}
	return string(line)
}

// stop ends drain after that time, though another process may hold the pipe.
func (t *stderrTail) stop(after time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file != nil {
		_ = t.file.SetReadDeadline(time.Now().Add(after))
	}
}

// wait waits until all that a dead child wrote is read.
func (t *stderrTail) wait() {
	select {
	case <-t.drained:
	case <-time.After(2 * drainTime):
	}
}

// lines are the last lines.
func (t *stderrTail) lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.last)
}

// Package logging makes mcpx's own log.
package logging

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/rs/zerolog"

	"mcpx/internal/ansi"
)

// Options say how mcpx logs.
type Options struct {
	Level  string // debug, info, warn, error
	Format string // json, or for people
	File   string // empty: stderr
}

// Log is mcpx's own log. Its methods may be called concurrently. None but Close waits
// for whoever reads the log.
type Log struct {
	zerolog.Logger

	least level
	queue *queue
	file  *File // nil for stderr
}

// New returns a log that writes until it is closed.
func New(o Options, stderr io.Writer) (*Log, error) {
	l := &Log{}
	out := stderr
	if o.File != "" {
		f, err := OpenFile(o.File)
		if err != nil {
			return nil, fmt.Errorf("the log file cannot be opened: %w; its folder must exist, and mcpx must be allowed to write there", err)
		}
		out, l.file = f, f
	}
	format := formatJSON
	if o.Format != "json" {
		format = console{o.File == "" && ansi.PaintFor(stderr)}.format
	}
	l.least.set(o.Level)
	l.queue = newQueue(out, format)
	l.Logger = zerolog.New(l.queue).With().Timestamp().Logger().Sample(&l.least)
	return l, nil
}

// SetLevel changes the level to debug, info, warn or error; another word changes
// nothing.
func (l *Log) SetLevel(name string) {
	l.Flush()
	l.least.set(name)
}

// Later runs f soon, in the goroutine of the log: f logs what a caller has no time to
// log. Functions run one at a time, in order.
func (l *Log) Later(f func()) { l.queue.later(f) }

// Flush runs the functions that Later has queued. It must not be called by one of them.
func (l *Log) Flush() { l.queue.runLater() }

// Reopen opens the log file again, which another program may have renamed.
func (l *Log) Reopen() error { return l.file.Reopen() }

// Close writes the last lines, if somebody reads them, and closes the file. It is safe
// to call it twice.
func (l *Log) Close() error {
	if !l.queue.close() {
		return nil
	}
	return l.file.Close()
}

// Panic adds a recovered panic and the goroutine's stack to an event, and returns the
// event.
func Panic(event *zerolog.Event, p any) *zerolog.Event {
	return event.Str("panic", fmt.Sprint(p)).Bytes("stack", debug.Stack())
}

// level is the least level that is logged. It implements zerolog.Sampler.
type level struct{ least atomic.Int32 }

func (l *level) set(name string) {
	if level, err := zerolog.ParseLevel(name); err == nil {
		l.least.Store(int32(level))
	}
}

// Sample implements zerolog.Sampler.
func (l *level) Sample(level zerolog.Level) bool { return level >= zerolog.Level(l.least.Load()) }

// File is a file that lines are appended to. It can be opened again after another program
// has renamed it. Its methods may be called concurrently. Reopen and Close accept nil.
type File struct {
	path string

	mu   sync.Mutex
	file *os.File
}

// OpenFile opens a file, or creates it, readable by its owner alone.
func OpenFile(path string) (*File, error) {
	f := &File{path: path}
	return f, f.Reopen()
}

// Reopen opens the file at the same path again. If that fails, the old file stays open.
func (f *File) Reopen() error {
	if f == nil {
		return nil
	}
	next, err := os.OpenFile(f.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.file
	f.file = next
	if old != nil {
		_ = old.Close()
	}
	return nil
}

// Write implements io.Writer.
func (f *File) Write(lines []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.file.Write(lines)
}

// Close closes the file. It is safe to call twice.
func (f *File) Close() error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.file.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

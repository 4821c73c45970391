// Package logging makes mcpx's own log.
package logging

import (
	"fmt"
	"io"
	"runtime/debug"
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
func (l *Log) Reopen() error {
	if l.file == nil {
		return nil
	}
	return l.file.Reopen()
}

// Close writes the last lines, if somebody reads them, and closes the file. It is safe
// to call it twice.
func (l *Log) Close() error {
	if !l.queue.close() || l.file == nil {
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

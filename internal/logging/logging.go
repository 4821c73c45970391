// Package logging makes mcpx's own log.
package logging

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/mattn/go-isatty"
	"github.com/rs/zerolog"
)

// Level is the least level that is logged. It can change while mcpx runs.
type Level struct {
	least atomic.Int32
}

// Set changes the level to debug, info, warn or error; another word changes
// nothing.
func (l *Level) Set(name string) {
	if level, err := zerolog.ParseLevel(name); err == nil {
		l.least.Store(int32(level))
	}
}

// Sample implements zerolog.Sampler.
func (l *Level) Sample(level zerolog.Level) bool { return level >= zerolog.Level(l.least.Load()) }

// Options say how mcpx logs.
type Options struct {
	Level  string // debug, info, warn, error
	Format string // json, or for people
	File   string // empty: stderr
}

// New returns a logger, its level, and a function that closes its file.
func New(c Options, stderr io.Writer) (zerolog.Logger, *Level, func() error, error) {
	level := &Level{}
	level.Set(c.Level)
	format := asIs
	if c.Format != "json" {
		format = console{colours: c.File == "" && colours(stderr)}.format
	}
	var out io.Writer
	var closeLog func() error
	if c.File == "" {
		q := newQueue(stderr, format)
		out, closeLog = q, q.Close
	} else {
		f, err := os.OpenFile(c.File, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return zerolog.Nop(), nil, nil, fmt.Errorf("the log file cannot be opened: %w; its folder must exist, and mcpx must be allowed to write there", err)
		}
		q := newQueue(f, format)
		out, closeLog = q, func() error { return errors.Join(q.Close(), f.Close()) }
	}
	return zerolog.New(out).With().Timestamp().Logger().Sample(level), level, closeLog, nil
}

// colours reports whether a person looks at the output and wants them.
func colours(w io.Writer) bool {
	f, ok := w.(interface{ Fd() uintptr })
	return ok && isatty.IsTerminal(f.Fd()) && os.Getenv("NO_COLOR") == ""
}

// Package terminal reads from a person and prints for one: the streams of a command, tables, a
// server's answers, and the line that says what a command waits for.
package terminal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/mattn/go-isatty"
	"golang.org/x/term"

	"mcpx/internal/ansi"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
)

// Terminal has the streams of a command, and the context that Ctrl-C ends.
type Terminal struct {
	Ctx    context.Context
	Stdin  io.Reader
	Stdout *Output
	Stderr io.Writer
}

// ErrInterrupted is returned by a command that Ctrl-C ended.
var ErrInterrupted = errors.New("interrupted; what was under way was canceled")

// Output is stdout. It keeps the first error of writing, which is reported when the command
// ends. So commands need not look at the error of every line that they print.
type Output struct {
	File io.Writer
	err  error
}

// Err returns the first error of writing.
func (o *Output) Err() error { return o.err }

// Write implements io.Writer.
func (o *Output) Write(b []byte) (n int, err error) {
	if o.err == nil {
		n, o.err = o.File.Write(b)
	}
	return n, o.err
}

// Fd returns the file descriptor, for those who look for a terminal.
func (o *Output) Fd() uintptr { return descriptor(o.File) }

// descriptor returns the file descriptor of a stream. If the stream is not a file, it returns
// one that does not exist.
func descriptor(stream any) uintptr {
	if f, ok := stream.(interface{ Fd() uintptr }); ok {
		return f.Fd()
	}
	return ^uintptr(0)
}

// Person reports whether a person reads stdout.
func (t *Terminal) Person() bool { return ansi.IsTerminal(t.Stdout) }

// width returns the number of columns of a terminal, 0 for anything else.
func width(stream any) int {
	columns, _, _ := term.GetSize(int(descriptor(stream)))
	return max(columns, 0) // -1 if the stream is not a terminal
}

// Paint returns the styles for stdout.
func (t *Terminal) Paint() ansi.Paint { return ansi.PaintFor(t.Stdout) }

// Keyboard returns the terminal that a person types on, nil if stdin is something else.
func (t *Terminal) Keyboard() *os.File {
	if f, ok := t.Stdin.(*os.File); ok && isatty.IsTerminal(f.Fd()) {
		return f
	}
	return nil
}

// Printf prints to stdout. It returns the first error of all that was printed.
func (t *Terminal) Printf(format string, args ...any) error {
	_, err := fmt.Fprintf(t.Stdout, format, args...)
	return err
}

// WriteJSON prints JSON over several lines. Values keep their bytes.
func (t *Terminal) WriteJSON(raw []byte) error {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		b.Write(raw)
	}
	text := bytes.TrimRight(b.Bytes(), "\n")
	if t.Person() {
		text = plain.JSON(text)
	}
	return t.Printf("%s\n", text)
}

// PrintJSON prints JSON of an upstream: indented on a terminal, otherwise byte for byte.
func (t *Terminal) PrintJSON(raw []byte) error {
	if t.Person() {
		return t.WriteJSON(raw)
	}
	return t.Printf("%s\n", raw)
}

// Encode prints a Go value as JSON.
func (t *Terminal) Encode(value any) error { return t.WriteJSON(rawjson.Encode(value)) }

// printText prints text of an upstream. It cannot control a terminal.
func (t *Terminal) printText(text string) {
	if t.Person() {
		text = plain.Text(text)
	}
	fmt.Fprintln(t.Stdout, text)
}

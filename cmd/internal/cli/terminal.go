package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/mattn/go-isatty"
	"golang.org/x/term"

	"mcpx/config"
	"mcpx/internal/ansi"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
)

// terminal is the surroundings of a command: its streams, arguments and context.
type terminal struct {
	ctx     context.Context
	release func() // makes the next signal end the process at once
	stdin   io.Reader
	stdout  io.Writer
	stderr  io.Writer
	front   Front // the default
	args    []string
	command []string // of mcpx add, after "--"

	adhoc *config.Config // of a server given by url or command; nil if it is in a config
}

// person reports whether a person reads stdout.
func (t *terminal) person() bool { return ansi.IsTerminal(t.stdout) }

// width returns the number of columns of a terminal, 0 for anything else.
func width(stream any) int {
	f, ok := stream.(*os.File)
	if !ok {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// paint returns the styles for stdout.
func (t *terminal) paint() ansi.Paint { return ansi.PaintFor(t.stdout) }

// keyboard returns the terminal that a person types on, nil if stdin is something else.
func (t *terminal) keyboard() *os.File {
	if f, ok := t.stdin.(*os.File); ok && isatty.IsTerminal(f.Fd()) {
		return f
	}
	return nil
}

// read reads all of stdin, unless the command is interrupted first.
func (t *terminal) read() ([]byte, error) {
	return await(t.ctx, func() ([]byte, error) { return io.ReadAll(t.stdin) })
}

// readLine reads a line from stdin, unless the command is interrupted first.
func (t *terminal) readLine() (string, error) {
	return await(t.ctx, func() (string, error) { return bufio.NewReader(t.stdin).ReadString('\n') })
}

// await returns what read returns, or errInterrupted if ctx ends first. A read of a
// terminal cannot be canceled, so it goes on then.
func await[T any](ctx context.Context, read func() (T, error)) (value T, err error) {
	done := make(chan struct{})
	var got T
	var failed error
	go func() {
		defer close(done)
		got, failed = read()
	}()
	select {
	case <-done:
		return got, failed
	case <-ctx.Done():
		return value, errInterrupted
	}
}

// printf prints to stdout.
func (t *terminal) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(t.stdout, format, args...)
	return err
}

// writeJSON prints JSON over several lines. Values keep their bytes.
func (t *terminal) writeJSON(raw []byte) error {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		b.Write(raw)
	}
	text := bytes.TrimRight(b.Bytes(), "\n")
	if t.person() {
		text = plain.JSON(text)
	}
	return t.printf("%s\n", text)
}

// printJSON prints JSON of an upstream: indented on a terminal, otherwise byte for byte.
func (t *terminal) printJSON(raw []byte) error {
	if t.person() {
		return t.writeJSON(raw)
	}
	return t.printf("%s\n", raw)
}

// encode prints a Go value as JSON.
func (t *terminal) encode(value any) error { return t.writeJSON(rawjson.Encode(value)) }

// jsonArray returns an array of the JSON that raw returns for each element of a list.
func jsonArray[T any](list []T, raw func(T) []byte) []byte {
	b := []byte("[")
	for i, element := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, raw(element)...)
	}
	return append(b, ']')
}

// printText prints text of an upstream. It cannot control a terminal.
func (t *terminal) printText(text string) error {
	if t.person() {
		text = plain.Text(text)
	}
	return t.printf("%s\n", text)
}

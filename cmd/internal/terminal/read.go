package terminal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Read reads all of stdin, unless the command is interrupted first.
func (t *Terminal) Read() ([]byte, error) {
	return await(t.Ctx, func() ([]byte, error) { return io.ReadAll(t.Stdin) })
}

// ReadLine reads a line from stdin, unless the command is interrupted first.
func (t *Terminal) ReadLine() (string, error) {
	return await(t.Ctx, func() (string, error) { return bufio.NewReader(t.Stdin).ReadString('\n') })
}

// Accepts asks a question on a terminal. Elsewhere the answer is yes.
func (t *Terminal) Accepts(question string) (bool, error) {
	if t.Keyboard() == nil || !t.Person() {
		return true, nil
	}
	fmt.Fprintf(t.Stderr, "%s [y/N] ", question)
	line, err := t.ReadLine()
	if err != nil { // after Ctrl-C and Ctrl-D the cursor is still behind the question
		fmt.Fprintln(t.Stderr)
	}
	if errors.Is(err, ErrInterrupted) {
		return false, err
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes", nil
}

// AskHidden asks a question and reads a line from the keyboard. The terminal shows nothing
// from before the question until the end.
func (t *Terminal) AskHidden(keyboard *os.File, question string) (string, error) {
	state, err := term.MakeRaw(int(keyboard.Fd()))
	if err != nil {
		return "", err
	}
	defer func() {
		_ = term.Restore(int(keyboard.Fd()), state)
		fmt.Fprintln(t.Stderr)
	}()
	keys := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{keyboard, t.Stderr}, "")
	line, err := await(t.Ctx, func() (string, error) { return keys.ReadPassword(question) })
	if errors.Is(err, io.EOF) { // Ctrl-C and Ctrl-D
		return "", ErrInterrupted
	}
	return line, err
}

// Lines reads what a person types, line by line. It must not be used concurrently.
type Lines struct {
	in   *bufio.Reader
	next <-chan reading[string] // the line that is being read; nil if none is
}

// NewLines returns the lines of a stream.
func NewLines(in io.Reader) *Lines { return &Lines{in: bufio.NewReader(in)} }

// Next returns the next line, unless ctx ends first. A read cannot be canceled, so that its
// line goes to the next call.
func (l *Lines) Next(ctx context.Context) (string, error) {
	if l.next == nil {
		l.next = start(func() (string, error) { return l.in.ReadString('\n') })
	}
	select {
	case r := <-l.next:
		l.next = nil
		return strings.TrimSpace(r.value), r.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// Forget drops a line that was typed before the question.
func (l *Lines) Forget() {
	select {
	case <-l.next:
		l.next = nil
	default:
	}
}

// await returns what read returns, or ErrInterrupted if ctx ends first.
func await[T any](ctx context.Context, read func() (T, error)) (value T, err error) {
	select {
	case r := <-start(read):
		return r.value, r.err
	case <-ctx.Done():
		return value, ErrInterrupted
	}
}

// start reads in the background. A read of a terminal cannot be canceled.
func start[T any](read func() (T, error)) <-chan reading[T] {
	done := make(chan reading[T], 1)
	go func() {
		value, err := read()
		done <- reading[T]{value, err}
	}()
	return done
}

// reading is what a read returned.
type reading[T any] struct {
	value T
	err   error
}

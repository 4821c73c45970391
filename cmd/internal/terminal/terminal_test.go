package terminal

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"mcpx/internal/ansi"
)

// Whoever waits for the end of stdin can still be interrupted.
func TestReadIsInterrupted(t *testing.T) {
	in, out := io.Pipe()
	defer func() { _ = out.Close() }()
	ctx, interrupt := context.WithCancel(t.Context())
	person := &Terminal{Ctx: ctx, Stdin: in}
	go func() {
		_, _ = out.Write([]byte("{")) // returns once it is read
		interrupt()
	}()
	if data, err := person.Read(); !errors.Is(err, ErrInterrupted) {
		t.Errorf("got %q, %v", data, err)
	}
}

func TestRead(t *testing.T) {
	person := &Terminal{Ctx: t.Context(), Stdin: strings.NewReader("{}")}
	if data, err := person.Read(); string(data) != "{}" || err != nil {
		t.Errorf("got %q, %v", data, err)
	}
}

// What nobody looks at has no colors.
func TestNobodyLooks(t *testing.T) {
	var b strings.Builder
	nobody := &Terminal{Stdout: &Output{File: &b}}
	if nobody.Person() || nobody.Paint().Text(ansi.Red, "x") != "x" || width(&b) != 0 {
		t.Error("a builder is taken for a terminal")
	}
	if got := ansi.Paint(true).Text(ansi.Red, "x"); got != "\x1b[31mx\x1b[0m" {
		t.Errorf("got %q", got)
	}
}

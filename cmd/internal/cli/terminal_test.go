package cli

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
	person := &terminal{ctx: ctx, stdin: in}
	go func() {
		_, _ = out.Write([]byte("{")) // returns once it is read
		interrupt()
	}()
	if data, err := person.read(); !errors.Is(err, errInterrupted) {
		t.Errorf("got %q, %v", data, err)
	}
}

func TestRead(t *testing.T) {
	person := &terminal{ctx: t.Context(), stdin: strings.NewReader("{}")}
	if data, err := person.read(); string(data) != "{}" || err != nil {
		t.Errorf("got %q, %v", data, err)
	}
}

// What nobody looks at has no colors.
func TestNobodyLooks(t *testing.T) {
	var b strings.Builder
	nobody := &terminal{stdout: &output{file: &b}}
	if nobody.person() || nobody.paint().Text(ansi.Red, "x") != "x" || width(&b) != 0 {
		t.Error("a builder is taken for a terminal")
	}
	if got := ansi.Paint(true).Text(ansi.Red, "x"); got != "\x1b[31mx\x1b[0m" {
		t.Errorf("got %q", got)
	}
}

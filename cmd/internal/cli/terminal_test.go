package cli

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"mcpx/internal/ansi"
	"mcpx/internal/plain"
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

// A cell stays on its line and in its column, whatever it holds.
func TestTable(t *testing.T) {
	list := (&terminal{stdout: &output{}}).table("name", "n", "about")
	list.add(cell{text: "日本"}, cell{text: "7", right: true}, cell{text: "two\nlines\x1b[2J"})
	list.add(cell{text: "longer"}, cell{text: "1,000", right: true}, cell{})
	list.add(cell{text: "👩‍👩‍👧 e\u0301"}, cell{text: "2", right: true}, cell{text: "a family and an accent"})
	var b strings.Builder
	list.writeTo(&b)
	want := "name    n      about\n" +
		"日本        7  two\\nlines\\u001b[2J\n" +
		"longer  1,000\n" +
		"👩‍👩‍👧 e\u0301        2  a family and an accent\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestTableFitsItsWidth(t *testing.T) {
	list := table{paint: true, width: 30}
	list.add(cell{text: "a", style: ansi.Green}, cell{text: strings.Repeat("x", 100)})
	var b strings.Builder
	list.writeTo(&b)
	if want := "\x1b[32ma\x1b[0m  " + strings.Repeat("x", 26) + "…\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

// An ellipsis stays whole, and outside of styles, wherever a line is cut.
func TestTableIsCutBetweenStyles(t *testing.T) {
	for width, want := range map[int]string{
		5: "\x1b[36mab\x1b[0m  \x1b[31mc\x1b[0m\n",
		4: "\x1b[36mab\x1b[0m …\n",
		3: "\x1b[36mab\x1b[0m…\n",
		2: "\x1b[36ma\x1b[0m…\n",
		1: "…\n",
	} {
		list := table{paint: true, width: width}
		list.add(cell{text: "ab", style: ansi.Cyan}, cell{text: "c", style: ansi.Red})
		var b strings.Builder
		list.writeTo(&b)
		if b.String() != want {
			t.Errorf("%d columns: got %q, want %q", width, b.String(), want)
		}
	}
}

// A table whose first columns are too wide already is cut there, and says so.
func TestTableIsCutInAnyColumn(t *testing.T) {
	for width, want := range map[int]string{
		11: "name  12  a\nb      3  c\n",
		10: "name  12 …\nb      3 …\n",
		8:  "name  1…\nb      …\n",
		4:  "nam…\nb  …\n",
	} {
		list := table{width: width}
		list.add(cell{text: "name"}, cell{text: "12", right: true}, cell{text: "a"})
		list.add(cell{text: "b"}, cell{text: "3", right: true}, cell{text: "c"})
		var b strings.Builder
		list.writeTo(&b)
		if b.String() != want {
			t.Errorf("%d columns: got\n%s\nwant\n%s", width, b.String(), want)
		}
	}
}

func TestProgressText(t *testing.T) {
	for params, want := range map[string]string{
		`{"progress":1}`:                                "tool: 1",
		`{"progress":0.5,"total":2}`:                    "tool: 0.5/2 (25 %)",
		`{"progress":3,"total":4,"message":"indexing"}`: "tool: indexing 3/4 (75 %)",
		`{"progress":3,"message":"indexing"}`:           "tool: indexing",
		`{"message":5}`:                                 "calling tool…",
	} {
		var p progress
		p.note([]byte(params))
		if got := p.text("tool"); got != want {
			t.Errorf("%s: got %q, want %q", params, got, want)
		}
	}
}

func TestQuoteShell(t *testing.T) {
	for word, want := range map[string]string{
		"":           "''",
		"plain-1.2":  "plain-1.2",
		"two words":  "'two words'",
		"it's":       `'it'\''s'`,
		"$(rm -rf)":  "'$(rm -rf)'",
		"a://b?c=d":  "'a://b?c=d'",
		"./a/b:c=@d": "./a/b:c=@d",
	} {
		if got := plain.Shell(word); got != want {
			t.Errorf("%q: got %s, want %s", word, got, want)
		}
	}
}

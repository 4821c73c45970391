package terminal

import (
	"strings"
	"testing"

	"mcpx/internal/ansi"
)

// A cell stays on its line and in its column, whatever it holds.
func TestTable(t *testing.T) {
	list := (&Terminal{Stdout: &Output{}}).Table("name", "n", "about")
	list.Add(Cell{Text: "日本"}, Cell{Text: "7", Right: true}, Cell{Text: "two\nlines\x1b[2J"})
	list.Add(Cell{Text: "longer"}, Cell{Text: "1,000", Right: true}, Cell{})
	list.Add(Cell{Text: "👩‍👩‍👧 e\u0301"}, Cell{Text: "2", Right: true}, Cell{Text: "a family and an accent"})
	var b strings.Builder
	list.Print(&b)
	want := "name    n      about\n" +
		"日本        7  two\\nlines\\u001b[2J\n" +
		"longer  1,000\n" +
		"👩‍👩‍👧 e\u0301        2  a family and an accent\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestTableFitsItsWidth(t *testing.T) {
	list := Table{paint: true, width: 30}
	list.Add(Cell{Text: "a", Style: ansi.Green}, Cell{Text: strings.Repeat("x", 100)})
	var b strings.Builder
	list.Print(&b)
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
		list := Table{paint: true, width: width}
		list.Add(Cell{Text: "ab", Style: ansi.Cyan}, Cell{Text: "c", Style: ansi.Red})
		var b strings.Builder
		list.Print(&b)
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
		list := Table{width: width}
		list.Add(Cell{Text: "name"}, Cell{Text: "12", Right: true}, Cell{Text: "a"})
		list.Add(Cell{Text: "b"}, Cell{Text: "3", Right: true}, Cell{Text: "c"})
		var b strings.Builder
		list.Print(&b)
		if b.String() != want {
			t.Errorf("%d columns: got\n%s\nwant\n%s", width, b.String(), want)
		}
	}
}

package terminal

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"

	"mcpx/internal/ansi"
	"mcpx/internal/plain"
)

// Table is rows of aligned columns. Foreign text cannot break its lines.
type Table struct {
	Rows [][]Cell // the first one has the titles

	paint ansi.Paint
	width int   // of a line; 0: unlimited
	cut   []int // the rows that Print had to cut
}

// None is shown in place of a missing value.
const None = "–"

// Cell is a text and its style.
type Cell struct {
	Text  string
	Style ansi.Style
	Right bool // aligned to the right, as numbers are
}

// Table returns an empty table for stdout, with a row of titles.
func (t *Terminal) Table(titles ...string) *Table {
	list := &Table{paint: t.Paint(), width: width(t.Stdout)}
	cells := make([]Cell, len(titles))
	for i, title := range titles {
		cells[i] = Cell{Text: title, Style: ansi.Bold}
	}
	list.Add(cells...)
	return list
}

// Add adds a row.
func (t *Table) Add(cells ...Cell) {
	for i := range cells {
		cells[i].Text = plain.Line(cells[i].Text)
	}
	t.Rows = append(t.Rows, cells)
}

// DropFirst removes the first column.
func (t *Table) DropFirst() {
	for i := range t.Rows {
		t.Rows[i] = t.Rows[i][1:]
	}
}

// gap separates the columns.
const gap = "  "

// columns counts the columns that texts take on a terminal, in every locale the same.
var columns = &runewidth.Condition{}

// Print prints the table. Lines that are too wide are cut.
func (t *Table) Print(w io.Writer) {
	widths := t.widths()
	var b strings.Builder
	for i, row := range t.Rows {
		line, starts := layOut(row, widths)
		end := "\n"
		if t.width > 0 && columns.StringWidth(line) > t.width {
			line, end = columns.Truncate(line, t.width-1, ""), "…\n"
			t.cut = append(t.cut, i)
		}
		done := 0
		for j, c := range row {
			from, to := min(starts[j], len(line)), min(starts[j]+len(c.Text), len(line))
			b.WriteString(line[done:from] + t.paint.Text(c.Style, line[from:to]))
			done = to
		}
		b.WriteString(end)
	}
	fmt.Fprint(w, b.String())
}

// IsCut reports whether Print had to cut a row.
func (t *Table) IsCut(row int) bool { return slices.Contains(t.cut, row) }

// layOut returns a row as a line without space at its end, and where its cells start.
func layOut(row []Cell, widths []int) (line string, starts []int) {
	for i, c := range row {
		pad := strings.Repeat(" ", widths[i]-columns.StringWidth(c.Text))
		if c.Right {
			line, pad = line+pad, ""
		}
		starts = append(starts, len(line))
		line += c.Text + pad + gap
	}
	return strings.TrimRight(line, " "), starts
}

// Room returns the width that remains after the first columns.
func (t *Table) Room(first int) int {
	if t.width == 0 {
		return math.MaxInt
	}
	left := t.width
	for _, n := range t.widths()[:first] {
		left -= n + len(gap)
	}
	return max(left, 0)
}

func (t *Table) widths() []int {
	var widths []int
	for _, row := range t.Rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], columns.StringWidth(c.Text))
		}
	}
	return widths
}

package cli

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/mattn/go-runewidth"

	"mcpx/internal/ansi"
	"mcpx/internal/plain"
)

// table is rows of aligned columns. Foreign text cannot break its lines.
type table struct {
	paint ansi.Paint
	width int // of a line; 0: unlimited
	rows  [][]cell
	cut   []int // the rows that writeTo had to cut
}

// none is shown in place of a missing value.
const none = "–"

// cell is a text and its style.
type cell struct {
	text  string
	style ansi.Style
	right bool // aligned to the right, as numbers are
}

// table returns an empty table for stdout, with a row of titles.
func (t *terminal) table(titles ...string) *table {
	list := &table{paint: t.paint(), width: width(t.stdout)}
	cells := make([]cell, len(titles))
	for i, title := range titles {
		cells[i] = cell{text: title, style: ansi.Bold}
	}
	list.add(cells...)
	return list
}

// add adds a row.
func (t *table) add(cells ...cell) {
	for i := range cells {
		cells[i].text = plain.Line(cells[i].text)
	}
	t.rows = append(t.rows, cells)
}

// dropFirst removes the first column.
func (t *table) dropFirst() {
	for i := range t.rows {
		t.rows[i] = t.rows[i][1:]
	}
}

// gap separates the columns.
const gap = "  "

// columns counts the columns that texts take on a terminal, in every locale the same.
var columns = &runewidth.Condition{}

// writeTo writes the table. Lines that are too wide are cut.
func (t *table) writeTo(w io.Writer) {
	widths := t.widths()
	var b strings.Builder
	for i, row := range t.rows {
		line, starts := layOut(row, widths)
		end := "\n"
		if t.width > 0 && columns.StringWidth(line) > t.width {
			line, end = columns.Truncate(line, t.width-1, ""), "…\n"
			t.cut = append(t.cut, i)
		}
		done := 0
		for j, c := range row {
			from, to := min(starts[j], len(line)), min(starts[j]+len(c.text), len(line))
			b.WriteString(line[done:from] + t.paint.Text(c.style, line[from:to]))
			done = to
		}
		b.WriteString(end)
	}
	fmt.Fprint(w, b.String())
}

// layOut returns a row as a line without space at its end, and where its cells start.
func layOut(row []cell, widths []int) (line string, starts []int) {
	for i, c := range row {
		pad := strings.Repeat(" ", widths[i]-columns.StringWidth(c.text))
		if c.right {
			line, pad = line+pad, ""
		}
		starts = append(starts, len(line))
		line += c.text + pad + gap
	}
	return strings.TrimRight(line, " "), starts
}

// room returns the width that remains after the first columns.
func (t *table) room(first int) int {
	if t.width == 0 {
		return math.MaxInt
	}
	left := t.width
	for _, n := range t.widths()[:first] {
		left -= n + len(gap)
	}
	return max(left, 0)
}

func (t *table) widths() []int {
	var widths []int
	for _, row := range t.rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], columns.StringWidth(c.text))
		}
	}
	return widths
}

package cli

import (
	"io"
	"math"
	"strings"
	"unicode"

	wide "golang.org/x/text/width"

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

// writeTo writes the table. Lines that are too wide are cut.
func (t *table) writeTo(w io.Writer) error {
	widths := t.widths()
	var b strings.Builder
	for i, row := range t.rows {
		used, parts := 0, line(row, widths)
		all := 0
		for _, part := range parts {
			all += cells(part.text)
		}
		isCut := t.width > 0 && all > t.width
		if isCut {
			t.cut = append(t.cut, i)
		}
		for _, part := range parts {
			room := t.width - used
			if used += cells(part.text); isCut && used >= t.width {
				b.WriteString(t.paint.Text(part.style, fit(part.text+" ", room))) // with an ellipsis, even if only the rest is cut
				break
			}
			b.WriteString(t.paint.Text(part.style, part.text))
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// line returns a row with space between its cells, and none at its end.
func line(row []cell, widths []int) (parts []cell) {
	space := 0
	for i, c := range row {
		pad := widths[i] - cells(c.text)
		if c.right {
			space, pad = space+pad, 0
		}
		if c.text != "" {
			parts = append(parts, cell{text: strings.Repeat(" ", space)}, c)
			space = 0
		}
		space += pad + len(gap)
	}
	return parts
}

// room returns the width that remains after the first columns.
func (t *table) room(columns int) int {
	if t.width == 0 {
		return math.MaxInt
	}
	left := t.width
	for _, n := range t.widths()[:columns] {
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
			widths[i] = max(widths[i], cells(c.text))
		}
	}
	return widths
}

// fit cuts a text to a number of columns.
func fit(text string, columns int) string {
	if cells(text) <= columns {
		return text
	}
	used := 0
	for i, r := range text {
		if used += cellsOf(r); used > columns-1 {
			return text[:i] + "…"
		}
	}
	return text
}

// cells returns the number of columns that a text takes on a terminal.
func cells(text string) int {
	n := 0
	for _, r := range text {
		n += cellsOf(r)
	}
	return n
}

func cellsOf(r rune) int {
	if r < 0x300 { // none of these is wide or combining
		return 1
	}
	switch k := wide.LookupRune(r).Kind(); {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case k == wide.EastAsianWide, k == wide.EastAsianFullwidth:
		return 2
	}
	return 1
}

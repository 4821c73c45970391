package cli

import (
	"io"
	"strings"
	"unicode"

	wide "golang.org/x/text/width"

	"mcpx/internal/plain"
)

// table is rows of aligned columns. What is in its cells may come from anybody:
// it stays on its line.
type table struct {
	colours colours
	width   int // what a line may have; 0: anything
	rows    [][]cell
}

// cell is a text and how it looks.
type cell struct {
	text   string
	colour colour
	right  bool // stands at the right of its column, as numbers do
}

func (t *table) add(cells ...cell) {
	for i := range cells {
		cells[i].text = plain.Line(cells[i].text)
	}
	t.rows = append(t.rows, cells)
}

// head adds a row of titles.
func (t *table) head(titles ...string) {
	cells := make([]cell, len(titles))
	for i, title := range titles {
		cells[i] = cell{text: title, colour: bold}
	}
	t.add(cells...)
}

// gap parts the columns.
const gap = "  "

// writeTo writes the table. The last column is cut where a line would be too wide.
func (t *table) writeTo(w io.Writer) error {
	widths := t.widths()
	var b strings.Builder
	for _, row := range t.rows {
		var line strings.Builder
		used := 0
		for i, c := range row {
			last := i == len(row)-1
			if last && t.width > 0 {
				c.text = fit(c.text, max(t.width-used, minCell))
			}
			pad := strings.Repeat(" ", max(widths[i]-cells(c.text), 0))
			switch painted := t.colours.paint(c.colour, c.text); {
			case c.right:
				line.WriteString(pad + painted)
			case last:
				line.WriteString(painted)
			default:
				line.WriteString(painted + pad)
			}
			if !last {
				line.WriteString(gap)
			}
			used += widths[i] + len(gap)
		}
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// minCell is what the last column has at least, though the line gets too wide.
const minCell = 20

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

// fit cuts a text to that many columns.
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

// cells is how many columns a text takes on a terminal.
func cells(text string) int {
	n := 0
	for _, r := range text {
		n += cellsOf(r)
	}
	return n
}

func cellsOf(r rune) int {
	if r < 0x300 { // nothing below is wide, or joins another
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

package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"github.com/mattn/go-isatty"
	"github.com/mattn/go-runewidth"
	"golang.org/x/term"

	"mcpx/config"
	"mcpx/internal/ansi"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
)

// terminal is the surroundings of a command: its streams and context.
type terminal struct {
	ctx     context.Context
	release func() // makes the next signal end the process at once
	stdin   io.Reader
	stdout  *output
	stderr  io.Writer
	isHTTP  bool     // serve over HTTP by default
	command []string // of mcpx add, after "--"

	adhoc *config.Config // of a server given by url or command; nil if it is in a config
}

// output is stdout. It keeps the first error of writing, which run reports when the command
// ends. So commands need not look at the error of every line that they print.
type output struct {
	file io.Writer
	err  error
}

// Write implements io.Writer.
func (o *output) Write(b []byte) (n int, err error) {
	if o.err == nil {
		n, o.err = o.file.Write(b)
	}
	return n, o.err
}

// Fd returns the file descriptor, for those who look for a terminal.
func (o *output) Fd() uintptr { return descriptor(o.file) }

// descriptor returns the file descriptor of a stream. If the stream is not a file, it returns
// one that does not exist.
func descriptor(stream any) uintptr {
	if f, ok := stream.(interface{ Fd() uintptr }); ok {
		return f.Fd()
	}
	return ^uintptr(0)
}

// person reports whether a person reads stdout.
func (t *terminal) person() bool { return ansi.IsTerminal(t.stdout) }

// width returns the number of columns of a terminal, 0 for anything else.
func width(stream any) int {
	columns, _, _ := term.GetSize(int(descriptor(stream)))
	return max(columns, 0) // -1 if the stream is not a terminal
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

// await returns what read returns, or errInterrupted if ctx ends first.
func await[T any](ctx context.Context, read func() (T, error)) (value T, err error) {
	select {
	case r := <-start(read):
		return r.value, r.err
	case <-ctx.Done():
		return value, errInterrupted
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

// printf prints to stdout. It returns the first error of all that was printed.
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
func (t *terminal) printText(text string) {
	if t.person() {
		text = plain.Text(text)
	}
	fmt.Fprintln(t.stdout, text)
}

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

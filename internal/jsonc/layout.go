package jsonc

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/tailscale/hujson"

	"mcpx/internal/rawjson"
)

// style is how a document is laid out.
type style struct {
	newline string
	unit    string // one level of indentation
	space   string // after colons and commas
	lines   bool   // the document is spread over lines
}

func (d *Document) style() style {
	s := style{newline: "\n", space: " "}
	first := bytes.IndexByte(d.src, '\n')
	if first > 0 && d.src[first-1] == '\r' {
		s.newline = "\r\n"
	}
	s.lines = bytes.ContainsRune(bytes.TrimSpace(d.src), '\n')
	s.unit = d.unit()
	if root, ok := d.root.Value.(*hujson.Object); ok && len(root.Members) > 0 && len(root.Members[0].Value.BeforeExtra) == 0 {
		s.space = ""
	}
	return s
}

// unit returns one level of indentation: that of the first item on a line of its own.
func (d *Document) unit() string {
	for v := range d.root.All() {
		c, ok := newContainer(v)
		if !ok || len(c.items) == 0 || !d.startsLine(c.items[0].start) {
			continue
		}
		inner, outer := d.lineIndent(c.items[0].start), d.lineIndent(c.value.StartOffset)
		if unit, deeper := strings.CutPrefix(inner, outer); deeper && unit != "" {
			return unit
		}
	}
	return "  "
}

// neighborLevels returns over how many levels a new value is spread: as many as its
// last neighbor of the same kind. Without one, the value's own members get a line each
// if the document has lines.
func (d *Document) neighborLevels(c container, value []byte) int {
	kind := rawjson.Kind(value)
	for i := len(c.items) - 1; i >= 0; i-- {
		v := c.items[i].value
		if rawjson.Kind(d.src[v.StartOffset:]) == kind && !isEmpty(v) {
			return d.levels(v)
		}
	}
	if kind == '{' && (d.style().lines || c.value.StartOffset == d.root.StartOffset) {
		return 1
	}
	return 0
}

func isEmpty(v *hujson.Value) bool {
	c, ok := newContainer(v)
	return ok && len(c.items) == 0
}

// levels returns how many levels of a value have their items on lines of their own.
func (d *Document) levels(v *hujson.Value) int {
	c, ok := newContainer(v)
	if !ok || len(c.items) == 0 || !bytes.ContainsRune(d.src[v.StartOffset:v.EndOffset], '\n') {
		return 0
	}
	deepest := 0
	for _, it := range c.items {
		deepest = max(deepest, d.levels(it.value))
	}
	return 1 + deepest
}

// Line returns a value on one line, with spaces after colons and commas.
func Line(value []byte) []byte { return style{space: " "}.append(nil, value, "", 0) }

// append appends a value to b. In its outermost levels, each item gets a line of its own.
func (s style) append(b, value []byte, indent string, levels int) []byte {
	kind := rawjson.Kind(value)
	if kind != '{' && kind != '[' {
		return append(b, bytes.TrimSpace(value)...)
	}
	inner, between := indent+s.unit, ","+s.space
	opening, closing := "", ""
	if levels > 0 {
		opening, closing = s.newline+inner, s.newline+indent
		between = "," + opening
	}
	b = append(b, kind)
	separator := opening
	if kind == '{' {
		for key, v := range rawjson.Members(value) {
			b = append(rawjson.AppendString(append(b, separator...), key), ":"+s.space...)
			b, separator = s.append(b, v, inner, levels-1), between
		}
	} else {
		for v := range rawjson.Elements(value) {
			b, separator = s.append(append(b, separator...), v, inner, levels-1), between
		}
	}
	if separator == between { // it has items
		b = append(b, closing...)
	}
	return append(b, kind+2) // { and }, [ and ] are two apart
}

// lineStart returns where the line of an offset begins.
func (d *Document) lineStart(at int) int { return bytes.LastIndexByte(d.src[:at], '\n') + 1 }

// lineIndent returns the white space that the line of an offset begins with.
func (d *Document) lineIndent(at int) string {
	line := d.src[d.lineStart(at):at]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// startsLine reports whether only white space precedes the offset on its line, which
// is not the first.
func (d *Document) startsLine(at int) bool {
	start := d.lineStart(at)
	return start > 0 && len(bytes.TrimSpace(d.src[start:at])) == 0
}

var (
	comments    = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)
	startOfLine = regexp.MustCompile(`\n[ \t]*$`)
	// restOfLine matches the rest of a line that has only comments. A comment that goes
	// on in the next line does not match.
	restOfLine = regexp.MustCompile(`^(?:[ \t]|/\*[^\n]*?\*/)*(?://[^\n]*|\r)?\n`)
)

// splitExtra divides the space and comments between two tokens after the last comment.
// It reports whether that is a line comment; its line break belongs to the space.
func splitExtra(extra hujson.Extra) (before, space hujson.Extra, isLine bool) {
	all := comments.FindAllIndex(extra, -1)
	if all == nil {
		return nil, extra, false
	}
	last := all[len(all)-1]
	before = bytes.TrimRight(extra[:last[1]], " \t\r")
	return before, extra[len(before):], extra[last[0]+1] == '/'
}

// withoutSpace removes the space after the last comment, except the line break of a line
// comment.
func withoutSpace(extra hujson.Extra) hujson.Extra {
	before, space, isLine := splitExtra(extra)
	if isLine {
		return extra[:len(before)+bytes.IndexByte(space, '\n')+1]
	}
	return before
}

package jsonedit

import (
	"bytes"
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
		inner, outer := d.lineIndent(c.items[0].start), d.lineIndent(c.start)
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
	if kind == '{' && (d.style().lines || c.start == d.root.StartOffset) {
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
func Line(value []byte) []byte { return style{space: " "}.render(value, "", 0) }

// render lays out a value. Its first so many levels get a line for each item.
func (s style) render(value []byte, indent string, levels int) []byte {
	return s.append(nil, value, indent, levels)
}

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

// commaAfter returns the offset of the comma that follows an item, -1 if none does.
func (d *Document) commaAfter(it item) int {
	if at := d.skipExtra(it.end); at < len(d.src) && d.src[at] == ',' {
		return at
	}
	return -1
}

// skipSpaces returns the offset of the next byte that is neither a space nor a tab.
func (d *Document) skipSpaces(at int) int {
	for at < len(d.src) && (d.src[at] == ' ' || d.src[at] == '\t') {
		at++
	}
	return at
}

// skipExtra returns the offset of the next token after white space and comments.
func (d *Document) skipExtra(at int) int {
	for at < len(d.src) {
		switch n := comment(d.src[at:]); {
		case n > 0:
			at += n
		case strings.IndexByte(" \t\r\n", d.src[at]) >= 0:
			at++
		default:
			return at
		}
	}
	return at
}

// lastComment returns where the last comment between two tokens ends, without its line
// break, and whether it is a line comment. Without a comment it returns from.
func (d *Document) lastComment(from, to int) (end int, isLine bool) {
	end = from
	for at := from; at < to; {
		n := comment(d.src[at:])
		if n == 0 {
			at++
			continue
		}
		end, isLine = at+len(bytes.TrimRight(d.src[at:at+n], " \t\r\n")), d.src[at+1] == '/'
		at += n
	}
	return end, isLine
}

// afterComments returns where the last comment between two tokens ends, including the
// line break of a line comment. Without a comment it returns from.
func (d *Document) afterComments(from, to int) int {
	end, isLine := d.lastComment(from, to)
	if isLine {
		end += bytes.IndexByte(d.src[end:], '\n') + 1
	}
	return end
}

// restOfLine returns the start of the next line if nothing but comments follows on
// this one, else 0. A comment that goes on in the next line is not taken.
func (d *Document) restOfLine(at, limit int) int {
	for at < limit {
		at = d.skipSpaces(at)
		n := comment(d.src[at:])
		switch text := d.src[at : at+n]; {
		case n > 0 && text[1] == '/':
			return at + n
		case n > 0 && !bytes.ContainsRune(text, '\n'):
			at += n
		case bytes.HasPrefix(d.src[at:], []byte("\r\n")):
			return at + 2
		case at < limit && d.src[at] == '\n':
			return at + 1
		default:
			return 0
		}
	}
	return 0
}

// comment returns the length of the comment that the text starts with, a line comment
// including its line break; 0 if there is none.
func comment(text []byte) int {
	var closing string
	switch {
	case bytes.HasPrefix(text, []byte("//")):
		closing = "\n"
	case bytes.HasPrefix(text, []byte("/*")):
		closing = "*/"
	default:
		return 0
	}
	if n := bytes.Index(text[2:], []byte(closing)); n >= 0 {
		return 2 + n + len(closing)
	}
	return len(text)
}

package jsonedit

import (
	"bytes"
	"slices"

	"mcpx/internal/rawjson"
)

// replace puts another value in the place of one. It is spread over lines as far as
// the old one was.
func (d *Document) replace(c container, i int, value []byte) error {
	old := c.items[i]
	levels := d.levels(old.value)
	if rawjson.Kind(d.src[old.value.StartOffset:]) != rawjson.Kind(value) {
		levels = d.neighborLevels(c, value)
	}
	text := d.style().render(value, d.lineIndent(old.start), levels)
	return d.splice(edit{old.value.StartOffset, old.end, text})
}

// insert adds a value to the end of a container. key is nil for an array.
func (d *Document) insert(c container, key *string, value []byte) error {
	s := d.style()
	render := func(indent string) []byte {
		var b []byte
		if key != nil {
			b = append(rawjson.AppendString(b, *key), ":"+s.space...)
		}
		return append(b, s.render(value, indent, d.neighborLevels(c, value))...)
	}
	if len(c.items) == 0 {
		return d.insertFirst(c, s, render)
	}
	last := c.items[len(c.items)-1]
	var edits []edit
	comma, tail := d.commaAfter(last), last.end
	ending := ""
	if comma < 0 {
		edits = append(edits, edit{last.end, last.end, []byte(",")})
	} else {
		tail, ending = comma+1, ","
	}
	cut, lineComment := d.lastComment(tail, c.close)
	separator, indent := s.space, d.lineIndent(last.start)
	switch {
	case d.startsLine(last.start):
		separator = s.newline + indent
	case lineComment:
		indent = d.lineIndent(c.close) + s.unit
		separator = s.newline + indent
	}
	text := slices.Concat([]byte(separator), render(indent), []byte(ending))
	return d.splice(append(edits, edit{cut, cut, text})...)
}

// insertFirst adds the first item of a container.
func (d *Document) insertFirst(c container, s style, render func(indent string) []byte) error {
	cut, _ := d.lastComment(c.inside, c.close)
	outer := d.lineIndent(c.start)
	inner := outer + s.unit
	switch {
	case cut > c.inside && bytes.ContainsRune(d.src[c.inside:c.close], '\n'): // after the comments
		text := append([]byte(s.newline+inner), render(inner)...)
		return d.splice(edit{cut, cut, text})
	case cut > c.inside:
		return d.splice(edit{cut, cut, append([]byte(s.space), render(outer)...)})
	case s.lines || c.start == d.root.StartOffset:
		text := slices.Concat([]byte(s.newline+inner), render(inner), []byte(s.newline+outer))
		return d.splice(edit{c.inside, c.close, text})
	}
	return d.splice(edit{c.inside, c.close, render(outer)})
}

// remove takes an item out of a container, with its comma.
func (d *Document) remove(c container, i int) error {
	it := c.items[i]
	start, end := it.start, it.end
	comma, isLast := d.commaAfter(it), i == len(c.items)-1
	if comma >= 0 {
		end = comma + 1
	}
	afterLine := d.restOfLine(end, c.close)
	switch {
	case d.startsLine(start) && afterLine > 0: // whole lines
		start, end = d.lineStart(start), afterLine
	case !isLast:
		end = d.skipSpaces(end)
	default:
		limit := c.inside
		if i > 0 {
			limit = d.commaAfter(c.items[i-1]) + 1
		}
		start = d.afterComments(limit, start)
	}
	edits := []edit{{start, end, nil}}
	if isLast && comma < 0 && i > 0 {
		before := d.commaAfter(c.items[i-1])
		edits = append([]edit{{before, before + 1, nil}}, edits...)
	}
	if len(c.items) == 1 && len(bytes.TrimSpace(slices.Concat(d.src[c.inside:start], d.src[min(end, c.close):c.close]))) == 0 {
		edits = []edit{{c.inside, c.close, nil}}
	}
	return d.splice(edits...)
}

// edit replaces the bytes from start up to end.
type edit struct {
	start, end int
	text       []byte
}

// splice makes edits, which are in order, and reads the text anew.
func (d *Document) splice(edits ...edit) error {
	var b []byte
	done := 0
	for _, e := range edits {
		b = append(append(b, d.src[done:e.start]...), e.text...)
		done = e.end
	}
	d.src = append(b, d.src[done:]...)
	return d.parse()
}

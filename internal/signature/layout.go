package signature

import (
	"cmp"
	"slices"
	"strings"
)

// Above softLimit bytes, a signature loses detail; above hardLimit, it loses parameters.
const (
	softLimit = 1200
	hardLimit = 2400
)

// maxParameters limits the work: more never fit. If there are more, required ones come first.
const maxParameters = 256

const separator = ", "

// layout fits parameters into a line.
type layout struct {
	params     []*part
	more       bool   // some parameters are left out
	soft, hard int    // limits, in bytes
	least      int    // losses of detail that every part begins with
	buf        []byte // reused for each part
}

// newLayout returns the layout of the properties of an object, or of a type that is none.
func newLayout(t *typ) *layout {
	l := &layout{soft: softLimit, hard: hardLimit}
	switch {
	case t == open:
		l.more = true
	case t.kind == word && t != never:
	case t.kind == object:
		l.parameters(t)
	default:
		l.params = []*part{{typ: t, required: true}}
	}
	return l
}

// part is one parameter.
type part struct {
	name     string // empty: other keys
	head     string // "name?: "
	typ      *typ
	value    string // as in prop
	required bool
	losses   int // of detail, as in writer
	text     string
}

// write writes a part, with fewer details if it is too long.
func (l *layout) write(p *part) {
	if l.least == typesLost {
		p.losses, p.text = l.least, cmp.Or(strings.TrimSuffix(p.head, ": "), open.text)
		return
	}
	for p.losses = max(p.losses, l.least); ; p.losses++ {
		w := writer{buf: l.buf[:0], losses: p.losses}
		w.put(p.head)
		if p.losses == typeLost {
			w.put(unknown.text)
		} else {
			w.typ(p.typ, 0)
		}
		w.put(p.value)
		l.buf = w.buf
		if !w.full() || p.losses == typeLost {
			p.text = string(w.buf)
			return
		}
		if w.types > maxTypes {
			p.losses = max(p.losses, objectsLost-1) // fewer losses would take as long
		}
	}
}

// parameters lists the properties of the arguments.
func (l *layout) parameters(t *typ) {
	props := t.props
	if l.more = len(props) > maxParameters; l.more {
		required := slices.DeleteFunc(slices.Clone(props), func(p prop) bool { return !p.required })
		optional := slices.DeleteFunc(slices.Clone(props), func(p prop) bool { return p.required })
		props = append(required, optional...)[:maxParameters]
	}
	for _, p := range props {
		head := p.head()
		if head == "" {
			l.more = true
			continue
		}
		l.params = append(l.params, &part{name: p.name, head: head, typ: p.typ, value: p.value, required: p.required})
	}
	if t.rest != nil && !l.more {
		l.params = append(l.params, &part{head: restKey, typ: t.rest})
	}
}

// fit returns the line, with all detail if that is short enough.
func (l *layout) fit() string {
	for _, p := range l.params {
		l.write(p)
	}
	for l.size() > l.soft && l.shorten(optionalLost) {
	}
	for l.size() > l.hard && (l.drop(l.lastOptional()) || l.shorten(typeLost) || l.drop(len(l.params)-1)) {
	}
	return l.line()
}

// shorten takes detail from the longest part until it is shorter. It picks the last of several, skips parts with most
// losses, and reports whether there was one.
func (l *layout) shorten(most int) bool {
	var longest *part
	for _, p := range l.params {
		if p.losses < most && (longest == nil || len(p.text) >= len(longest.text)) {
			longest = p
		}
	}
	if longest == nil {
		return false
	}
	for size := len(longest.text); longest.losses < most && len(longest.text) >= size; {
		longest.losses++
		l.write(longest)
	}
	return true
}

// drop leaves out a parameter. It reports whether there is one.
func (l *layout) drop(i int) bool {
	if i < 0 {
		return false
	}
	l.params = slices.Delete(l.params, i, i+1)
	l.more = true
	return true
}

func (l *layout) lastOptional() int {
	for i, p := range slices.Backward(l.params) {
		if !p.required {
			return i
		}
	}
	return -1
}

func (l *layout) size() int {
	size := len(open.text)
	for _, p := range l.params {
		size += len(p.text) + len(separator)
	}
	return size
}

func (l *layout) line() string {
	var shown []string
	for _, p := range l.params {
		shown = append(shown, p.text)
	}
	if l.more {
		shown = append(shown, open.text)
	}
	return strings.Join(shown, separator)
}

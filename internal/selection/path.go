package selection

import (
	"slices"
	"strings"

	"mcpx/internal/rawjson"
	"mcpx/internal/work"
)

// Path leads from a value to values in it, like user.login or labels[].name.
type Path []step

// step leads to a member or an element of a value, or to every element of an array.
type step struct {
	name    string
	isEvery bool
}

var every = step{isEvery: true}

// lead follows a path from n up to the first array that the path enters, or to its end. It
// returns the rest of the path.
func (p Path) lead(n rawjson.Node) (rest Path, at rawjson.Node) {
	for len(p) > 0 && !p[0].isEvery {
		next := n.Child(p[0].name)
		if next.IsZero() && len(p) > 1 && n.Kind() == '{' {
			if whole := n.Get(p.String()); !whole.IsZero() { // a key with a dot
				return nil, whole
			}
		}
		if next.IsZero() {
			break
		}
		p, n = p[1:], next
	}
	return p, n
}

// only returns the value that a path leads to; the zero Node if there is none, or if the
// path can lead to several.
func (p Path) only(n rawjson.Node) (found rawjson.Node, several bool) {
	rest, at := p.lead(n)
	if len(rest) == 0 {
		return at, false
	}
	return rawjson.Node{}, at.Kind() == '[' || slices.Contains(rest, every)
}

// exists reports whether a path exists in n. It does if it leads into an empty array or into
// null.
func (p Path) exists(w *work.Watch, n rawjson.Node) bool {
	rest, at := p.lead(n)
	switch {
	case len(rest) == 0:
		return true
	case at.Kind() != '[':
		return at.Kind() == 'n'
	}
	f := finder{Watch: w, visit: func(rawjson.Node) bool { return false }}
	return f.elements(rest, at)
}

// finder visits the values that a path leads to, until visit returns false or the call is
// canceled.
type finder struct {
	*work.Watch
	visit     func(rawjson.Node) (more bool)
	isStopped bool
}

// find visits the values that a path leads to from n. isKnown reports whether the path exists
// in n.
func (f *finder) find(p Path, n rawjson.Node) (isKnown bool) {
	rest, at := p.lead(n)
	switch {
	case len(rest) == 0:
		f.isStopped = !f.visit(at)
		return true
	case at.Kind() == '[':
		return f.elements(rest, at)
	}
	return at.Kind() == 'n'
}

// elements is find for the elements of an array that a path enters.
func (f *finder) elements(p Path, array rawjson.Node) (isKnown bool) {
	if p[0].isEvery {
		p = p[1:]
	}
	isKnown = array.At(0).IsZero()
	for element := range array.Each() {
		if f.isStopped || f.IsOver() {
			break
		}
		if f.find(p, element) {
			isKnown = true
		}
	}
	return isKnown
}

// without returns the path without a prefix, or the whole path if it does not begin
// with that.
func (p Path) without(prefix Path) Path {
	if len(p) <= len(prefix) || !slices.Equal(p[:len(prefix)], prefix) {
		return p
	}
	return p[len(prefix):]
}

func (p Path) equal(other Path) bool { return slices.Equal(p, other) }

// String returns the path as it is written in a select.
func (p Path) String() string {
	var b strings.Builder
	for i, s := range p {
		switch {
		case s.isEvery:
			b.WriteString("[]")
			continue
		case i > 0:
			b.WriteByte('.')
		}
		b.WriteString(s.name)
	}
	return b.String()
}

// Tokens returns the path as the tokens of a JSON Pointer, with * for every element.
func (p Path) Tokens() []string {
	tokens := make([]string, len(p))
	for i, s := range p {
		if tokens[i] = s.name; s.isEvery {
			tokens[i] = "*"
		}
	}
	return tokens
}

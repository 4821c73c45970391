package selection

import (
	"slices"
	"strings"

	"mcpx/internal/rawjson"
)

// Path leads from a value to values in it, like user.login or labels[].name.
type Path []step

// step leads to a member or an element of a value, or to every element of an array.
type step struct {
	name    string
	isEvery bool
}

var every = step{isEvery: true}

// find returns the values that a path leads to. several reports whether the path can
// lead to several values. isKnown reports whether the path exists in n; it does if it
// leads into an empty array or into null.
func (p Path) find(n rawjson.Node) (found []rawjson.Node, several, isKnown bool) {
	if len(p) == 0 {
		return []rawjson.Node{n}, false, true
	}
	if next := n.Child(p[0].name); !p[0].isEvery && !next.IsZero() {
		return p[1:].find(next)
	}
	if len(p) > 1 && n.Kind() == '{' {
		if whole := n.Get(p.String()); !whole.IsZero() {
			return []rawjson.Node{whole}, false, true // a key with a dot
		}
	}
	if n.Kind() != '[' {
		return nil, slices.Contains(p, every), n.Kind() == 'n'
	}
	rest := p
	if p[0].isEvery {
		rest = p[1:]
	}
	isKnown = n.Len() == 0
	for _, element := range n.Elements() {
		below, _, known := rest.find(element)
		found = append(found, below...)
		isKnown = isKnown || known
	}
	return found, true, isKnown
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

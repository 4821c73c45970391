package rawjson

import (
	"strconv"
	"strings"
)

// Tokens splits a JSON Pointer into its decoded reference tokens. The slash at its
// start may be missing.
func Tokens(pointer string) []string {
	tokens := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, token := range tokens {
		tokens[i] = pointerEscapes.Replace(token)
	}
	return tokens
}

var (
	pointerEscapes = strings.NewReplacer("~1", "/", "~0", "~")
	tokenEscapes   = strings.NewReplacer("/", "~1", "~", "~0")
)

// Locator finds the JSON Pointers of values in a root. It is fast if the values come in the
// order of the text.
type Locator struct {
	root Node
	last []place // from the root to the last value
}

// place is where a value is in the object or array around it.
type place struct {
	span  uint32
	index int
}

// NewLocator returns a Locator for the values in root.
func NewLocator(root Node) *Locator { return &Locator{root: root} }

// Pointer returns the JSON Pointer that leads from the root to a value in it.
func (l *Locator) Pointer(to Node) string {
	var b []byte
	spans := to.tree.spans
	for level, parent := 0, l.root.i; parent != to.i; level++ {
		at := place{span: parent + 1}
		if level < len(l.last) && l.last[level].span <= to.i {
			at = l.last[level]
		}
		for spans[at.span].next <= to.i {
			at = place{spans[at.span].next, at.index + 1}
		}
		if level == len(l.last) || l.last[level] != at {
			l.last = append(l.last[:level], at)
		}
		b = at.append(append(b, '/'), to.tree)
		parent = at.span
	}
	return string(b)
}

// append appends the token of a place.
func (p place) append(b []byte, t *Tree) []byte {
	if t.spans[p.span].key == 0 {
		return strconv.AppendInt(b, int64(p.index), 10)
	}
	return append(b, tokenEscapes.Replace(Node{t, p.span}.key())...)
}

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

// Locator finds the JSON Pointers of values in a root.
type Locator struct {
	root   Node
	places []place // by span
}

// place is where a value is in the object or array around it.
type place struct {
	parent uint32 // its span
	index  uint32
}

// NewLocator returns a Locator for the values in root.
func NewLocator(root Node) *Locator {
	l := &Locator{root, make([]place, len(root.tree.spans))}
	for parent := range uint32(len(l.places)) {
		index := uint32(0)
		for child := range (Node{root.tree, parent}).children() {
			l.places[child.i] = place{parent, index}
			index++
		}
	}
	return l
}

// Pointer returns the JSON Pointer that leads from the root to a value in it.
func (l *Locator) Pointer(to Node) string { return string(l.append(nil, to)) }

func (l *Locator) append(b []byte, to Node) []byte {
	if to == l.root {
		return b
	}
	at := l.places[to.i]
	b = append(l.append(b, Node{to.tree, at.parent}), '/')
	if to.tree.spans[to.i].key == 0 {
		return strconv.AppendInt(b, int64(at.index), 10)
	}
	return append(b, tokenEscapes.Replace(to.key())...)
}

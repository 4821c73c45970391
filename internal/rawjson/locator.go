package rawjson

import "strconv"

// Locator finds the JSON Pointers of values in a root. It continues from the last value,
// so that to locate many values in the order of the text takes no longer than to read the
// text once.
type Locator struct {
	root Node
	path []place // from the root to the last value
}

// place is a member or an element, and its number in its parent.
type place struct {
	Node
	index int
}

// NewLocator returns a Locator for the values in root.
func NewLocator(root Node) *Locator { return &Locator{root: root} }

// Pointer returns the JSON Pointer that leads from the root to a value in it.
func (l *Locator) Pointer(to Node) string {
	parent, depth := l.root, 0
	for ; parent != to; depth++ {
		l.descend(parent, depth, to)
		parent = l.path[depth].Node
	}
	l.path = l.path[:depth]
	return l.text()
}

// descend sets the place at a depth to the child of parent that has the value in it.
func (l *Locator) descend(parent Node, depth int, to Node) {
	child := place{Node: Node{parent.tree, parent.i + 1}}
	if depth < len(l.path) && l.path[depth].i <= to.i {
		child = l.path[depth]
	}
	for to.i >= parent.tree.spans[child.i].next {
		child.i = parent.tree.spans[child.i].next
		child.index++
	}
	if depth < len(l.path) && l.path[depth] == child {
		return
	}
	l.path = append(l.path[:depth], child)
}

// text returns the pointer to the last value.
func (l *Locator) text() string {
	var b []byte
	parent := l.root
	for _, p := range l.path {
		b = append(b, '/')
		if parent.Kind() == '{' {
			b = append(b, tokenEscapes.Replace(p.key())...)
		} else {
			b = strconv.AppendInt(b, int64(p.index), 10)
		}
		parent = p.Node
	}
	return string(b)
}

package rawjson

import (
	"bytes"
	"context"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"mcpx/internal/work"
)

// Tree is a JSON text together with the place of every value in it, so that any
// value is found without reading the text again. It needs 16 bytes a value and is
// immutable.
type Tree struct {
	text  []byte
	spans []span
	depth int

	index   map[uint32]keyTable // the members of large objects, by the span of the object
	escapes bool                // some key has an escape or is not valid UTF-8

	duplicates bool // some object may have a key twice
}

// span is the place of one value. The spans of a container's children follow its
// own, in the order of the text.
type span struct {
	key        uint32 // where the key of a member starts; 0: it has none
	start, end uint32
	next       uint32 // the number of the first span that is not part of this value
}

// Node is a value in a Tree. The zero Node is no value; all methods accept it.
type Node struct {
	tree *Tree
	i    uint32
}

const (
	maxTreeDepth = 10_000 // as in encoding/json
	largeObject  = 32     // from this size a table finds a key faster than a scan
)

// Parse reads one JSON value. Its tree keeps text, which must not change.
func Parse(text []byte) (root Node, err error) {
	p := treeParser{cursor: cursor{b: text}, tree: &Tree{text: text}}
	if err = p.parse(); err != nil {
		return Node{}, err
	}
	p.tree.spans = slices.Clone(p.tree.spans) // without the room for more
	return Node{tree: p.tree}, nil
}

// ParseContext is Parse for a long text and a tree that is soon dropped. It fails soon after
// the context ends, and needs at most TreeBytes of memory.
func ParseContext(ctx context.Context, text []byte) (root Node, err error) {
	p := treeParser{cursor: cursor{b: text, watch: work.NewWatch(ctx)}, tree: &Tree{text: text}}
	p.tree.spans = make([]span, 0, mostValues(text))
	if err = p.parse(); err != nil {
		return Node{}, err
	}
	return Node{tree: p.tree}, nil
}

// TreeBytes returns the most memory that the tree of a text can need, without the text. It is an
// estimate: it also counts commas, colons and brackets in strings.
func TreeBytes(text []byte) int {
	return mostValues(text)*spanBytes + bytes.Count(text, []byte(":"))*tableBytes
}

const spanBytes = 16

// mostValues returns the most values that a text can have.
func mostValues(text []byte) int {
	return 1 + bytes.Count(text, []byte(",")) + bytes.Count(text, []byte("[")) + bytes.Count(text, []byte("{"))
}

// Len returns the number of values.
func (t *Tree) Len() int { return len(t.spans) }

// Members returns the members of all objects, in the order of the text.
func (t *Tree) Members() iter.Seq2[string, Node] {
	return func(yield func(string, Node) bool) {
		for i := range t.spans {
			n := Node{t, uint32(i)}
			if t.spans[i].key != 0 && !yield(n.key(), n) {
				return
			}
		}
	}
}

// Depth returns how many objects and arrays are nested in each other.
func (t *Tree) Depth() int { return t.depth }

type treeParser struct {
	cursor
	tree *Tree
}

// parse reads the whole text.
func (p *treeParser) parse() error {
	if len(p.b) >= math.MaxUint32 {
		return ErrSyntax
	}
	if err := p.value(0, 0); err != nil {
		return err
	}
	return p.end()
}

// value adds the value at the cursor and everything in it. key is where its key
// starts.
func (p *treeParser) value(key, depth int) error {
	p.space()
	i := len(p.tree.spans)
	p.tree.spans = append(p.tree.spans, span{key: uint32(key), start: uint32(p.i)})
	var err error
	if first := p.peek(); first == '{' || first == '[' {
		err = p.container(depth + 1)
	} else {
		err = p.cursor.value(0)
	}
	if err != nil {
		return err
	}
	p.tree.spans[i].end, p.tree.spans[i].next = uint32(p.i), uint32(len(p.tree.spans))
	if n := (Node{p.tree, uint32(i)}); n.Kind() == '{' {
		return p.readKeys(n)
	}
	return nil
}

// container adds everything in an object or an array.
func (p *treeParser) container(depth int) error {
	if depth > maxTreeDepth {
		return ErrDepth
	}
	p.tree.depth = max(p.tree.depth, depth)
	in := p.open(0)
	for p.next(&in) {
		start := 0
		if in.key != nil {
			start = in.start
			p.tree.escapes = p.tree.escapes || bytes.IndexByte(in.key, '\\') >= 0 || !utf8.Valid(in.key)
		}
		in.err = p.value(start, depth)
	}
	return in.err
}

// readKeys looks for a key that an object has twice, and makes the table of a large object.
func (p *treeParser) readKeys(object Node) error {
	members := object.Len()
	if members >= largeObject {
		return p.indexMembers(object, members)
	}
	if p.tree.duplicates || members < 2 {
		return nil
	}
	var keys [largeObject][]byte
	seen := keys[:0]
	for child := range object.children() {
		key := child.rawKey()
		p.tree.duplicates = p.tree.duplicates || containsKey(seen, key)
		seen = append(seen, key)
	}
	return nil
}

// indexMembers makes the table of a large object.
func (p *treeParser) indexMembers(object Node, members int) error {
	if p.tree.index == nil {
		p.tree.index = map[uint32]keyTable{}
	}
	table := newKeyTable(members)
	p.tree.index[object.i] = table
	for child := range object.children() {
		if p.watch != nil && p.watch.IsOver() {
			return p.watch.Err()
		}
		isTaken := table.add(child)
		p.tree.duplicates = p.tree.duplicates || isTaken
	}
	return nil
}

// Tree returns the tree that n is part of.
func (n Node) Tree() *Tree { return n.tree }

// IsZero reports whether n is no value.
func (n Node) IsZero() bool { return n.tree == nil }

// Raw returns the JSON of n, nil for the zero Node.
func (n Node) Raw() []byte {
	if n.tree == nil {
		return nil
	}
	s := n.tree.spans[n.i]
	return n.tree.text[s.start:s.end:s.end]
}

// Replace returns the edit that replaces n in the text of its tree.
func (n Node) Replace(with []byte) Edit {
	s := n.tree.spans[n.i]
	return Edit{int(s.start), int(s.end), with}
}

// Kind returns the first character of n, as the function Kind does.
func (n Node) Kind() byte {
	if n.tree == nil {
		return 0
	}
	return n.tree.text[n.tree.spans[n.i].start]
}

// IsNumber reports whether n is a number.
func (n Node) IsNumber() bool {
	k := n.Kind()
	return k == '-' || k >= '0' && k <= '9'
}

// String decodes a JSON string; ok is false for anything else. The result shares
// the memory of the text, unless the string has escapes.
func (n Node) String() (s string, ok bool) { return View(n.Raw()) }

// Text returns a string without its quotes, decoded, and other values as they are written.
func (n Node) Text() string {
	if s, ok := n.String(); ok {
		return s
	}
	return string(n.Raw())
}

// Get returns the member of an object with that key. If the key occurs more than
// once, the last one counts.
func (n Node) Get(key string) (found Node) {
	if n.Kind() != '{' {
		return Node{}
	}
	if table := n.tree.index[n.i]; table != nil {
		return table.find(n.tree, key)
	}
	return n.find(key)
}

// find is Get without a table.
func (n Node) find(key string) (found Node) {
	for child := range n.children() {
		if child.hasKey(key) {
			found = child
		}
	}
	return found
}

// At returns the element of an array.
func (n Node) At(i int) Node {
	if n.Kind() != '[' || i < 0 {
		return Node{}
	}
	for child := range n.children() {
		if i == 0 {
			return child
		}
		i--
	}
	return Node{}
}

// Child returns the member of an object, or the element of an array, that a token of a
// JSON Pointer names.
func (n Node) Child(token string) Node {
	if n.Kind() != '[' {
		return n.Get(token)
	}
	i, err := strconv.Atoi(token)
	if err != nil || strconv.Itoa(i) != token { // 01 and +1 are not indexes
		return Node{}
	}
	return n.At(i)
}

// Members returns the members of an object. Of those with the same key, it returns the
// last one.
func (n Node) Members() iter.Seq2[string, Node] {
	return func(yield func(string, Node) bool) {
		if n.Kind() != '{' {
			return
		}
		for child := range n.children() {
			if key := child.key(); (!n.tree.duplicates || n.Get(key) == child) && !yield(key, child) {
				return
			}
		}
	}
}

// Each returns the elements of an array, one by one.
func (n Node) Each() iter.Seq[Node] {
	if n.Kind() != '[' {
		return func(func(Node) bool) {}
	}
	return n.children()
}

// Elements returns the elements of an array.
func (n Node) Elements() []Node {
	if n.Kind() != '[' || n.Len() == 0 {
		return nil
	}
	list := make([]Node, 0, n.Len())
	for child := range n.children() {
		list = append(list, child)
	}
	return list
}

// Len returns the number of members or elements.
func (n Node) Len() (count int) {
	for range n.children() {
		count++
	}
	return count
}

// children returns the members or elements, all of them.
func (n Node) children() iter.Seq[Node] {
	return func(yield func(Node) bool) {
		if n.tree == nil {
			return
		}
		for i, end := n.i+1, n.tree.spans[n.i].next; i < end; i = n.tree.spans[i].next {
			if !yield(Node{n.tree, i}) {
				return
			}
		}
	}
}

// hasKey reports whether the key of a member reads as key.
func (n Node) hasKey(key string) bool {
	if n.tree.escapes {
		return n.key() == key
	}
	inner := n.tree.text[n.tree.spans[n.i].key+1:]
	return len(inner) > len(key) && inner[len(key)] == '"' && string(inner[:len(key)]) == key && !strings.Contains(key, `"`)
}

// key returns the decoded key of a member.
func (n Node) key() string {
	key, _ := View(n.rawKey())
	return key
}

// rawKey returns the key of a member with its quotes.
func (n Node) rawKey() []byte {
	c := cursor{b: n.tree.text, i: int(n.tree.spans[n.i].key)}
	_ = c.text()
	return n.tree.text[n.tree.spans[n.i].key:c.i]
}

// Scalars returns all values in n that are neither objects nor arrays, in the order of
// the text; n itself if it is one.
func (n Node) Scalars() iter.Seq[Node] {
	return func(yield func(Node) bool) {
		if n.tree == nil {
			return
		}
		for i := n.i; i < n.tree.spans[n.i].next; i++ {
			scalar := Node{n.tree, i}
			if k := scalar.Kind(); k != '{' && k != '[' && !yield(scalar) {
				return
			}
		}
	}
}

package signature

import (
	"encoding/json"
	"strings"
)

// node is one JSON value. Unlike a Go map it keeps its members in the order they were written, and numbers as written.
type node struct {
	raw     string
	members []member       // of an object or an array
	index   map[string]int // key to member, for large objects only
}

// member is a member of an object, or an element of an array, whose key is empty.
type member struct {
	key   string
	value *node
}

// parse reads text, which must be JSON, and returns the "$ref" and "$dynamicRef" strings found anywhere in it beside its root.
func parse(text string) (*node, []string) {
	r := reader{text: text}
	root := r.value()
	if r.rebased {
		return root, nil
	}
	return root, r.refs
}

// reader scans text that json.Valid has accepted, so it never looks out for errors.
type reader struct {
	text    string
	pos     int
	depth   int
	refs    []string
	rebased bool // a nested $id makes "#" mean something else than the root
}

func (r *reader) value() *node {
	r.space()
	start := r.pos
	n := &node{}
	switch r.text[r.pos] {
	case '{', '[':
		r.depth++
		r.container(n)
		r.depth--
	case '"':
		r.skipString()
	default:
		for r.pos < len(r.text) && !strings.ContainsRune(" \t\r\n,]}", rune(r.text[r.pos])) {
			r.pos++
		}
	}
	n.raw = r.text[start:r.pos]
	return n
}

// container reads the members of an object or an array, from its opening to its closing bracket.
func (r *reader) container(n *node) {
	object := r.text[r.pos] == '{'
	r.pos++
	for r.space(); r.text[r.pos] != '}' && r.text[r.pos] != ']'; r.space() {
		if r.text[r.pos] == ',' {
			r.pos++
			continue
		}
		if !object {
			n.members = append(n.members, member{value: r.value()})
			continue
		}
		key := unquote(r.skipString())
		r.space()
		r.pos++ // the colon
		value := r.value()
		n.set(key, value)
		r.remember(key, value)
	}
	r.pos++
}

// remember keeps what decides how references resolve.
func (r *reader) remember(key string, value *node) {
	if key != "$ref" && key != "$dynamicRef" && key != "$id" {
		return
	}
	s, ok := value.str()
	switch {
	case !ok:
	case key != "$id":
		r.refs = append(r.refs, s)
	case r.depth > 1 && !strings.HasPrefix(s, "#"):
		r.rebased = true
	}
}

func (r *reader) space() {
	for r.pos < len(r.text) {
		switch r.text[r.pos] {
		case ' ', '\t', '\r', '\n':
			r.pos++
		default:
			return
		}
	}
}

func (r *reader) skipString() string {
	start := r.pos
	for r.pos++; r.text[r.pos] != '"'; r.pos++ {
		if r.text[r.pos] == '\\' {
			r.pos++
		}
	}
	r.pos++
	return r.text[start:r.pos]
}

// indexed is the size from which a map finds a key faster than a look at every member.
const indexed = 16

// set adds a member; a key that comes twice keeps its place and takes the later value, as in encoding/json.
func (n *node) set(key string, value *node) {
	if i := n.find(key); i >= 0 {
		n.members[i].value = value
		return
	}
	n.members = append(n.members, member{key, value})
	switch {
	case n.index != nil:
		n.index[key] = len(n.members) - 1
	case len(n.members) == indexed:
		n.index = make(map[string]int, 2*indexed)
		for i, m := range n.members {
			n.index[m.key] = i
		}
	}
}

func (n *node) find(key string) int {
	if n.index != nil {
		if i, ok := n.index[key]; ok {
			return i
		}
		return -1
	}
	for i := range n.members {
		if n.members[i].key == key {
			return i
		}
	}
	return -1
}

// get returns the member named key, or nil. It may be asked of nil and of any value, as schemas may be malformed.
func (n *node) get(key string) *node {
	if !n.isObject() {
		return nil
	}
	if i := n.find(key); i >= 0 {
		return n.members[i].value
	}
	return nil
}

// list returns the elements of the array named key.
func (n *node) list(key string) []member {
	if v := n.get(key); v.isArray() {
		return v.members
	}
	return nil
}

func (n *node) isObject() bool { return n != nil && n.raw[0] == '{' }
func (n *node) isArray() bool  { return n != nil && n.raw[0] == '[' }
func (n *node) isTrue() bool   { return n != nil && n.raw == "true" }
func (n *node) isFalse() bool  { return n != nil && n.raw == "false" }

func (n *node) isNumber() bool {
	return n != nil && (n.raw[0] == '-' || n.raw[0] >= '0' && n.raw[0] <= '9')
}

func (n *node) str() (string, bool) {
	if n == nil || n.raw[0] != '"' {
		return "", false
	}
	return unquote(n.raw), true
}

func unquote(raw string) string {
	if !strings.Contains(raw, `\`) {
		return raw[1 : len(raw)-1]
	}
	var s string
	_ = json.Unmarshal([]byte(raw), &s) // valid already
	return s
}

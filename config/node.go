package config

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"

	"github.com/tailscale/hujson"
)

// node is a value in the file and its path.
type node struct {
	value hujson.Value
	path  string
}

// member is a member of an object. Its name and its value have the same path.
type member struct {
	key         string
	name, value node
}

// nodeAt returns a node for an offset in the file without a value.
func nodeAt(offset int) node {
	return node{value: hujson.Value{StartOffset: offset}}
}

func (n node) kind() hujson.Kind { return n.value.Value.Kind() }

// literal returns the value of a node that is neither an object nor an array.
func (n node) literal() hujson.Literal {
	l, _ := n.value.Value.(hujson.Literal)
	return l
}

// members returns the members of an object; none for another value.
func (n node) members() []member {
	object, ok := n.value.Value.(*hujson.Object)
	if !ok {
		return nil
	}
	members := make([]member, len(object.Members))
	for i, m := range object.Members {
		key := keyOf(m)
		path := n.pathTo(key)
		members[i] = member{key: key, name: node{m.Name, path}, value: node{m.Value, path}}
	}
	return members
}

// member returns the member with this key. It builds no other paths (BenchmarkParse).
func (n node) member(key string) (member, bool) {
	object, _ := n.value.Value.(*hujson.Object)
	for i := 0; object != nil && i < len(object.Members); i++ {
		if m := object.Members[i]; keyOf(m) == key {
			path := n.pathTo(key)
			return member{key: key, name: node{m.Name, path}, value: node{m.Value, path}}, true
		}
	}
	return member{}, false
}

func keyOf(m hujson.ObjectMember) string { return decoded(m.Name.Value.(hujson.Literal)) }

// decoded returns the text of a string. Few strings have escapes.
func decoded(raw hujson.Literal) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	return raw.String()
}

// elements returns the elements of an array; none for another value.
func (n node) elements() []node {
	array, ok := n.value.Value.(*hujson.Array)
	if !ok {
		return nil
	}
	elements := make([]node, len(array.Elements))
	for i, e := range array.Elements {
		elements[i] = node{e, fmt.Sprintf("%s[%d]", n.path, i)}
	}
	return elements
}

// pathTo returns the path of a member. A key with odd characters is quoted.
func (n node) pathTo(key string) string {
	switch {
	case key == "" || strings.ContainsFunc(key, isOddInPath):
		return fmt.Sprintf("%s[%q]", n.path, key)
	case n.path == "":
		return key
	}
	return n.path + "." + key
}

// isOddInPath reports whether a character makes a path hard to read.
func isOddInPath(c rune) bool {
	return !unicode.IsLetter(c) && !unicode.IsNumber(c) && c != '_' && c != '$' && c != '-'
}

// describe names the value in a message. It leaves out the text of a string, which may
// be a secret.
func (n node) describe() string {
	switch n.kind() {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case '0':
		return "number " + n.literal().String()
	case 'n':
		return "null"
	}
	return "boolean " + n.literal().String()
}

package jsonc

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/tailscale/hujson"
)

// Node is a value in the file and its path.
type Node struct {
	Path  string // mcpServers.time.args[0]
	value hujson.Value
}

// Member is a member of an object. Its name and its value have the same path.
type Member struct {
	Key         string
	Name, Value Node
}

// nodeAt returns a node for an offset in the file without a value.
func nodeAt(offset int) Node {
	return Node{value: hujson.Value{StartOffset: offset}}
}

// Kind returns the first character of the value in JSON; '0' for a number.
func (n Node) Kind() hujson.Kind { return n.value.Value.Kind() }

// Literal returns the value of a node that is neither an object nor an array.
func (n Node) Literal() hujson.Literal {
	l, _ := n.value.Value.(hujson.Literal)
	return l
}

// Members returns the members of an object; none for another value.
func (n Node) Members() []Member {
	object, ok := n.value.Value.(*hujson.Object)
	if !ok {
		return nil
	}
	members := make([]Member, len(object.Members))
	for i, m := range object.Members {
		members[i] = n.member(m)
	}
	return members
}

// Member returns the member with this key. It builds no other paths (BenchmarkParse in config).
func (n Node) Member(key string) (Member, bool) {
	object, ok := n.value.Value.(*hujson.Object)
	if !ok {
		return Member{}, false
	}
	i := slices.IndexFunc(object.Members, func(m hujson.ObjectMember) bool { return keyOf(m) == key })
	if i < 0 {
		return Member{}, false
	}
	return n.member(object.Members[i]), true
}

func (n Node) member(m hujson.ObjectMember) Member {
	key := keyOf(m)
	path := n.pathTo(key)
	return Member{Key: key, Name: Node{path, m.Name}, Value: Node{path, m.Value}}
}

func keyOf(m hujson.ObjectMember) string { return decoded(m.Name.Value.(hujson.Literal)) }

// Text returns the text of a string; "" for another value.
func (n Node) Text() string {
	if n.Kind() != '"' {
		return ""
	}
	return decoded(n.Literal())
}

// decoded returns the text of a string. Few strings have escapes.
func decoded(raw hujson.Literal) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	return raw.String()
}

// Elements returns the elements of an array; none for another value.
func (n Node) Elements() []Node {
	array, ok := n.value.Value.(*hujson.Array)
	if !ok {
		return nil
	}
	elements := make([]Node, len(array.Elements))
	for i, e := range array.Elements {
		elements[i] = n.element(i, e)
	}
	return elements
}

func (n Node) element(i int, e hujson.Value) Node { return Node{fmt.Sprintf("%s[%d]", n.Path, i), e} }

// Missing returns a node for a member that the object lacks: it has the object's position.
func (n Node) Missing(key string) Node { return Node{n.pathTo(key), n.value} }

// pathTo returns the path of a member. A key with odd characters is quoted.
func (n Node) pathTo(key string) string {
	switch {
	case key == "" || strings.ContainsFunc(key, isOddInPath):
		return fmt.Sprintf("%s[%q]", n.Path, key)
	case n.Path == "":
		return key
	}
	return n.Path + "." + key
}

// isOddInPath reports whether a character makes a path hard to read.
func isOddInPath(c rune) bool {
	return !unicode.IsLetter(c) && !unicode.IsNumber(c) && c != '_' && c != '$' && c != '-'
}

// Describe names the value in a message. It leaves out the text of a string, which may
// be a secret.
func (n Node) Describe() string {
	switch n.Kind() {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case '0':
		return "number " + n.Literal().String()
	case 'n':
		return "null"
	}
	return "boolean " + n.Literal().String()
}

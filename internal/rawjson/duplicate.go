package rawjson

import (
	"bytes"
	"slices"
	"strconv"
)

// DuplicateKey returns the path to the first key that occurs twice in an object of
// b. It returns nil if there is none, or if b is not valid JSON. Keys are compared
// after decoding; keys that differ only in halves of surrogate pairs are
// different. Two readers of such an object may use different values for the key.
func DuplicateKey(b []byte) []string {
	c := cursor{b: b}
	path, _ := c.duplicateKey(0)
	slices.Reverse(path) // it was collected from the inside out
	return path
}

// manyKeys is how many keys of an object are compared one by one; further keys go
// into a map. Few arguments have that many.
const manyKeys = 16

// duplicateKey moves past one value and returns the path to a duplicate key, innermost
// first.
func (c *cursor) duplicateKey(depth int) (path []string, err error) {
	c.space()
	if first := c.peek(); first != '{' && first != '[' {
		return nil, c.value(depth)
	}
	few := make([][]byte, 0, manyKeys) // as written, with their quotes
	var many map[string]bool
	in := c.open(depth)
	for i := 0; c.next(&in); i++ {
		if in.key == nil {
			if path, in.err = c.duplicateKey(depth + 1); path != nil {
				return append(path, strconv.Itoa(i)), nil
			}
			continue
		}
		if len(few) == manyKeys {
			if many == nil {
				many = map[string]bool{}
			}
			for _, key := range few {
				many[exactKey(key)] = true
			}
			few = few[:0]
		}
		if containsKey(few, in.key) || many != nil && many[exactKey(in.key)] {
			return []string{decoded(in.key)}, nil
		}
		few = append(few, in.key)
		if path, in.err = c.duplicateKey(depth + 1); path != nil {
			return append(path, decoded(in.key)), nil
		}
	}
	return nil, in.err
}

// containsKey reports whether one of the keys decodes to the same text as key.
func containsKey(keys [][]byte, key []byte) bool {
	escaped := bytes.IndexByte(key, '\\') >= 0
	for _, k := range keys {
		if bytes.Equal(k, key) || (escaped || bytes.IndexByte(k, '\\') >= 0) && exactKey(k) == exactKey(key) {
			return true
		}
	}
	return false
}

func decoded(key []byte) string {
	text, _ := String(key)
	return text
}

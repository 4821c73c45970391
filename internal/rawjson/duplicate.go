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
	if len(b) == 0 {
		return nil
	}
	var room [24][]byte
	f := duplicateFinder{cursor: cursor{b: b}, keys: room[:0]}
	path, _ := f.find(0)
	slices.Reverse(path) // it was collected from the inside out
	return path
}

// duplicateFinder walks over a value and keeps the keys of the objects around the
// cursor.
type duplicateFinder struct {
	cursor
	keys [][]byte // as written, with their quotes; those of the inner objects last
}

// manyKeys is how many keys of an object are compared one by one; further keys go
// into a map. Few arguments have that many.
const manyKeys = 16

// find moves past one value and returns the path to a duplicate key, innermost
// first.
func (f *duplicateFinder) find(depth int) (path []string, err error) {
	f.space()
	if first := f.peek(); first != '{' && first != '[' {
		return nil, f.value(depth)
	}
	base := len(f.keys)
	defer func() { f.keys = f.keys[:base] }()
	var many map[string]bool
	in := f.open(depth)
	for i := 0; f.next(&in); i++ {
		if in.key == nil {
			if path, in.err = f.find(depth + 1); path != nil {
				return append(path, strconv.Itoa(i)), nil
			}
			continue
		}
		if len(f.keys)-base == manyKeys {
			if many == nil {
				many = map[string]bool{}
			}
			for _, key := range f.keys[base:] {
				many[exactKey(key)] = true
			}
			f.keys = f.keys[:base]
		}
		if containsKey(f.keys[base:], in.key) || many != nil && many[exactKey(in.key)] {
			return []string{decoded(in.key)}, nil
		}
		f.keys = append(f.keys, in.key)
		if path, in.err = f.find(depth + 1); path != nil {
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

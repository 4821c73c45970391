package rawjson

import (
	"bytes"
	"slices"
	"strconv"
)

// Twice is the path to the first key that an object in b gives twice, nil if
// there is none, or if b is no JSON value. Keys are compared as they read: an
// escape makes no other key of one, and keys that differ only in halves of
// surrogate pairs are different. Two readers of such an object may take different
// values for the same key.
func Twice(b []byte) []string {
	if len(b) == 0 {
		return nil
	}
	var room [24][]byte
	s := twiceScanner{scanner: scanner{b: b}, keys: room[:0]}
	path := s.find(0)
	slices.Reverse(path) // it was found from the inside
	return path
}

// twiceScanner walks over a value and remembers the keys of the objects it is in.
type twiceScanner struct {
	scanner
	keys [][]byte // as they are written, with their quotes; those of the inner objects last
}

// manyKeys is how many keys of an object are compared one by one; then they go
// into a map. Arguments are smaller, and need none.
const manyKeys = 16

// find moves past one value and returns the path of a key given twice, backwards.
// At what is no JSON it stops, without one.
func (s *twiceScanner) find(depth int) []string {
	s.space()
	switch {
	case depth >= MaxDepth:
		s.i = len(s.b)
	case s.peek() == '{':
		return s.object(depth)
	case s.peek() == '[':
		return s.array(depth)
	case s.value(depth) != nil:
		s.i = len(s.b)
	}
	return nil
}

func (s *twiceScanner) object(depth int) []string {
	base := len(s.keys)
	defer func() { s.keys = s.keys[:base] }()
	var many map[string]bool
	s.i++ // {
	for {
		s.space()
		start := s.i
		if s.peek() != '"' || s.text() != nil {
			break
		}
		key := s.b[start:s.i]
		s.space()
		if s.peek() != ':' {
			break
		}
		s.i++
		if len(s.keys)-base == manyKeys {
			many = names(many, s.keys[base:])
			s.keys = s.keys[:base]
		}
		if among(key, s.keys[base:]) || many != nil && many[exactKey(key)] {
			return []string{name(key)}
		}
		s.keys = append(s.keys, key)
		if path := s.find(depth + 1); path != nil {
			return append(path, name(key))
		}
		if last, err := s.next('}'); last || err != nil {
			return nil
		}
	}
	if s.peek() == '}' { // it was empty
		s.i++
	} else {
		s.i = len(s.b)
	}
	return nil
}

func (s *twiceScanner) array(depth int) []string {
	s.i++ // [
	s.space()
	if s.peek() == ']' {
		s.i++
		return nil
	}
	for i := 0; ; i++ {
		if path := s.find(depth + 1); path != nil {
			return append(path, strconv.Itoa(i))
		}
		if last, err := s.next(']'); last || err != nil {
			return nil
		}
	}
}

// among reports whether one of the keys reads as this one.
func among(key []byte, keys [][]byte) bool {
	escaped := bytes.IndexByte(key, '\\') >= 0
	for _, k := range keys {
		if bytes.Equal(k, key) || (escaped || bytes.IndexByte(k, '\\') >= 0) && exactKey(k) == exactKey(key) {
			return true
		}
	}
	return false
}

// names adds keys to those that are known.
func names(known map[string]bool, keys [][]byte) map[string]bool {
	if known == nil {
		known = map[string]bool{}
	}
	for _, key := range keys {
		known[exactKey(key)] = true
	}
	return known
}

// name is a key as it is shown.
func name(key []byte) string {
	text, _ := String(key)
	return text
}

// Package rawjson reads JSON that stays JSON: it checks a text in one pass and
// finds the spans of its members without decoding them. encoding/json would
// fold the case of keys, lose their order and copy every value.
package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// MaxDepth is how deep values may nest.
const MaxDepth = 256

// What can be wrong with a text.
var (
	ErrSyntax = errors.New("not valid JSON")
	ErrDepth  = errors.New("JSON nested too deep")
)

// Check reports whether b is exactly one JSON value.
func Check(b []byte) error {
	s := scanner{b: b}
	if err := s.value(0); err != nil {
		return err
	}
	return s.end()
}

// Object checks that b is exactly one JSON object, and calls visit with each
// of its members, until it returns false: the decoded key and the value's bytes.
// Both are parts of b, unless the key has escapes: who keeps one for long keeps
// all of b, and who changes b changes them.
func Object(b []byte, visit func(key string, value []byte) (more bool)) error {
	s := scanner{b: b}
	s.space()
	if s.peek() != '{' {
		if err := Check(b); err != nil {
			return err
		}
		return errors.New("not an object")
	}
	if stopped, err := s.members(visit); stopped || err != nil {
		return err
	}
	return s.end()
}

// Members are the members of an object that was checked before; none if it is
// something else.
func Members(object []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		_ = Object(object, yield)
	}
}

// RawMembers are Members with each key as it was written, in its quotes. Who writes
// an object again needs them: a key can have characters that Go strings have not.
func RawMembers(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		s := scanner{b: object}
		s.space()
		if s.peek() != '{' {
			return
		}
		last, err := s.open(0, '}')
		for !last && err == nil {
			var key, value []byte
			if key, value, err = s.member(0); err != nil || !yield(key, value) {
				return
			}
			last, err = s.next('}')
		}
	}
}

// Elements are the elements of an array that was checked before; none if it is
// something else.
func Elements(array []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		s := scanner{b: array}
		s.space()
		if s.peek() != '[' {
			return
		}
		_ = s.elements(yield)
	}
}

// Get is the value of an object's member, nil if there is none. Of several
// members with that key it is the last, as for any decoder.
func Get(object []byte, key string) []byte {
	var found []byte
	_ = Object(object, func(k string, value []byte) bool {
		if k == key {
			found = value
		}
		return true
	})
	return found
}

// String decodes a JSON string; ok is false for anything else.
func String(value []byte) (s string, ok bool) {
	s, ok = View(value)
	return strings.Clone(s), ok
}

// View is String without a copy: the text is a part of value, unless it has
// escapes.
func View(value []byte) (s string, ok bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	inner := value[1 : len(value)-1]
	if plain(inner) {
		return unsafe.String(unsafe.SliceData(inner), len(inner)), true
	}
	return unescape(value)
}

// unescape is apart from View so that what has no escapes stays off the heap.
func unescape(value []byte) (s string, ok bool) {
	err := json.Unmarshal(value, &s)
	return s, err == nil
}

// AppendString appends s to b as a JSON string. Only what must be is escaped:
// json.Marshal would write < and > as six bytes, which a reader pays for.
func AppendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i, r := range s {
		if r >= 0x20 && r != '"' && r != '\\' && r != utf8.RuneError {
			continue
		}
		b = append(b, s[start:i]...)
		width := 1
		switch r {
		case '"', '\\':
			b = append(b, '\\', byte(r))
		case '\n':
			b = append(b, `\n`...)
		case '\t':
			b = append(b, `\t`...)
		case utf8.RuneError: // bytes that are not UTF-8, or the character itself
			_, width = utf8.DecodeRuneInString(s[i:])
			b = append(b, "\ufffd"...)
		default:
			const hex = "0123456789abcdef"
			b = append(b, '\\', 'u', '0', '0', hex[r>>4], hex[r&0xf])
		}
		start = i + width
	}
	return append(append(b, s[start:]...), '"')
}

// Kind is the first character of a value: one of { [ " t f n or a digit or
// minus; 0 for an empty text.
func Kind(value []byte) byte {
	s := scanner{b: value}
	s.space()
	return s.peek()
}

// IsNull reports whether the value is absent or null.
func IsNull(value []byte) bool { return len(value) == 0 || Kind(value) == 'n' }

// OrObject returns the value if it is an object, and an empty one if it is not.
func OrObject(value []byte) []byte {
	if Kind(value) != '{' {
		return []byte("{}")
	}
	return value
}

// plain reports whether the inside of a JSON string stands for itself.
func plain(b []byte) bool {
	for _, c := range b {
		if c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Compact returns the value without white space between its tokens.
func Compact(value []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, value) != nil {
		return value
	}
	return b.Bytes()
}

// With returns the object with one member set, in its old place if it had one. A
// nil value removes it. A nil object counts as an empty one.
func With(object []byte, key string, value []byte) []byte {
	b := append(make([]byte, 0, len(object)+len(key)+len(value)+len(`"":,`)), '{')
	set := false
	for k, v := range RawMembers(object) {
		if name, _ := View(k); name == key {
			if set {
				continue
			}
			v, set = value, true
		}
		b = AppendRawMember(b, k, v)
	}
	if !set {
		b = AppendMember(b, key, value)
	}
	return append(b, '}')
}

// AppendMember appends a member to an object that is being written, with the
// comma it needs; nothing if the value is nil.
func AppendMember(object []byte, key string, value []byte) []byte {
	if value == nil {
		return object
	}
	object = append(AppendString(appendComma(object), key), ':')
	return append(object, value...)
}

// AppendRawMember is AppendMember with a key as RawMembers has it.
func AppendRawMember(object, key, value []byte) []byte {
	if value == nil {
		return object
	}
	object = append(append(appendComma(object), key...), ':')
	return append(object, value...)
}

// appendComma appends the comma that the next member of an object needs.
func appendComma(object []byte) []byte {
	if object[len(object)-1] == '{' {
		return object
	}
	return append(object, ',')
}

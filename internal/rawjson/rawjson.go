// Package rawjson reads JSON without decoding it: it checks a text in one pass and
// finds where its members are. encoding/json would fold the case of keys, lose
// their order and copy every value.
package rawjson

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"unicode/utf8"
	"unsafe"

	"mcpx/internal/work"
)

// MaxDepth limits the nesting of objects and arrays.
const MaxDepth = 256

// Check returns these errors.
var (
	ErrSyntax = errors.New("not valid JSON")
	ErrDepth  = errors.New("JSON nested too deep")
)

// Check reports whether b is exactly one JSON value.
func Check(b []byte) error { return check(cursor{b: b}) }

// CheckContext is Check for a long text. It fails soon after the context ends.
func CheckContext(ctx context.Context, b []byte) error {
	return check(cursor{b: b, watch: work.NewWatch(ctx)})
}

func check(c cursor) error {
	if err := c.value(0); err != nil {
		return err
	}
	return c.end()
}

// Object checks that b is exactly one JSON object. It calls visit with the decoded
// key and the raw value of each member, until visit returns false. Both are parts
// of b, unless the key has escapes: keeping one keeps all of b in memory, and
// changing b changes them.
func Object(b []byte, visit func(key string, value []byte) (more bool)) error {
	c := cursor{b: b}
	c.space()
	if c.peek() != '{' {
		if err := Check(b); err != nil {
			return err
		}
		return errors.New("not an object")
	}
	in := c.open(0)
	for c.next(&in) {
		start := c.i
		if in.err = c.value(1); in.err != nil {
			break
		}
		if key, _ := View(in.key); !visit(key, b[start:c.i:c.i]) {
			return nil
		}
	}
	if in.err != nil {
		return in.err
	}
	return c.end()
}

// Members returns the members of an object that was checked before. Other values
// have none.
func Members(object []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		_ = Object(object, yield)
	}
}

// RawMembers is Members with each key as written, in its quotes. Code that writes
// an object again needs these keys: a Go string cannot hold half of a surrogate
// pair.
func RawMembers(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		for child := range Children(object, 0) {
			if child.Key == nil || !yield(child.Key, object[child.Value:child.End:child.End]) {
				return
			}
		}
	}
}

// Elements returns the elements of an array that was checked before. Other values
// have none.
func Elements(array []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for child := range Children(array, 0) {
			if child.Key != nil || !yield(array[child.Value:child.End:child.End]) {
				return
			}
		}
	}
}

// Get returns the value of an object's member, nil if there is none. If the key
// occurs more than once, the last one counts, as for any decoder.
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

// GetString returns a string member of an object, "" if there is none.
func GetString(object []byte, key string) string {
	s, _ := String(Get(object, key))
	return s
}

// View is String without a copy: the result shares the memory of value, unless the
// string has escapes.
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

// unescape is separate from View so that strings without escapes stay off the heap.
func unescape(value []byte) (s string, ok bool) {
	err := json.Unmarshal(value, &s)
	return s, err == nil
}

// Bytes returns the bytes of a text without a copy. Nobody may change them.
func Bytes(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }

// Text returns bytes as a text without a copy. Nobody may change them.
func Text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// AppendString appends s to b as a JSON string. It escapes no more than it must:
// json.Marshal would write < and > as six bytes each.
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

// Kind returns the first character of a value: one of { [ " t f n, a digit or
// minus; 0 for an empty text.
func Kind(value []byte) byte {
	c := cursor{b: value}
	c.space()
	return c.peek()
}

// IsNull reports whether the value is absent or null.
func IsNull(value []byte) bool { return len(value) == 0 || Kind(value) == 'n' }

// IsNumber reports whether a text is exactly a JSON number, without white space.
func IsNumber(text []byte) bool {
	c := cursor{b: text}
	return c.number() == nil && c.i == len(text)
}

// OrObject returns the value if it is an object, and an empty one if it is not.
func OrObject(value []byte) []byte {
	if Kind(value) != '{' {
		return []byte("{}")
	}
	return value
}

// plain reports whether the inside of a JSON string is ASCII without escapes.
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

// EqualCompact reports whether two valid JSON texts differ only in white space between their
// tokens.
func EqualCompact(a, b []byte) bool {
	c, d := cursor{b: a}, cursor{b: b}
	for isText := false; ; c.i, d.i = c.i+1, d.i+1 {
		if !isText {
			c.space()
			d.space()
		}
		sign := c.peek()
		switch {
		case sign != d.peek():
			return false
		case sign == 0:
			return true
		case sign == '"':
			isText = !isText
		case sign == '\\': // it is in a string
			if c.i, d.i = c.i+1, d.i+1; c.peek() != d.peek() {
				return false
			}
		}
	}
}

// AppendCompact appends a value, which must be valid JSON, without white space between its
// tokens. It stops when b has more than limit bytes.
func AppendCompact(b, value []byte, limit int) []byte {
	c := cursor{b: value}
	for c.space(); c.i < len(value) && len(b) <= limit; c.space() {
		start := c.i
		if value[start] == '"' {
			_ = c.text()
		}
		for c.i < len(value) && value[c.i] > ' ' && value[c.i] != '"' {
			c.i++
		}
		b = append(b, value[start:min(c.i, start+max(0, limit-len(b))+1)]...)
	}
	return b
}

// With returns the object with one member set, at its old place if it had one. A
// nil value removes the member. A nil object counts as empty.
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

// AppendMember appends a member, with the comma it needs, to an object that is
// being written. A nil value appends nothing.
func AppendMember(object []byte, key string, value []byte) []byte {
	if value == nil {
		return object
	}
	object = append(AppendString(appendComma(object), key), ':')
	return append(object, value...)
}

// AppendRawMember is AppendMember with a key in its quotes, as RawMembers returns it.
func AppendRawMember(object, key, value []byte) []byte {
	if value == nil {
		return object
	}
	object = append(append(appendComma(object), key...), ':')
	return append(object, value...)
}

// AppendElement appends an element, with the comma it needs, to an array that is being
// written.
func AppendElement(array, value []byte) []byte { return append(appendComma(array), value...) }

// appendComma appends the comma that the next member or element needs.
func appendComma(container []byte) []byte {
	if last := container[len(container)-1]; last == '{' || last == '[' {
		return container
	}
	return append(container, ',')
}

// Encode returns a Go value as JSON. Unlike json.Marshal it leaves <, > and & readable. It
// panics if the type of the value has no JSON form.
func Encode(value any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		panic(err)
	}
	return bytes.TrimSpace(b.Bytes())
}

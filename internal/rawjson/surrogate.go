package rawjson

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON strings are UTF-16: an escape may name half of a surrogate pair alone.
// Go strings are UTF-8, which has no such character, and encoding/json puts
// U+FFFD in its place. Then different strings read the same.

// HasLoneSurrogate reports whether a string in the JSON text b has half of a
// surrogate pair.
func HasLoneSurrogate(b []byte) bool {
	for {
		i := bytes.IndexByte(b, '\\')
		if i < 0 || i+1 == len(b) {
			return false
		}
		b = b[i:]
		r, size := decodeEscape(b)
		if utf16.IsSurrogate(r) {
			return true
		}
		b = b[size:]
	}
}

// exactKey decodes a JSON string so that different strings stay different: half
// of a surrogate pair gets the three bytes that UTF-8 would give it (WTF-8).
func exactKey(quoted []byte) string {
	rest := quoted[1 : len(quoted)-1]
	var b []byte
	for {
		i := bytes.IndexByte(rest, '\\')
		if i < 0 {
			return string(append(b, rest...))
		}
		b = append(b, rest[:i]...)
		r, size := decodeEscape(rest[i:])
		if utf16.IsSurrogate(r) {
			b = append(b, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
		} else {
			b = utf8.AppendRune(b, r)
		}
		rest = rest[i+size:]
	}
}

// decodeEscape decodes the escape at the start of b, both halves of a surrogate
// pair together, and returns its length. b must be from valid JSON.
func decodeEscape(b []byte) (r rune, size int) {
	if b[1] != 'u' {
		return shortEscapes[b[1]], len(`\n`)
	}
	r = escapedUnit(b)
	const one = len(`\u0000`)
	if utf16.IsSurrogate(r) && escape(b[one:]) == one {
		if pair := utf16.DecodeRune(r, escapedUnit(b[one:])); pair != utf8.RuneError {
			return pair, 2 * one
		}
	}
	return r, one
}

// escapedUnit is the UTF-16 unit of \uXXXX at the start of b.
func escapedUnit(b []byte) rune {
	unit, _ := strconv.ParseUint(string(b[2:6]), 16, 16)
	return rune(unit)
}

var shortEscapes = [256]rune{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

package lockfile

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"mcpx/internal/rawjson"
)

// Canonical returns the canonical form (RFC 8785) of a JSON value that was checked before:
// no white space, keys in the order of their UTF-16 code units, one spelling for each
// string and number. Values that the RFC excludes stay different: duplicate keys keep
// their order, halves of surrogate pairs stay escaped, and integers that a double cannot
// hold keep their digits.
func Canonical(value []byte) []byte { return appendCanonical(nil, bytes.TrimSpace(value)) }

func appendCanonical(b, value []byte) []byte {
	switch rawjson.Kind(value) {
	case '{':
		return appendObject(b, value)
	case '[':
		b = append(b, '[')
		first := true
		for element := range rawjson.Elements(value) {
			if !first {
				b = append(b, ',')
			}
			first = false
			b = appendCanonical(b, element)
		}
		return append(b, ']')
	case '"':
		return appendUnits(b, codeUnits(value))
	case 't', 'f', 'n':
		return append(b, value...)
	}
	return append(b, canonicalNumber(string(value))...)
}

func appendObject(b, object []byte) []byte {
	type member struct {
		key   []uint16
		value []byte
	}
	var members []member
	for key, value := range rawjson.RawMembers(object) {
		members = append(members, member{codeUnits(key), value})
	}
	slices.SortStableFunc(members, func(a, b member) int { return slices.Compare(a.key, b.key) })
	b = append(b, '{')
	for i, m := range members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendUnits(b, m.key), ':')
		b = appendCanonical(b, m.value)
	}
	return append(b, '}')
}

// codeUnits decodes a JSON string, in its quotes, to UTF-16.
func codeUnits(quoted []byte) []uint16 {
	text := string(quoted[1 : len(quoted)-1])
	units := make([]uint16, 0, len(text))
	for len(text) > 0 {
		if text[0] != '\\' {
			r, size := utf8.DecodeRuneInString(text)
			units = utf16.AppendRune(units, r)
			text = text[size:]
			continue
		}
		if text[1] == 'u' {
			unit, _ := strconv.ParseUint(text[2:6], 16, 16)
			units = append(units, uint16(unit))
			text = text[6:]
			continue
		}
		units = append(units, uint16(unescaped[text[1]]))
		text = text[2:]
	}
	return units
}

// unescaped has the characters after a backslash.
var unescaped = map[byte]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escapes are the short escapes of the RFC.
var escapes = map[rune]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}

// appendUnits appends UTF-16 as a JSON string.
func appendUnits(b []byte, units []uint16) []byte {
	b = append(b, '"')
	for i := 0; i < len(units); i++ {
		r := rune(units[i])
		if i+1 < len(units) {
			if pair := utf16.DecodeRune(r, rune(units[i+1])); pair != utf8.RuneError {
				b = utf8.AppendRune(b, pair)
				i++
				continue
			}
		}
		switch short := escapes[r]; {
		case short != "":
			b = append(b, short...)
		case r < 0x20, utf16.IsSurrogate(r):
			b = fmt.Appendf(b, `\u%04x`, r)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}

// maxSafe is the largest integer up to which a double holds every integer.
const maxSafe = 1 << 53

// canonicalNumber returns a number as JavaScript writes it.
func canonicalNumber(literal string) string {
	f, err := strconv.ParseFloat(literal, 64)
	switch {
	case err != nil: // too large for a double
		return literal
	case f == 0:
		return "0"
	case math.Abs(f) >= maxSafe && !strings.ContainsAny(literal, ".eE"): // the double may be another integer
		return literal
	case math.Abs(f) >= 1e21 || math.Abs(f) < 1e-6:
		return exponential(f)
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// exponential returns 1e+30 or 1.5e-7: JavaScript writes exponents without leading zeros.
func exponential(f float64) string {
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	return mantissa + "e" + exponent[:1] + strings.TrimLeft(exponent[1:], "0")
}

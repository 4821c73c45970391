package signature

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
)

// maxLiteral bounds a literal, maxDefault a default value, maxName the name of a property, all in bytes as written.
const (
	maxLiteral = 64
	maxDefault = 40
	maxName    = 128
)

// quote writes s as a JSON string that is safe to show: see escape.
func quote(s string) string {
	if strings.ContainsAny(s, `"\`) {
		s = strings.NewReplacer(`"`, `\"`, `\`, `\\`).Replace(s)
	}
	return `"` + escape(s) + `"`
}

// escape replaces what could break a line or deceive its reader (control, bidi, zero-width and other invisible
// characters) by its JSON escape.
func escape(s string) string {
	if strings.IndexFunc(s, unprintable) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case !unprintable(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// key writes the name of a property, quoted unless it is an identifier. It is empty if there is no room for the name.
func key(name string) string {
	if len(name) > maxName {
		return ""
	}
	if isIdentifier(name) {
		return name
	}
	if q := quote(name); len(q) <= maxName {
		return q
	}
	return ""
}

func isIdentifier(s string) bool {
	for i := range len(s) {
		if !isLetter(s[i]) && (i == 0 || !isDigit(s[i])) {
			return false
		}
	}
	return s != ""
}

func isLetter(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c == '$'
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// value writes a default value, or nothing if it is long.
func value(n *node) string {
	if n == nil || len(n.raw) > 4*maxDefault { // long even without its white space
		return ""
	}
	s := compact(n)
	if len(s) > maxDefault {
		return ""
	}
	return s
}

// compact writes a value as JSON without white space.
func compact(n *node) string {
	if s, ok := n.str(); ok {
		return quote(s)
	}
	if len(n.members) == 0 {
		if n.isObject() {
			return "{}"
		}
		if n.isArray() {
			return "[]"
		}
		return n.raw
	}
	parts := make([]string, len(n.members))
	for i, m := range n.members {
		parts[i] = compact(m.value)
		if n.isObject() {
			parts[i] = quote(m.key) + ":" + parts[i]
		}
	}
	s := strings.Join(parts, ",")
	if n.isObject() {
		return "{" + s + "}"
	}
	return "[" + s + "]"
}

package signature

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"

	"mcpx/internal/rawjson"
)

// These limits are in bytes of the text as shown.
const (
	maxLiteral = 64
	maxDefault = 40
	maxName    = 128
)

// quote writes s as a JSON string that is safe to show: see escape.
func quote(s string) string { return `"` + escape(quoteEscapes.Replace(s)) + `"` }

var quoteEscapes = strings.NewReplacer(`"`, `\"`, `\`, `\\`)

// escape writes characters that could break a line or deceive its reader (control, bidi, zero-width and other invisible
// ones) as JSON escapes.
func escape(s string) string {
	if strings.IndexFunc(s, unprintable) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if !unprintable(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// key writes the name of a property, quoted unless it is an identifier. It returns nothing for a long name.
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
func value(n rawjson.Node) string {
	if len(n.Raw()) > 4*maxDefault { // too long even without white space
		return ""
	}
	if s := string(compact(n)); len(s) <= maxDefault {
		return s
	}
	return ""
}

// compact returns a value as JSON that is safe to show, without white space. It may share the
// memory of the schema.
func compact(n rawjson.Node) []byte {
	switch n.Kind() {
	case '"':
		s, _ := n.String()
		return []byte(quote(s))
	case '{':
		b := []byte("{")
		for key, value := range n.Members() {
			b = rawjson.AppendRawMember(b, []byte(quote(key)), compact(value))
		}
		return append(b, '}')
	case '[':
		b := []byte("[")
		for _, element := range n.Elements() {
			b = rawjson.AppendElement(b, compact(element))
		}
		return append(b, ']')
	}
	return n.Raw()
}

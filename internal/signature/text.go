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

// isIdentifier is not a regular expression because large schemas have many names.
func isIdentifier(s string) bool {
	for i, r := range s {
		isLetter := r|0x20 >= 'a' && r|0x20 <= 'z' || r == '_' || r == '$'
		if !isLetter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}

// defaultOf writes the default of a schema, or nothing if it is long. A default of null only says that the parameter is
// optional.
func defaultOf(n rawjson.Node) string {
	value := n.Get("default")
	if rawjson.IsNull(value.Raw()) || len(value.Raw()) > 4*maxDefault { // too long even without white space
		return ""
	}
	if s := compact(value); len(s) <= maxDefault {
		return " = " + s
	}
	return ""
}

// compact returns a value as JSON that is safe to show, without white space.
func compact(n rawjson.Node) string {
	if s, ok := n.String(); ok {
		return quote(s)
	}
	return escape(string(rawjson.Compact(n.Raw())))
}

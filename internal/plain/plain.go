// Package plain makes foreign text safe to show: whatever an upstream sends can neither
// break a line nor control a terminal.
package plain

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Line returns s on one line. Control characters, line breaks, and characters that
// reorder or hide text become escapes; invalid UTF-8 becomes U+FFFD.
func Line(s string) string { return escaped(s, `\n`, " ") }

// escaped escapes the hidden characters of s, and replaces line breaks and tabs.
func escaped(s, lineBreak, tab string) string {
	if clean(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n':
			b.WriteString(lineBreak)
		case r == '\t':
			b.WriteString(tab)
		case !hidden(r):
			b.WriteRune(r)
		default:
			b.WriteString(Escape(r))
		}
	}
	return b.String()
}

// Escape returns the escape of a character, as in Go: \u200b or \U000e0041.
func Escape(r rune) string {
	if r < 0x10000 {
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

func clean(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f {
			return c >= 0x7f && cleanRunes(s[i:])
		}
	}
	return true
}

func cleanRunes(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, hidden) < 0
}

// hidden reports whether a character is invisible but may change the display: controls
// and formats, such as bidi and zero-width characters. The joiner of emoji and of Indic
// scripts is allowed.
func hidden(r rune) bool {
	const zeroWidthJoiner = 0x200d
	return unicode.IsControl(r) || r == 0x2028 || r == 0x2029 || unicode.Is(unicode.Cf, r) && r != zeroWidthJoiner
}

// Joined is Line for prose of several lines: each run of white space becomes one space.
func Joined(s string) string { return Line(strings.Join(strings.Fields(s), " ")) }

// Text is Line for a text of several lines. Line breaks and tabs are kept.
func Text(s string) string { return escaped(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\t") }

// JSON returns a JSON text without hidden characters. They become JSON escapes, so that
// the value stays the same. Line breaks between tokens are kept.
func JSON(text []byte) []byte {
	if clean(strings.ReplaceAll(string(text), "\n", "")) {
		return text
	}
	b := make([]byte, 0, len(text)+64)
	for _, r := range string(text) {
		if r == '\n' || r == '\t' || r == '\r' || !hidden(r) {
			b = utf8.AppendRune(b, r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			b = fmt.Appendf(b, `\u%04x`, unit)
		}
	}
	return b
}

// Cut shortens s to at most limit bytes, at a rune, and marks the cut with an
// ellipsis.
func Cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	const mark = "…"
	return s[:RuneStart(s, max(limit-len(mark), 0))] + mark
}

// RuneStart returns the last offset up to i where a rune starts, or the end of s.
func RuneStart(s string, i int) int {
	i = min(i, len(s))
	for at := i; at >= 0 && at > i-utf8.UTFMax; at-- {
		if at == len(s) || utf8.RuneStart(s[at]) {
			return at
		}
	}
	return i // no rune is longer
}

// Shell returns a command line for a shell: its words, quoted where needed.
func Shell(words ...string) string {
	odd := func(r rune) bool {
		isPlain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=@%+,", r)
		return !isPlain
	}
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = word
		if word == "" || strings.ContainsFunc(word, odd) {
			quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// WithoutLineBreak returns a text without the line break at its end.
func WithoutLineBreak(text string) string {
	return strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
}

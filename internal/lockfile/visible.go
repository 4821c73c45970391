package lockfile

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"mcpx/internal/plain"
)

// visible returns a text on one line in which every character can be seen: controls, line
// breaks, zero-width, bidirectional and tag characters, variation selectors, unusual
// spaces and private characters become escapes. Unlike plain.Line it keeps none of them,
// because a review must show what hides.
func visible(text string) string {
	if strings.IndexFunc(text, isInvisible) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case !isInvisible(r):
			b.WriteRune(r)
		default:
			b.WriteString(plain.Escape(r))
		}
	}
	return b.String()
}

// blanks are letters and symbols that look like nothing.
var blanks = []rune{0x034f, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x2800, 0x3164, 0xffa0}

// isInvisible reports whether a character is not seen, or changes how others are seen.
func isInvisible(r rune) bool {
	return r == '\n' || r == '\t' || isHidden(r)
}

// isHidden is isInvisible without line breaks and tabs, which are ordinary in descriptions.
func isHidden(r rune) bool {
	switch {
	case r == '\n', r == '\t':
		return false
	case r < 0x7f:
		return r < ' '
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zs, unicode.Zl, unicode.Zp, unicode.Variation_Selector) || slices.Contains(blanks, r)
}

// hiddenCharacters returns how many hidden characters a text has.
func hiddenCharacters(text string) (count int) {
	for _, r := range text {
		if isHidden(r) {
			count++
		}
	}
	return count
}

var address = regexp.MustCompile(`(?i)\b(?:[a-z][a-z0-9+.-]{1,15}://|www\.)[^\s"'<>\\)\]}]+`)

// addresses returns the URLs in a text.
func addresses(text string) []string { return address.FindAllString(text, -1) }

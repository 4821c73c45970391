// Package tokens counts the tokens that a text costs a model, with the encoding o200k_base.
// The vocabulary is a part of the executable: it takes no heap and no time to load.
//
// A text is first split into pieces (split.go): words, numbers, punctuation, white space.
// A piece that is not a token itself is encoded (merge.go) with the ranks of the tokens
// (table.go). Names of special tokens, such as <|endoftext|>, count as ordinary text. A
// byte that is not valid UTF-8 counts as U+FFFD.
//
// Every count equals that of the usual encoders.
package tokens

import (
	"math"
	"strings"
	"unicode/utf8"
	"unsafe"

	"mcpx/internal/plain"
)

// Count returns the number of tokens in text. It is at most len(text), but a prefix of
// text can have more tokens than text.
func Count(text string) int {
	var c counter
	n, _ := c.count(valid(text), math.MaxInt)
	return n
}

// CountBytes returns the number of tokens in text. Nobody may change text meanwhile.
func CountBytes(text []byte) int {
	return Count(unsafe.String(unsafe.SliceData(text), len(text)))
}

// Exceeds reports whether text has more than budget tokens. It reads no further than it
// must to know.
func Exceeds(text string, budget int) bool {
	switch {
	case budget < 0:
		return true
	case len(text) <= budget:
		return false
	case (len(text)-1)/longestToken >= budget:
		return true
	}
	var c counter
	text = valid(text)
	_, end := c.count(text, budget)
	return end < len(text)
}

// Cut returns the length of a prefix of text with at most budget tokens. The prefix ends
// between two runes. It is the longest one, or a few runes shorter. Cut reads at most 128
// bytes of the text for each token in the budget.
func Cut(text string, budget int) int {
	switch {
	case budget <= 0:
		return 0
	case len(text) <= budget:
		return len(text)
	case len(text)/longestToken > budget:
		text = text[:plain.RuneStart(text, longestToken*(budget+1))]
	}
	end := cut(valid(text), budget)
	for i, r := range text { // an invalid byte is longer in the valid text
		if end -= utf8.RuneLen(r); end < 0 {
			return i
		}
	}
	return len(text)
}

// cut is Cut for valid UTF-8.
func cut(text string, budget int) int {
	var c counter
	_, end := c.count(text, budget)
	if end == len(text) {
		return end
	}
	// The pieces up to end fit. Of the next one, its first tokens may fit, too. A shorter
	// piece can be split in another way, and white space at its start can become part of the
	// previous piece, so the new end of the text is counted again.
	budget -= c.before
	for inside, back := c.inside, 1; inside > 0; back *= 2 {
		inside = plain.RuneStart(text, end+inside) - end
		if !Exceeds(text[c.start:end+inside], budget) {
			return end + inside
		}
		inside = max(0, inside-back)
	}
	return end
}

// Shorten returns text with at most budget tokens. A cut is marked with an ellipsis.
func Shorten(text string, budget int) string {
	if !Exceeds(text, budget) {
		return text
	}
	return text[:Cut(text, budget-2)] + "…" // the mark has up to two tokens
}

// counter adds up the tokens of a text. It remembers the last piece that fit. Its memory
// does not depend on the length of the pieces.
type counter struct {
	windows [2]window
	start   int // of the last piece
	before  int // tokens of the pieces before it
	inside  int // bytes of the next piece that fit
}

// count returns the number of tokens in the pieces at the start of text that have at most
// limit tokens together, and where these pieces end.
func (c *counter) count(text string, limit int) (total, end int) {
	for end < len(text) {
		next := split(text, end)
		n, size := c.encode(text[end:next], limit-total)
		if size < next-end {
			c.inside = size
			break
		}
		c.start, c.before = end, total
		total += n
		end = next
	}
	return total, end
}

// valid returns text with U+FFFD for each byte that is not valid UTF-8.
func valid(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	return strings.Map(func(r rune) rune { return r }, text)
}

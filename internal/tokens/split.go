package tokens

import (
	"unicode"
	"unicode/utf8"
)

// split returns the end of the piece that begins at a position before the end of text, which
// must be valid UTF-8. It splits as this pattern of o200k_base does:
//
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	\p{N}{1,3}
//	 ?[^\s\p{L}\p{N}]+[\r\n/]*
//	\s*[\r\n]+
//	\s+(?!\S)
//	\s+
//
// The first line that matches decides. The pattern never looks back, so the pieces after
// a border depend only on the text after it. It is not a regular expression of Go's
// (the sixth line looks ahead), and written by hand it is faster.
func split(text string, at int) int {
	c, size := classAt(text, at)
	if prefixes.has(c) {
		end, small := word(text, at+size)
		if end > at+size && (small || c != mark) {
			return contraction(text, end)
		}
	}
	switch {
	case (capitals | smalls).has(c):
		end, _ := word(text, at)
		return contraction(text, end)
	case c == number:
		return digits(text, at)
	case c == other:
		return punctuation(text, at)
	case text[at] == ' ':
		if next, _ := classAt(text, at+1); next == other {
			return punctuation(text, at+1)
		}
	}
	return whiteSpace(text, at)
}

// class is a kind of rune.
type class uint8

const (
	other    class = iota // punctuation, symbols, control characters
	upper                 // Lu, Lt
	lower                 // Ll
	caseless              // Lm, Lo
	mark                  // M
	number                // N
	space                 // white space
	newline               // \r, \n
	none                  // the end of the text
)

// classes is a set of classes.
type classes uint16

const (
	capitals = classes(1<<upper | 1<<caseless | 1<<mark)
	smalls   = classes(1<<lower | 1<<caseless | 1<<mark)
	prefixes = classes(1<<other | 1<<mark | 1<<space)
	symbols  = classes(1<<other | 1<<mark)
	spaces   = classes(1<<space | 1<<newline)
)

func (s classes) has(c class) bool { return s>>c&1 != 0 }

// word returns the end of the first two lines of the pattern without the optional parts
// at their start and end, and whether the first line matches. If none does, it returns at.
func word(text string, at int) (end int, small bool) {
	lastSmall := 0 // the end of the last rune that is in both sets
	c, size := classAt(text, at)
	for capitals.has(c) {
		at += size
		if c != upper {
			lastSmall = at
		}
		c, size = classAt(text, at)
	}
	switch {
	case c == lower:
		for smalls.has(c) {
			at += size
			c, size = classAt(text, at)
		}
		return at, true
	case lastSmall > 0:
		return lastSmall, true
	}
	return at, false
}

// contraction returns the end of a word with the 's, 't, 're, 've, 'm, 'll or 'd after it.
func contraction(text string, at int) int {
	if at+1 >= len(text) || text[at] != '\'' {
		return at
	}
	second := byte(0)
	if at+2 < len(text) {
		second = text[at+2]
	}
	switch first := text[at+1]; {
	case first|0x20 == 's', first|0x20 == 't', first|0x20 == 'm', first|0x20 == 'd':
		return at + 2
	case first|0x20 == 'r' && second|0x20 == 'e', first|0x20 == 'v' && second|0x20 == 'e', first|0x20 == 'l' && second|0x20 == 'l':
		return at + 3
	case first == "ſ"[0] && second == "ſ"[1]: // the long s is an s in another case
		return at + 3
	}
	return at
}

func digits(text string, at int) int {
	for range 3 {
		c, size := classAt(text, at)
		if c != number {
			break
		}
		at += size
	}
	return at
}

func punctuation(text string, at int) int {
	for c, size := classAt(text, at); symbols.has(c); c, size = classAt(text, at) {
		at += size
	}
	for at < len(text) && (text[at] == '\n' || text[at] == '\r' || text[at] == '/') {
		at++
	}
	return at
}

// whiteSpace returns the end of white space: after its last line break, or else before its last
// rune, which belongs to the next piece, if there is one.
func whiteSpace(text string, at int) int {
	afterBreak, last, start := 0, at, at
	for c, size := classAt(text, at); spaces.has(c); c, size = classAt(text, at) {
		last = at
		at += size
		if c == newline {
			afterBreak = at
		}
	}
	switch {
	case afterBreak > 0:
		return afterBreak
	case at == len(text) || last == start:
		return at
	}
	return last
}

// classAt returns the class and the size of the rune at a position.
func classAt(text string, at int) (class, int) {
	if at >= len(text) {
		return none, 0
	}
	if text[at] < utf8.RuneSelf {
		return ascii[text[at]], 1
	}
	return classOfRune(text[at:])
}

// classOfRune is separate from classAt so that the compiler can inline that.
func classOfRune(text string) (class, int) {
	r, size := utf8.DecodeRuneInString(text)
	return classOf(r), size
}

func classOf(r rune) class {
	switch {
	case 0x4e00 <= r && r <= 0x9fff, 0xac00 <= r && r <= 0xd7a3, 0x3041 <= r && r <= 0x3096:
		return caseless // the usual runes of Chinese, Korean and Japanese, for speed
	case unicode.Is(unicode.Ll, r):
		return lower
	case unicode.Is(unicode.Lu, r), unicode.Is(unicode.Lt, r):
		return upper
	case unicode.IsLetter(r):
		return caseless
	case unicode.IsMark(r):
		return mark
	case unicode.IsNumber(r):
		return number
	case unicode.IsSpace(r):
		return space
	}
	return other
}

// ascii has the classes of the runes of one byte. What is missing is other.
var ascii = [utf8.RuneSelf]class{
	'\t': space, newline, space, space, newline, // \t \n \v \f \r
	' ': space,
	'0': number, number, number, number, number, number, number, number, number, number,
	'A': upper, upper, upper, upper, upper, upper, upper, upper, upper, upper, upper, upper, upper,
	'N': upper, upper, upper, upper, upper, upper, upper, upper, upper, upper, upper, upper, upper,
	'a': lower, lower, lower, lower, lower, lower, lower, lower, lower, lower, lower, lower, lower,
	'n': lower, lower, lower, lower, lower, lower, lower, lower, lower, lower, lower, lower, lower,
}

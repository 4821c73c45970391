package redact

import (
	"iter"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// escaping is a syntax for escaped characters.
type escaping struct {
	mark byte // the first byte of every escape
	// read decodes the escape at the start of a text. It returns the length of
	// the escape, 0 if there is none.
	read func(text string) (decoded string, length int)
}

// The escapings that are decoded.
var (
	backslashes = escaping{'\\', readBackslash} // JSON, Python, Go, C, shells
	percents    = escaping{'%', readPercent}    // URLs
	escapings   = []escaping{backslashes, percents}
)

// piece is a part of a text: an escape, or text without escapes.
type piece struct {
	span
	decoded  string
	isEscape bool
}

// pieces splits a text into escapes and the text between them.
func (e escaping) pieces(text string) iter.Seq[piece] {
	return func(yield func(piece) bool) {
		start := 0 // of the text that has no escapes so far
		for i := 0; i < len(text); {
			next := strings.IndexByte(text[i:], e.mark)
			if next < 0 {
				break
			}
			i += next
			decoded, length := e.read(text[i:])
			if length == 0 {
				i++
				continue
			}
			if start < i && !yield(piece{span{start, i}, text[start:i], false}) {
				return
			}
			if !yield(piece{span{i, i + length}, decoded, true}) {
				return
			}
			i += length
			start = i
		}
		if start < len(text) {
			yield(piece{span{start, len(text)}, text[start:], false})
		}
	}
}

// decode returns the text with its escapes decoded, which is shorter unless
// there are none.
func (e escaping) decode(text string) string {
	if strings.IndexByte(text, e.mark) < 0 {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	for p := range e.pieces(text) {
		b.WriteString(p.decoded)
	}
	return b.String()
}

// origin returns the parts of the text that spans of the decoded text come from.
// The spans must be in order and must not overlap; they are changed in place.
func (e escaping) origin(text string, spans []span) []span {
	if len(spans) == 0 {
		return nil
	}
	at, i, isOpen := 0, 0, false // at: the place in the decoded text; isOpen: spans[i] has begun
	for p := range e.pieces(text) {
		next := at + len(p.decoded)
		for i < len(spans) && (isOpen || spans[i].start < next) {
			s := &spans[i]
			if !isOpen {
				s.start, isOpen = p.origin(s.start-at).start, true
			}
			if s.end > next {
				break
			}
			s.end, isOpen = p.origin(s.end-1-at).end, false
			i++
		}
		at = next
	}
	return spans
}

// origin returns where a byte of the decoded piece comes from.
func (p piece) origin(offset int) span {
	if p.isEscape {
		return p.span
	}
	return span{p.start + offset, p.start + offset + 1}
}

// readBackslash reads an escape of JSON, Python, Go, C or a shell.
func readBackslash(text string) (decoded string, length int) {
	switch {
	case len(text) < 2:
		return "", 0
	case text[1] == 'u':
		return readUTF16(text)
	case text[1] >= ' ' && text[1] < utf8.RuneSelf && !isLetterOrDigit(rune(text[1])): // \" or \$
		return text[1:2], 2
	}
	value, isRune, rest, err := strconv.UnquoteChar(text, 0)
	if err != nil {
		return "", 0
	}
	length = len(text) - len(rest)
	if isRune || value < utf8.RuneSelf {
		return string(value), length
	}
	// A byte. Several may be the UTF-8 of one character; otherwise it is a character
	// itself, as in Python.
	bytes := []byte{byte(value)}
	for len(bytes) < utf8.UTFMax && !utf8.FullRune(bytes) && strings.HasPrefix(rest, `\`) {
		next, isRune, after, err := strconv.UnquoteChar(rest, 0)
		if err != nil || isRune || len(rest)-len(after) != length {
			break
		}
		bytes, rest = append(bytes, byte(next)), after
	}
	if r, _ := utf8.DecodeRune(bytes); r != utf8.RuneError {
		return string(r), length * len(bytes)
	}
	return string(value), length
}

// readUTF16 reads \u00f6 or a surrogate pair.
func readUTF16(text string) (decoded string, length int) {
	code, ok := hex(text, 2, 4)
	if !ok {
		return "", 0
	}
	if r := rune(code); !utf16.IsSurrogate(r) {
		return string(r), 6
	}
	if low, ok := hex(text, 8, 4); ok && text[6:8] == `\u` {
		if r := utf16.DecodeRune(rune(code), rune(low)); r != utf8.RuneError {
			return string(r), 12
		}
	}
	return string(utf8.RuneError), 6
}

// readPercent reads %c3.
func readPercent(text string) (decoded string, length int) {
	code, ok := hex(text, 1, 2)
	if !ok {
		return "", 0
	}
	return string([]byte{byte(code)}), 3
}

// hex reads a number of exactly count hexadecimal digits.
func hex(text string, at, count int) (number uint64, ok bool) {
	if len(text) < at+count {
		return 0, false
	}
	number, err := strconv.ParseUint(text[at:at+count], 16, 32)
	return number, err == nil
}

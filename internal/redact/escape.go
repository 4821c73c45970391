package redact

import (
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

// next decodes the start of a text: an escape, or one byte that is none.
func (e escaping) next(text string) (decoded string, length int) {
	if text[0] == e.mark {
		if decoded, length = e.read(text); length > 0 {
			return decoded, length
		}
	}
	return text[:1], 1
}

// decode returns the text with its escapes decoded, which is shorter unless
// there are none.
func (e escaping) decode(text string) string {
	if strings.IndexByte(text, e.mark) < 0 {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	for {
		end := strings.IndexByte(text, e.mark)
		if end < 0 {
			b.WriteString(text)
			return b.String()
		}
		decoded, length := e.next(text[end:])
		b.WriteString(text[:end])
		b.WriteString(decoded)
		text = text[end+length:]
	}
}

// origin returns the parts of the text that spans of the decoded text come from.
// The spans must be in order and must not overlap; they are changed in place.
func (e escaping) origin(text string, spans []span) []span {
	last, next, at := 0, 0, 0  // what was decoded last, what is next, and where that is in the decoded text
	read := func(offset int) { // up to that byte of the decoded text
		for at <= offset {
			decoded, length := e.next(text[next:])
			last, next, at = next, next+length, at+len(decoded)
		}
	}
	for i, s := range spans {
		read(s.start)
		spans[i].start = last
		read(s.end - 1)
		spans[i].end = next
	}
	return spans
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

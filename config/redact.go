package config

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf16"
	"unicode/utf8"
)

// Hidden is shown in place of a secret.
const Hidden = "***"

// Redact replaces the upstream's secrets in the text by ***: the values of its env,
// headers, args and url, literal or expanded, and each of their lines. It also finds
// them escaped, as JSON, Go, Python, a shell or a URL writes them. Values that are too
// ordinary to be secrets stay. Stored secrets are known once Resolve has read them. It is
// safe for concurrent use.
func (u *Upstream) Redact(text string) string {
	if u.secrets == nil {
		return text
	}
	return u.secrets.redactor.Load().redact(text)
}

// secretSet is what Redact hides for an upstream. Copies of the upstream share it.
type secretSet struct {
	redactor atomic.Pointer[redactor] // of all secrets

	mu       sync.Mutex
	fixed    []string   // secrets that are known from the start
	resolved [][]string // secrets of past starts, the newest last
}

// maxResolved is how many starts with different secrets are remembered: older sessions
// that still run may print older secrets.
const maxResolved = 64

func newSecretSet(fixed []string) *secretSet {
	s := &secretSet{fixed: fixed}
	s.redactor.Store(&redactor{fixed})
	return s
}

// add hides the secrets of another start.
func (s *secretSet) add(secrets []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.resolved, func(old []string) bool { return slices.Equal(old, secrets) }) {
		return
	}
	s.resolved = append(s.resolved, secrets)
	if len(s.resolved) > maxResolved {
		s.resolved = slices.Delete(s.resolved, 0, 1)
	}
	all := slices.Concat(append([][]string{s.fixed}, s.resolved...)...)
	slices.Sort(all)
	s.redactor.Store(&redactor{slices.Compact(all)})
}

// all returns the secrets of each start, and those that are known from the start.
func (s *secretSet) all() [][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append(slices.Clone(s.resolved), s.fixed)
}

// redactor replaces secrets in texts. It is immutable. A key of 50 lines is 50 secrets
// (BenchmarkRedact).
type redactor struct{ secrets []string }

const (
	// escapeLevels is how many times a secret may be escaped: JSON in JSON in JSON.
	escapeLevels = 3
	// nestedBytes bounds the work for a long text: only one level of escapes is
	// decoded in it.
	nestedBytes = 64 << 10
)

func (r *redactor) redact(text string) string {
	if len(r.secrets) == 0 {
		return text
	}
	levels := escapeLevels
	if len(text) > nestedBytes {
		levels = 1
	}
	spans := r.find(text, levels)
	if spans == nil {
		return text
	}
	var b strings.Builder
	done := 0
	for _, s := range spans {
		b.WriteString(text[done:s.start])
		b.WriteString(Hidden)
		done = s.end
	}
	b.WriteString(text[done:])
	return b.String()
}

// span is a part of a text, from start up to end.
type span struct{ start, end int }

// find returns where the secrets are, in order and without overlaps. It decodes up to
// that many levels of escapes.
func (r *redactor) find(text string, levels int) []span {
	var spans []span
	for _, secret := range r.secrets {
		for at := 0; ; at++ { // a secret may overlap itself
			next := strings.Index(text[at:], secret)
			if next < 0 {
				break
			}
			at += next
			spans = append(spans, span{at, at + len(secret)})
		}
	}
	if levels > 0 {
		for _, e := range escapings {
			decoded := e.decode(text)
			if len(decoded) < len(text) {
				spans = append(spans, e.origin(text, r.find(decoded, levels-1))...)
			}
		}
	}
	return union(spans)
}

// union sorts spans and joins those that overlap.
func union(spans []span) []span {
	if len(spans) < 2 {
		return spans
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	joined := spans[:1]
	for _, s := range spans[1:] {
		last := &joined[len(joined)-1]
		if s.start < last.end {
			last.end = max(last.end, s.end)
			continue
		}
		joined = append(joined, s)
	}
	return joined
}

// escaping is a syntax for escaped characters.
type escaping struct {
	mark byte // the first byte of every escape
	// read decodes the escape at the start of a text. It returns the length of
	// the escape, 0 if there is none.
	read func(text string) (decoded string, length int)
}

// The escapings that Redact decodes.
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

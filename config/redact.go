package config

import (
	"cmp"
	"slices"
	"strings"
)

// Hidden is shown in place of a secret.
const Hidden = "***"

// Redact returns the text with the upstream's secrets replaced by ***: the
// values of its env, headers, args and url, literal or expanded, and every line
// of them. It finds them escaped too, as JSON, Go, Python, a shell or a URL
// writes them. Values too ordinary to be secrets stay. It may be called
// concurrently.
func (u *Upstream) Redact(text string) string {
	if u.redactor == nil {
		return text
	}
	return u.redactor.redact(text)
}

// redactor replaces a set of secrets in texts. It never changes. It looks for all
// secrets in one pass (BenchmarkRedact): a key of 50 lines is 50 secrets, and
// every line that a server writes to stderr is searched.
type redactor struct {
	byPrefix map[prefix][]string
	prefixes [1 << (prefixBits - 6)]uint64 // a bit for the hash of each prefix
}

// prefix is the first four bytes of a secret, which has six at least.
type prefix uint32

const prefixBits = 12

func prefixOf(text string) prefix {
	return prefix(text[0]) | prefix(text[1])<<8 | prefix(text[2])<<16 | prefix(text[3])<<24
}

// bit returns the word and the bit of a prefix in redactor.prefixes.
func (p prefix) bit() (word int, mask uint64) {
	hash := uint32(p) * 2654435761 >> (32 - prefixBits)
	return int(hash / 64), 1 << (hash % 64)
}

// newRedactor returns nil if there are no secrets.
func newRedactor(secrets []string) *redactor {
	if len(secrets) == 0 {
		return nil
	}
	r := &redactor{byPrefix: map[prefix][]string{}}
	for _, s := range secrets {
		p := prefixOf(s)
		r.byPrefix[p] = append(r.byPrefix[p], s)
		word, mask := p.bit()
		r.prefixes[word] |= mask
	}
	return r
}

const (
	// escapeLevels is how often a secret may be escaped: JSON in JSON in JSON.
	escapeLevels = 3
	// nestedBytes bounds the work for a long text: only one level of escapes is
	// decoded in it.
	nestedBytes = 64 << 10
)

func (r *redactor) redact(text string) string {
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

// find returns where the secrets are, in order and without overlaps. It decodes
// up to that many levels of escapes.
func (r *redactor) find(text string, levels int) []span {
	spans := r.literal(text)
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

// literal returns where the secrets are without any escapes. The spans may
// overlap.
func (r *redactor) literal(text string) (spans []span) {
	for i := 0; i+shortest <= len(text); i++ {
		p := prefixOf(text[i:])
		if word, mask := p.bit(); r.prefixes[word]&mask == 0 {
			continue
		}
		for _, s := range r.byPrefix[p] {
			if strings.HasPrefix(text[i:], s) {
				spans = append(spans, span{i, i + len(s)})
			}
		}
	}
	return spans
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

// Package redact hides secrets in texts. A Set knows the values of secrets, and finds them
// also where JSON, Go, Python, a shell or a URL has escaped them.
package redact

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Hidden is shown in place of a secret.
const Hidden = "***"

// Set is a set of secrets that grows: a program may get others with each start, and still
// print the earlier ones. It is safe for concurrent use. Redact accepts a nil Set.
type Set struct {
	all atomic.Pointer[[]string] // secrets, sorted

	mu    sync.Mutex
	first []string
	added [][]string // the newest last
}

// maxAdded is how many additions are remembered: older sessions that still run may print
// older secrets.
const maxAdded = 64

// NewSet returns a Set of secrets, without those that are trivial.
func NewSet(secrets []string) *Set { return newSet(normalize(secrets, IsTrivial)) }

// NewTokens returns a Set of secrets that a server issued, without short ones. It never looks
// at the file system, as IsTrivial does: the server chose the texts.
func NewTokens(secrets ...string) *Set { return newSet(normalize(secrets, isShort)) }

func newSet(normalized []string) *Set {
	s := &Set{first: normalized}
	s.all.Store(&s.first)
	return s
}

// normalize returns the secrets sorted, without those that are not hidden, and also as a
// query has them.
func normalize(secrets []string, isShown func(secret string) bool) []string {
	all := slices.DeleteFunc(slices.Clone(secrets), isShown)
	for _, secret := range all {
		if strings.Contains(secret, " ") {
			all = append(all, strings.ReplaceAll(secret, " ", "+"))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Add adds secrets. The oldest addition is forgotten if there are too many.
func (s *Set) Add(secrets []string) { s.add(normalize(secrets, IsTrivial)) }

// add adds normalized secrets.
func (s *Set) add(secrets []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.added, func(old []string) bool { return slices.Equal(old, secrets) }) {
		return
	}
	s.added = append(s.added, secrets)
	if len(s.added) > maxAdded {
		s.added = slices.Delete(s.added, 0, 1)
	}
	all := slices.Concat(append([][]string{s.first}, s.added...)...)
	slices.Sort(all)
	all = slices.Compact(all)
	s.all.Store(&all)
}

// AddSet adds the secrets of another Set.
func (s *Set) AddSet(other *Set) {
	other.mu.Lock()
	all := append(slices.Clone(other.added), other.first)
	other.mu.Unlock()
	for _, secrets := range all {
		s.add(secrets)
	}
}

const (
	// escapeLevels is how many times a secret may be escaped: JSON in JSON in JSON.
	escapeLevels = 3
	// nestedBytes bounds the work for a long text: only one level of escapes is
	// decoded in it.
	nestedBytes = 64 << 10
)

// Redact replaces the secrets in a text by ***.
func (s *Set) Redact(text string) string {
	if s == nil || len(*s.all.Load()) == 0 {
		return text
	}
	levels := escapeLevels
	if len(text) > nestedBytes {
		levels = 1
	}
	spans := find(text, *s.all.Load(), levels)
	if spans == nil {
		return text
	}
	var b strings.Builder
	done := 0
	for _, found := range spans {
		b.WriteString(text[done:found.start])
		b.WriteString(Hidden)
		done = found.end
	}
	b.WriteString(text[done:])
	return b.String()
}

// span is a part of a text, from start up to end.
type span struct{ start, end int }

// find returns where the secrets are, in order and without overlaps. It decodes up to
// that many levels of escapes. A key of 50 lines is 50 secrets (BenchmarkRedact).
func find(text string, secrets []string, levels int) []span {
	var spans []span
	for _, secret := range secrets {
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
				spans = append(spans, e.origin(text, find(decoded, secrets, levels-1))...)
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

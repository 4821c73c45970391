package search

import (
	"slices"
	"strings"
)

// The longest phrase, and the longest verb with a particle: "throw the old edits away".
const (
	maxPhrase = 4
	maxSpan   = 5
)

// phrase is the beginning of a text that has synonyms of its own.
type phrase struct {
	places   []int // of its words
	synonyms []string
}

// findPhrase returns the phrase that a text begins with, nil if there is none.
func findPhrase(text []string) *phrase {
	for n := min(maxPhrase, len(text)); n > 1; n-- {
		if found := synonyms()[stems(text[:n])]; found != nil {
			return &phrase{[]int{0, 1, 2, 3}[:n], found}
		}
	}
	for i := 2; i < min(maxSpan, len(text)); i++ {
		if !isParticle(text[i]) {
			continue
		}
		if found := synonyms()[stems([]string{text[0], text[i]})]; found != nil {
			return &phrase{[]int{0, i}, found}
		}
	}
	return nil
}

// mark marks the words of a phrase that mean something else on their own. Those of "get
// rid of" do, those of "virtual machine" do not.
func (p *phrase) mark(text []string, faint []bool) {
	if !slices.ContainsFunc(p.places, func(i int) bool { return isParticle(text[i]) }) {
		return
	}
	for _, i := range p.places {
		faint[i] = true
	}
}

// isParticle reports whether a word makes a verb mean something else: turn off, set up.
func isParticle(word string) bool {
	word = strings.ToLower(word)
	return stopWords[stem(word)] || slices.Contains([]string{"away", "back", "down", "off", "together"}, word)
}

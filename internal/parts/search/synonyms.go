package search

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

//go:embed synonyms.txt
var synonymText string

// synonyms returns the synonyms of terms and of phrases, which are terms joined by spaces.
// They are read when they are first needed.
var synonyms = sync.OnceValue(func() map[string][]string {
	return parseSynonyms(synonymText)
})

func parseSynonyms(text string) map[string][]string {
	table := map[string][]string{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		from, to, oneWay := strings.Cut(line, ":")
		if !oneWay {
			to = from
		}
		for word := range strings.FieldsSeq(from) {
			key := stems(strings.Split(word, "_"))
			for synonym := range strings.FieldsSeq(to) {
				term := stem(synonym)
				if term != key && !strings.Contains(term, "_") && !slices.Contains(table[key], term) {
					table[key] = append(table[key], term)
				}
			}
		}
	}
	return table
}

// stems returns the stems of words, joined by spaces.
func stems(words []string) string {
	all := make([]string, len(words))
	for i, word := range words {
		all[i] = stem(strings.ToLower(word))
	}
	return strings.Join(all, " ")
}

package search

import "slices"

// The bounds on the work for very long queries.
const (
	maxQueryBytes = 4096
	maxTerms      = 64
)

// The worth of faint words and of alternatives, relative to a word itself.
const (
	faintWorth       = 0.5
	emptyWorth       = 0.3
	synonymWorth     = 0.9
	longSynonymWorth = 0.45 // in a query of more than manyWords: it has enough words, and their synonyms find too much
)

// manyWords is how many words a short query has at most.
const manyWords = 7

// queryWord is a word or a phrase of a query.
type queryWord struct {
	term     string   // empty for a phrase
	synonyms []string // terms
	worth    float64  // of the synonyms, relative to the word
	faint    bool     // part of a phrase such as "get rid of", where it has another meaning
}

// full returns what a document with the word is worth.
func (w queryWord) full() float64 {
	switch {
	case emptyWords[w.term]:
		return emptyWorth
	case w.faint:
		return faintWorth
	}
	return 1
}

// queryWords returns the first distinct terms of a query, without stop words and numbers
// unless there are no others.
func queryWords(query string) []queryWord {
	var all, telling []queryWord
	add := func(w queryWord) {
		same := func(o queryWord) bool { return o.term == w.term && w.term != "" }
		if len(all) == maxTerms || slices.ContainsFunc(all, same) {
			return
		}
		all = append(all, w)
		if !stopWords[w.term] && !isNumber(w.term) {
			telling = append(telling, w)
		}
	}
	text := words(query[:min(len(query), maxQueryBytes)])
	faint := make([]bool, len(text))
	for i, word := range text {
		if p := findPhrase(text[i:]); p != nil {
			add(queryWord{synonyms: p.synonyms})
			p.mark(text[i:], faint[i:])
		}
		for _, term := range wordTerms(word) {
			w := queryWord{term: term, faint: faint[i]}
			if !w.faint && !emptyWords[term] {
				w.synonyms = synonyms()[term]
			}
			add(w)
		}
	}
	if len(telling) > 0 {
		return rateSynonyms(telling)
	}
	for i := range all {
		all[i].synonyms = nil
	}
	return all
}

// rateSynonyms sets how much the synonyms of a query's words are worth.
func rateSynonyms(words []queryWord) []queryWord {
	worth := synonymWorth
	if len(words) > manyWords {
		worth = longSynonymWorth
	}
	for i := range words {
		words[i].worth = worth
	}
	return words
}

// addSynonyms rates the documents that contain a synonym of a word.
func (x *index) addSynonyms(word queryWord, r *ranking) {
	limit := x.limit(word.term)
	for _, synonym := range word.synonyms {
		if i, ok := slices.BinarySearch(x.terms, synonym); ok {
			x.rateAlternative(i, word.worth*limit(i), r)
		}
	}
}

// limit returns the factor by which an alternative counts less because it is rarer than
// the word: "add" must not outweigh "create" in a search for "create".
func (x *index) limit(word string) func(alternative int) float64 {
	i, ok := slices.BinarySearch(x.terms, word)
	if !ok {
		return func(int) float64 { return 1 }
	}
	most := x.rarity(i)
	return func(alternative int) float64 { return min(1, most/x.rarity(alternative)) }
}

func (x *index) rateAlternative(term int, worth float64, r *ranking) {
	for _, p := range x.postings[term] {
		r.rate(rating{p.document, worth * float64(p.core), worth, p.own})
	}
}

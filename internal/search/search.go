// Package search ranks tools by how well they fit a few words.
package search

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Document is one tool in the words that may find it, most telling first.
type Document struct {
	Name        string
	Server      string
	Description string
	Parameters  string // their names and descriptions
}

// Hit is a document that matches a query.
type Hit struct {
	Document int // its place in what New was given
	Score    float64
}

// Index finds documents. It is immutable: any number of goroutines may search it.
type Index struct {
	terms    []string    // sorted
	postings [][]posting // of the term at the same place, in document order
	size     int         // number of documents
}

// posting is the score of a term in a document.
type posting struct {
	document int32
	score    float32
}

// prefixWorth is the score of the beginning of a word, relative to the whole word.
const prefixWorth = 0.8

// Search returns the documents that contain a word of the query, best first, at most
// limit of them. Documents with equal scores keep their order. A word also finds longer
// words that start with it.
func (x *Index) Search(query string, limit int) []Hit {
	scores := make([]float64, x.size)
	matched := make([]int, x.size)
	best := make([]float64, x.size) // for the term at hand
	words := queryTerms(query)
	for _, word := range words {
		clear(best)
		x.match(word, best)
		for document, score := range best {
			if score > 0 {
				scores[document] += score
				matched[document]++
			}
		}
	}

	var hits []Hit
	for document, score := range scores {
		if score > 0 {
			// A document with every word beats one that repeats a few.
			all := float64(matched[document]) / float64(len(words))
			hits = append(hits, Hit{document, score * math.Sqrt(all)})
		}
	}
	slices.SortStableFunc(hits, func(a, b Hit) int { return cmp.Compare(b.Score, a.Score) })
	return hits[:min(max(limit, 0), len(hits))]
}

// match raises best to the score of each document for one word.
func (x *Index) match(word string, best []float64) {
	from, _ := slices.BinarySearch(x.terms, word)
	for i := from; i < len(x.terms) && strings.HasPrefix(x.terms[i], word); i++ {
		worth := 1.0
		if len(x.terms[i]) > len(word) {
			if len(word) < 3 {
				return
			}
			worth = prefixWorth * float64(len(word)) / float64(len(x.terms[i]))
		}
		for _, p := range x.postings[i] {
			best[p.document] = max(best[p.document], worth*float64(p.score))
		}
	}
}

// maxTerms bounds the work for very long queries.
const maxTerms = 64

// queryTerms returns the first distinct terms of a query, without stop words unless
// there are no others.
func queryTerms(query string) []string {
	var all, telling []string
	for _, word := range words(query) {
		for _, term := range wordTerms(word) {
			if len(all) == maxTerms || slices.Contains(all, term) {
				continue
			}
			all = append(all, term)
			if !stopWords[term] {
				telling = append(telling, term)
			}
		}
	}
	if len(telling) == 0 {
		return all
	}
	return telling
}

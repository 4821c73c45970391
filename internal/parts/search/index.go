package search

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// document is one tool in the words that may find it, most telling first.
type document struct {
	Name        string
	Server      string
	Description string
	Parameters  string // their names and descriptions
}

// hit is a document that matches a query.
type hit struct {
	document int // its index in the documents given to newIndex
	Score    float64
}

// index finds documents. It is immutable: any number of goroutines may search it.
type index struct {
	terms    []string    // sorted
	postings [][]posting // of the term at the same place, in document order
	servers  []indexedServer
	serverOf []int32            // by document
	named    map[string][]int32 // the servers with a term in their names
}

// posting is the score of a term in a document.
type posting struct {
	document int32
	score    float32
	core     float32 // only in the fields that alternatives look at
	own      bool    // the term is not only in the name of the document's server
}

// indexedServer is a server and its number of documents.
type indexedServer struct {
	name  string
	tools int
}

// prefixWorth is the score of the beginning of a word, relative to the whole word.
const prefixWorth = 0.8

// minScore is the lowest score of a hit, relative to the best hit. Lower ones are noise.
const minScore = 0.3

// fewTools is the size up to which a server's tools are found by its name. The tools of
// a larger server need a word of their own, which may also be the server's name.
const fewTools = 3

// maxNamed bounds the servers that a word names. A word in more names, such as "server",
// names none.
const maxNamed = 3

// search returns the documents that match the query, best first, at most limit of them.
// Documents with equal scores keep their order. A word also finds longer words that start
// with it, and its synonyms.
//
// It also returns the servers that the query names and that have no hit, at most three.
func (x *index) search(query string, limit int) (hits []hit, servers []string) {
	r := newRanking(x)
	words := queryWords(query)
	var named []int32
	for _, word := range words {
		if word.term != "" {
			x.match(word, r)
		}
		by := x.named[word.term]
		if len(by) > 0 && len(by) <= maxNamed {
			named = append(named, by...)
		} else {
			x.addSynonyms(word, r)
		}
		r.endWord()
	}
	hits = r.hits(len(words))
	hits = hits[:min(max(limit, 0), len(hits))]
	return hits, x.without(hits, named)
}

// match rates the documents that contain a word, or words that begin with it.
func (x *index) match(w queryWord, r *ranking) {
	word, full := w.term, 1.0
	if w.faint {
		full = faintWorth
	}
	from, _ := slices.BinarySearch(x.terms, word)
	for i := from; i < len(x.terms) && strings.HasPrefix(x.terms[i], word); i++ {
		worth := full
		if len(x.terms[i]) > len(word) {
			if len(word) < 3 {
				return
			}
			worth = full * prefixWorth * float64(len(word)) / float64(len(x.terms[i]))
		}
		named := x.named[x.terms[i]]
		for _, p := range x.postings[i] {
			r.rate(rating{p.document, worth * float64(p.score), full, p.own}, named)
		}
	}
}

// without returns the names of those servers that have no hit.
func (x *index) without(hits []hit, servers []int32) (names []string) {
	for _, s := range servers {
		found := slices.ContainsFunc(hits, func(h hit) bool { return x.serverOf[h.document] == s })
		if !found && len(names) < maxNamed && !slices.Contains(names, x.servers[s].name) {
			names = append(names, x.servers[s].name)
		}
	}
	return names
}

// rarity returns the usual inverse document frequency of a term, which is never negative.
func (x *index) rarity(term int) float64 {
	return rarity(len(x.serverOf), len(x.postings[term]))
}

func rarity(documents, with int) float64 {
	return math.Log(1 + (float64(documents-with)+0.5)/(float64(with)+0.5))
}

// ranking is the state of one search.
type ranking struct {
	index   *index
	scores  []float64
	matched []float64 // how many words each document matches; an alternative counts in part
	own     []bool    // whether it matches a word that is not only its server's name

	// For the word at hand:
	best  []float64
	worth []float64
}

func newRanking(x *index) *ranking {
	n := len(x.serverOf)
	return &ranking{
		index: x, scores: make([]float64, n), matched: make([]float64, n), own: make([]bool, n),
		best: make([]float64, n), worth: make([]float64, n),
	}
}

// rating is the score of a document for the word at hand.
type rating struct {
	document int32
	score    float64
	worth    float64 // 1 for the word itself, less for an alternative
	own      bool    // the term is not only in the server's name
}

// rate raises the score of a document. named are the servers that have the matched term in
// their names.
func (r *ranking) rate(v rating, named []int32) {
	if v.score <= 0 {
		return
	}
	r.best[v.document] = max(r.best[v.document], v.score)
	r.worth[v.document] = max(r.worth[v.document], v.worth)
	server := r.index.serverOf[v.document]
	if v.own || !slices.Contains(named, server) || r.index.servers[server].tools <= fewTools {
		r.own[v.document] = true
	}
}

// endWord adds the scores of the word at hand.
func (r *ranking) endWord() {
	for d, score := range r.best {
		r.scores[d] += score
		r.matched[d] += r.worth[d]
	}
	clear(r.best)
	clear(r.worth)
}

// hits returns the documents with words of their own, best first.
func (r *ranking) hits(words int) (hits []hit) {
	best := 0.0
	for d := range r.scores {
		if r.own[d] {
			// A document with every word beats one that repeats a few.
			r.scores[d] *= math.Sqrt(r.matched[d] / float64(words))
			best = max(best, r.scores[d])
		}
	}
	for d, score := range r.scores {
		if r.own[d] && score >= minScore*best {
			hits = append(hits, hit{d, score})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.Score, a.Score) })
	return hits
}

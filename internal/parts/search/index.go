package search

import (
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
	About       string // the description of the server in the config
	Minor       bool   // a tool of mcpx itself, which counts less than those of servers
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
	minor    []bool             // by document
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
// with it, and its synonyms. A query of several clauses is searched as a whole and by
// clause, and the results are merged by rank.
//
// It also returns the servers that the query names and whose tools do not match, at most three.
func (x *index) search(query string, limit int) (hits []hit, servers []string) {
	query = prepared(query[:min(len(query), maxQueryBytes)])
	r := newRanking(x)
	named := r.run(queryWords(query))
	servers = r.without(named)
	hits = r.hits()
	if parts := clauses(query); len(parts) > 1 {
		rankings := [][]hit{hits}
		for _, words := range parts {
			r.reset()
			r.run(words)
			rankings = append(rankings, r.hits())
		}
		hits = merge(rankings)
	}
	return hits[:min(max(limit, 0), len(hits))], servers
}

// match rates the documents that contain a word, or words that begin with it.
func (x *index) match(w queryWord, r *ranking) {
	word, full := w.term, w.full()
	from, _ := slices.BinarySearch(x.terms, word)
	for i := from; i < len(x.terms) && strings.HasPrefix(x.terms[i], word); i++ {
		worth := full
		if len(x.terms[i]) > len(word) {
			if len(word) < 3 {
				return
			}
			worth = full * prefixWorth * float64(len(word)) / float64(len(x.terms[i]))
		}
		for _, p := range x.postings[i] {
			r.rate(rating{p.document, worth * float64(p.score), full, p.own})
		}
	}
}

// rarity returns the usual inverse document frequency of a term, which is never negative.
func (x *index) rarity(term int) float64 {
	return rarity(len(x.serverOf), len(x.postings[term]))
}

func rarity(documents, with int) float64 {
	return math.Log(1 + (float64(documents-with)+0.5)/(float64(with)+0.5))
}

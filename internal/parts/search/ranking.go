package search

import (
	"cmp"
	"math"
	"slices"
)

// ranking is the state of one search. It can be used again after reset.
type ranking struct {
	index   *index
	words   int
	scores  []float64
	matched []float64 // how many words each document matches; an alternative counts in part
	own     []bool    // whether it matches a word that is not only its server's name

	// For the word at hand:
	best  []float64
	worth []float64
}

// minorWorth is the score of a tool of mcpx itself, relative to the tools of servers.
const minorWorth = 0.5

func newRanking(x *index) *ranking {
	n := len(x.serverOf)
	return &ranking{
		index: x, scores: make([]float64, n), matched: make([]float64, n), own: make([]bool, n),
		best: make([]float64, n), worth: make([]float64, n),
	}
}

// reset forgets the words that were run.
func (r *ranking) reset() {
	r.words = 0
	clear(r.scores)
	clear(r.matched)
	clear(r.own)
}

// run rates the documents by the words of a query. It returns the servers that the words name.
func (r *ranking) run(words []queryWord) (named []int32) {
	r.words = len(words)
	for _, word := range words {
		if word.term != "" {
			r.index.match(word, r)
		}
		by := r.index.named[word.term]
		if len(by) > 0 && len(by) <= maxNamed {
			named = append(named, by...)
		} else {
			r.index.addSynonyms(word, r)
		}
		r.endWord()
	}
	return named
}

// rating is the score of a document for the word at hand.
type rating struct {
	document int32
	score    float64
	worth    float64 // 1 for the word itself, less for an alternative
	own      bool    // the term is not only in the server's name
}

// rate raises the score of a document.
func (r *ranking) rate(v rating) {
	if v.score <= 0 {
		return
	}
	r.best[v.document] = max(r.best[v.document], v.score)
	r.worth[v.document] = max(r.worth[v.document], v.worth)
	if v.own || r.index.servers[r.index.serverOf[v.document]].tools <= fewTools {
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
func (r *ranking) hits() (hits []hit) {
	best := 0.0
	for d := range r.scores {
		if !r.own[d] {
			continue
		}
		// A document with every word beats one that repeats a few.
		r.scores[d] *= math.Sqrt(r.matched[d] / float64(r.words))
		if r.index.minor[d] {
			r.scores[d] *= minorWorth
		}
		best = max(best, r.scores[d])
	}
	for d, score := range r.scores {
		if r.own[d] && score >= minScore*best {
			hits = append(hits, hit{d, score})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.Score, a.Score) })
	return hits
}

// without returns the names of those servers that have no document with words of its own,
// at most maxNamed.
func (r *ranking) without(servers []int32) (names []string) {
	for _, s := range servers {
		name := r.index.servers[s].name
		if len(names) < maxNamed && !slices.Contains(names, name) && !r.matches(s) {
			names = append(names, name)
		}
	}
	return names
}

// matches reports whether a document of a server has a word of its own.
func (r *ranking) matches(server int32) bool {
	for d, s := range r.index.serverOf {
		if s == server && r.own[d] {
			return true
		}
	}
	return false
}

// mergeAfter is how much the places of a ranking differ when rankings are merged: the first
// place counts 1/(mergeAfter), the next 1/(mergeAfter+1), and so on. The usual value of 60 is
// for long lists; people read the first five hits.
const mergeAfter = 3

// merge merges rankings by rank. Documents with equal scores keep the order of the rankings.
func merge(rankings [][]hit) (merged []hit) {
	places := map[int]int{} // in merged, by document
	for _, ranking := range rankings {
		for rank, h := range ranking {
			i, known := places[h.document]
			if !known {
				i = len(merged)
				places[h.document] = i
				merged = append(merged, hit{document: h.document})
			}
			merged[i].Score += 1 / float64(mergeAfter+rank)
		}
	}
	slices.SortStableFunc(merged, func(a, b hit) int { return cmp.Compare(b.Score, a.Score) })
	return merged
}

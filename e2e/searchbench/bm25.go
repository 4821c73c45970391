package main

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"unicode"
)

// The usual parameters of BM25.
const (
	k1 = 1.5
	b  = 0.75
)

// bm25 is a plain BM25 over the names of server and tool and the description, with the endings
// of plurals, -ing and -ed removed. It shares no code with mcpx.
type bm25 struct {
	tools   []string         // SERVER/TOOL
	counts  []map[string]int // of the terms, by tool
	lengths []int            // in terms, by tool
	mean    float64          // length
	with    map[string]int   // tools that have a term
}

func newBM25(servers []server) *bm25 {
	x := &bm25{with: map[string]int{}}
	total := 0
	for _, s := range servers {
		for _, t := range s.tools {
			counts := map[string]int{}
			all := plainTerms(s.name + " " + t.Name + " " + t.Description + " " + s.description)
			for _, term := range all {
				counts[term]++
			}
			for term := range counts {
				x.with[term]++
			}
			x.tools = append(x.tools, s.name+"/"+t.Name)
			x.counts = append(x.counts, counts)
			x.lengths = append(x.lengths, len(all))
			total += len(all)
		}
	}
	x.mean = float64(total) / float64(max(len(x.tools), 1))
	return x
}

func (*bm25) name() string { return "BM25" }

func (x *bm25) search(_ context.Context, query string) (tools []string, _ string, _ error) {
	type hit struct {
		tool  int
		score float64
	}
	var hits []hit
	terms := plainTerms(query)
	slices.Sort(terms)
	terms = slices.Compact(terms)
	for i, counts := range x.counts {
		score := 0.0
		for _, term := range terms {
			f := float64(counts[term])
			if f == 0 {
				continue
			}
			rarity := math.Log(1 + (float64(len(x.tools)-x.with[term])+0.5)/(float64(x.with[term])+0.5))
			score += rarity * f * (k1 + 1) / (f + k1*(1-b+b*float64(x.lengths[i])/x.mean))
		}
		if score > 0 {
			hits = append(hits, hit{i, score})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	for _, h := range hits[:min(10, len(hits))] {
		tools = append(tools, x.tools[h.tool])
	}
	return tools, "", nil
}

// plainTerms returns the words of a text: runs of letters and digits in lower case, without
// common endings. A Chinese character is a word.
func plainTerms(text string) (terms []string) {
	var word strings.Builder
	end := func() {
		if w := word.String(); w != "" && !slices.Contains(commonWords, w) {
			terms = append(terms, plainStem(w))
		}
		word.Reset()
	}
	lower := false
	for _, r := range text {
		switch {
		case unicode.Is(unicode.Han, r):
			end()
			terms = append(terms, string(r))
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			if unicode.IsUpper(r) && lower {
				end()
			}
			word.WriteRune(unicode.ToLower(r))
		default:
			end()
		}
		lower = unicode.IsLower(r)
	}
	end()
	return terms
}

// commonWords are not indexed.
var commonWords = strings.Fields(`a about all also an and any are as at be been but by can could did do does each for from had
	has have how i if in into is it its me more my no not of on one or other our out please should so some than that the their
	them then there these they this those to up us was we were what when where which who will with would you your`)

func plainStem(word string) string {
	for _, ending := range []string{"ing", "ed", "es", "s"} {
		if root, ok := strings.CutSuffix(word, ending); ok && len(root) >= 3 {
			return root
		}
	}
	return word
}

package search

import (
	"maps"
	"math"
	"slices"
)

// New indexes the documents.
func New(documents []Document) *Index {
	b := builder{
		words:   map[string][]int32{},
		ids:     map[string]int32{},
		lengths: make([][len(fields)]int32, len(documents)),
	}
	for i := range documents {
		for f := range fields {
			b.add(int32(i), f, fields[f].text(&documents[i]))
		}
	}
	return b.index()
}

// The parameters of BM25 with fields. A term's frequency is summed over the
// fields by weight, each divided by how long the field is against the average
// (flatten: 0 ignores the length), and then levels off at saturation.
const saturation = 2

var fields = [...]struct {
	text    func(*Document) string
	weight  float64
	flatten float64
}{
	{func(d *Document) string { return d.Name }, 6, 0.4},
	{func(d *Document) string { return d.Server }, 4, 0.2},
	{func(d *Document) string { return d.Description }, 1, 0.6},
	{func(d *Document) string { return d.Parameters }, 0.5, 0.6},
}

// builder counts terms. Their scores are only known when all documents are.
type builder struct {
	words   map[string][]int32 // ids of the terms of each word
	ids     map[string]int32   // of each term: its place in counts
	counts  [][]count
	lengths [][len(fields)]int32 // terms in each field of each document
}

// count says how often a term is in each field of one document.
type count struct {
	document int32
	in       [len(fields)]uint32
}

func (b *builder) add(document int32, field int, text string) {
	for _, word := range words(text) {
		for _, id := range b.terms(word) {
			list := b.counts[id]
			if len(list) == 0 || list[len(list)-1].document != document {
				list = append(list, count{document: document})
				b.counts[id] = list
			}
			list[len(list)-1].in[field]++
			b.lengths[document][field]++
		}
	}
}

// terms returns the ids of a word's terms. Most texts consist of the same few words, so
// that each is split only once.
func (b *builder) terms(word string) []int32 {
	if ids, ok := b.words[word]; ok {
		return ids
	}
	var ids []int32
	for _, term := range wordTerms(word) {
		id, ok := b.ids[term]
		if !ok {
			id = int32(len(b.counts))
			b.ids[term] = id
			b.counts = append(b.counts, nil)
		}
		ids = append(ids, id)
	}
	b.words[word] = ids
	return ids
}

func (b *builder) index() *Index {
	x := &Index{size: len(b.lengths), terms: slices.Sorted(maps.Keys(b.ids))}
	averages := b.averages()
	for _, term := range x.terms {
		counts := b.counts[b.ids[term]]
		// The usual inverse document frequency, which is never negative.
		rarity := math.Log(1 + (float64(x.size-len(counts))+0.5)/(float64(len(counts))+0.5))
		postings := make([]posting, len(counts))
		for i, c := range counts {
			frequency := b.frequency(c, averages)
			postings[i] = posting{c.document, float32(rarity * frequency / (saturation + frequency))}
		}
		x.postings = append(x.postings, postings)
	}
	return x
}

func (b *builder) frequency(c count, averages [len(fields)]float64) (sum float64) {
	for f, field := range fields {
		if c.in[f] > 0 {
			length := float64(b.lengths[c.document][f]) / averages[f]
			sum += field.weight * float64(c.in[f]) / (1 - field.flatten + field.flatten*length)
		}
	}
	return sum
}

// averages returns the mean lengths of the fields.
func (b *builder) averages() (mean [len(fields)]float64) {
	for _, lengths := range b.lengths {
		for f, n := range lengths {
			mean[f] += float64(n) / float64(len(b.lengths))
		}
	}
	return mean
}

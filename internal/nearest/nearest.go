// Package nearest guesses the word that was meant.
package nearest

import (
	"cmp"
	"slices"
	"strings"
)

// Word is the known word that was probably meant, or nothing: two slips at
// most, fewer in short words. Case and separators are no slips, so
// startupTimeout is near startup_timeout.
func Word(word string, known []string) string {
	best, least := "", maxSlips+1
	a := fold(word)
	for _, k := range known {
		b := fold(k)
		if d := distance(a, b); d < least && d <= slips(a, b) {
			best, least = k, d
		}
	}
	return best
}

const maxSlips = 2

// slips is how many there may be between two words: one in three letters, none in
// fewer, two in six.
func slips(a, b []rune) int {
	n := max(len(a), len(b))
	return min(maxSlips, max(n/2-1, min(n/3, 1)))
}

// Words are at most limit known words that may have been meant, the likeliest
// first: near ones as for Word, and those that contain the word, are contained
// in it or share its parts.
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
		case cost <= slips(a, b):
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

// distance is how many characters to add, drop, change or swap with their
// neighbour.
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

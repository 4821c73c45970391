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
		if d := distance(a, b, maxTypos); d < least && d <= typos(a, b) {
			best, least = k, d
		}
	}
	return best
}

const (
	maxTypos = 2

	// maxDistance is the largest distance that is computed exactly; farDistance, if there are at
	// most fewWords. They bound the work for a word.
	maxDistance = 12
	farDistance = 40
	fewWords    = 500
)

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
	a, parts := fold(word), partsOf(word)
	far := maxDistance
	if len(known) <= fewWords {
		far = farDistance
	}
	for _, k := range known {
		b := fold(k)
		cost := distance(a, b, far)
		switch {
		case cost <= typos(a, b):
		case len(a) > 2 && strings.Contains(string(b), string(a)), len(b) > 2 && strings.Contains(string(a), string(b)):
			cost = 10 + abs(len(a)-len(b))
		case slices.ContainsFunc(partsOf(k), func(part string) bool { return len(part) > 2 && slices.Contains(parts, part) }):
			cost = 1_000_000 + cost
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

// partsOf returns the parts of a name: list_issues and search_issues have one in common.
func partsOf(name string) []string {
	return strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return strings.ContainsRune("_- ./", r) })
}

// distance counts the characters to add, drop, change or swap with the next to turn
// a into b. If these are more than limit, it returns limit+1.
func distance(a, b []rune, limit int) int {
	if abs(len(a)-len(b)) > limit {
		return limit + 1
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i, x := range a {
		// Only the cells at most limit away from the diagonal count. The cells
		// next to them are too far.
		from, to := max(0, i-limit), min(len(b), i+limit+1)
		row[from] = i + 1
		if from > 0 {
			row[from] = limit + 1
		}
		for j := from; j < to; j++ {
			y := b[j]
			change := last[j]
			if x != y {
				change++
			}
			above := limit + 1
			if j+1 <= i+limit {
				above = last[j+1]
			}
			row[j+1] = min(change, above+1, row[j]+1)
			if i > 0 && j > 0 && x == b[j-1] && y == a[i-1] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return min(last[len(b)], limit+1)
}

func abs(n int) int { return max(n, -n) }

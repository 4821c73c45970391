package tokens

import (
	"slices"
	"sync"
	"testing"

	"github.com/dlclark/regexp2/v2"
)

// pieces is the pattern as o200k_base publishes it. The group around it makes regexp2
// interpret it. For the bare pattern it would use code that the library registers, which
// has two errors: it leaves out U+007F, and it ends "\n \n" after the first line break.
var pieces = regexp2.MustCompile(`(?:[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?`+
	`|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?`+
	`|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)`, regexp2.None)

var ranks = sync.OnceValue(func() map[string]int {
	all := map[string]int{}
	for i, word := range words() {
		all[word] = i
	}
	return all
})

// reference counts as Count does, slowly and simply.
func reference(t *testing.T, text string) (count int) {
	t.Helper()
	match, err := pieces.FindStringMatch(text)
	for ; match != nil && err == nil; match, err = pieces.FindNextMatch(match) {
		count += referenceMerge(match.String())
	}
	if err != nil {
		t.Fatal(err)
	}
	return count
}

func referenceMerge(piece string) int {
	if _, ok := ranks()[piece]; ok {
		return 1
	}
	var parts []string
	for i := range len(piece) {
		parts = append(parts, piece[i:i+1])
	}
	for {
		lowest, at := vocabulary, -1
		for i := range len(parts) - 1 {
			if rank, ok := ranks()[parts[i]+parts[i+1]]; ok && rank < lowest {
				lowest, at = rank, i
			}
		}
		if at < 0 {
			return len(parts)
		}
		parts[at] += parts[at+1]
		parts = slices.Delete(parts, at+1, at+2)
	}
}

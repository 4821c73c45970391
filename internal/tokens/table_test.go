package tokens

import (
	"cmp"
	"encoding/binary"
	"flag"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tiktoken-go/tokenizer/codec"
)

var update = flag.Bool("update", false, "write o200k_base.bin")

// library has the vocabulary. Only tests use it (docs/adr/0007-token-counts.md).
var library = codec.NewO200kBase()

// words returns all tokens, by rank.
var words = sync.OnceValue(func() []string {
	all := make([]string, vocabulary)
	for i := range all {
		word, err := library.Decode([]uint{uint(i)})
		if err != nil {
			panic(err)
		}
		all[i] = word
	}
	return all
})

func TestTable(t *testing.T) {
	words := words()
	written := writeTable(t, words)
	if *update {
		if err := os.WriteFile("o200k_base.bin", written, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if table != string(written) {
		t.Error("o200k_base.bin is not current: run go generate")
	}
	for i, word := range words {
		if got := rank(word); got != uint32(i) {
			t.Fatalf("the rank of %q is %d, want %d", word, got, i)
		}
	}
	for _, text := range []string{"", "\x80\x80", "qzqz", strings.Repeat("a", longestToken+1)} {
		if got := rank(text); got != noRank {
			t.Errorf("%q has the rank %d, but is not a token", text, got)
		}
	}
}

func writeTable(t *testing.T, words []string) []byte {
	t.Helper()
	offsets, joined := joinTokens(words)
	if len(joined) >= 1<<offsetBits || len(words) >= 1<<rankBits {
		t.Fatalf("%d tokens with %d bytes do not fit", len(words), len(joined))
	}
	order := make([]int, len(words))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(hash(words[a]), hash(words[b])), cmp.Compare(a, b))
	})
	buckets := make([]uint32, 1<<bucketBits+1)
	list := make([]entry, len(order))
	for i, id := range order {
		h := hash(words[id])
		buckets[h>>(64-bucketBits)+1]++
		list[i] = entry(offsets[words[id]]) | entry(len(words[id])-1)<<offsetBits | entry(id)<<(offsetBits+lengthBits) | h<<hashShift
	}
	for i := range buckets[1:] {
		buckets[i+1] += buckets[i]
	}
	written, err := binary.Append(nil, binary.LittleEndian, buckets)
	if err == nil {
		written, err = binary.Append(written, binary.LittleEndian, list)
	}
	if err != nil {
		t.Fatal(err)
	}
	return append(written, joined...)
}

// joinTokens writes tokens one after another, the longest first. A token that another one
// begins or ends with is not written again.
func joinTokens(words []string) (offsets map[string]int, joined string) {
	offsets = map[string]int{}
	sorted := slices.Clone(words)
	slices.SortStableFunc(sorted, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	var b strings.Builder
	add := func(part string, offset int) {
		if _, ok := offsets[part]; !ok {
			offsets[part] = offset
		}
	}
	for _, word := range sorted {
		if _, ok := offsets[word]; ok {
			continue
		}
		for i := range len(word) {
			add(word[i:], b.Len()+i)
			add(word[:i], b.Len())
		}
		b.WriteString(word)
	}
	return offsets, b.String()
}

package tokens

import (
	_ "embed" // the table
	"encoding/binary"
	"math"
	"math/bits"
)

// table has the tokens of o200k_base and their ranks (docs/adr/0007-token-counts.md). It is
// read in place, from pages of the executable that the system can drop. It has three parts.
// Numbers are little-endian.
//
//   - for each bucket the index of its first entry, and at the end the number of entries:
//     32 bits each
//   - the entries, in the order of their buckets: 64 bits each (see entry)
//   - the bytes of the tokens, many of which overlap
//
// TestTable writes it, with the vocabulary of a library that only tests use.
//
//go:generate go test -run ^TestTable$ -update .
//go:embed o200k_base.bin
var table string

const (
	vocabulary   = 199998 // how many tokens
	longestToken = 128    // bytes
	bucketBits   = 17

	entries    = (1<<bucketBits + 1) * 4
	tokenBytes = entries + vocabulary*8
)

// noRank is the rank of a text that is not a token. It is higher than any other.
const noRank = 1<<32 - 1

// entry describes a token. From the lowest bit: its offset in the bytes of the tokens, its
// length less one, its rank, and bits of its hash.
type entry uint64

const (
	offsetBits = 20
	lengthBits = 7
	rankBits   = 18
	hashShift  = offsetBits + lengthBits + rankBits
)

// rank returns the rank of a token, or noRank if the text is not one.
func rank(text string) uint32 {
	if len(text) == 0 || len(text) > longestToken {
		return noRank
	}
	h := hash(text)
	bucket := int(h >> (64 - bucketBits))
	bounds := load(table[bucket*4:]) // of this bucket and the next one
	for i := bounds & math.MaxUint32; i < bounds>>32; i++ {
		e := entry(load(table[entries+i*8:]))
		if (e^h<<hashShift)>>hashShift == 0 && e.token() == text {
			return e.rank()
		}
	}
	return noRank
}

func (e entry) token() string {
	start := tokenBytes + int(e&(1<<offsetBits-1))
	return table[start : start+int(e>>offsetBits&(1<<lengthBits-1))+1]
}

func (e entry) rank() uint32 { return uint32(e >> (offsetBits + lengthBits) & (1<<rankBits - 1)) }

// hash returns a hash whose highest bits are the bucket.
func hash(text string) entry {
	const odd = 0x9e3779b97f4a7c15
	n := len(text)
	h := uint64(n) * odd
	switch {
	case n >= 8:
		for i := 0; i < n-8; i += 8 {
			high, low := bits.Mul64(h^load(text[i:]), odd)
			h = high ^ low
		}
		h ^= load(text[n-8:])
	case n >= 4:
		first, last := []byte(text[:4]), []byte(text[n-4:])
		h ^= uint64(binary.LittleEndian.Uint32(first)) | uint64(binary.LittleEndian.Uint32(last))<<32
	case n >= 2:
		h ^= uint64(text[0]) | uint64(text[1])<<8 | uint64(text[n-1])<<16
	case n == 1:
		h ^= uint64(text[0])
	}
	high, low := bits.Mul64(h, odd)
	return entry((high ^ low) * odd)
}

// load returns the first eight bytes of a text. The compiler makes it one instruction.
func load(s string) uint64 { return binary.LittleEndian.Uint64([]byte(s[:8])) }

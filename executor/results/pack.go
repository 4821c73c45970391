package results

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"sync"
)

// Limits of packed results.
const (
	rawBytes    = 4 << 10  // a longer text is compressed
	blockBytes  = 64 << 10 // of text, compressed together
	maxBlocks   = 1024
	headerBytes = 4 << 10  // a header is never longer
	packedBytes = 16 << 20 // the longest packed result: longer ones take too long to send
)

// packMark begins a packed result.
const packMark = "mcpx1"

var errPacked = errors.New("the stored result cannot be read")

// writers has compressors, since a new one needs a lot of memory (BenchmarkSave).
var writers = sync.Pool{New: func() any {
	w, _ := flate.NewWriter(nil, flate.BestSpeed) // fails only for an unknown level
	return w
}}

// packed is the header of a packed result. The text of the result follows it, compressed in
// blocks of blockBytes, so that a part can be read without the rest.
type packed struct {
	size    int // of the text
	data    int // where the JSON begins in the text
	dataEnd int
	head    int   // length of the header
	ends    []int // where each block ends in the packed result; none: the text is not compressed
}

// pack returns a result as one value, nil if it is too long. The JSON of a result is always
// a part of its text.
func pack(k kept) []byte {
	blocks := (len(k.text) + blockBytes - 1) / blockBytes
	at := strings.Index(k.text, k.data)
	if blocks > maxBlocks || at < 0 {
		return nil
	}
	var body bytes.Buffer
	var sizes []int
	if len(k.text) > rawBytes {
		w := writers.Get().(*flate.Writer)
		defer writers.Put(w)
		for from := 0; from < len(k.text); from += blockBytes {
			before := body.Len()
			w.Reset(&body)
			_, _ = io.WriteString(w, k.text[from:min(from+blockBytes, len(k.text))]) // a Buffer takes everything
			_ = w.Close()
			sizes = append(sizes, body.Len()-before)
		}
	} else {
		body.WriteString(k.text)
	}
	value := []byte(packMark)
	for _, n := range append([]int{len(k.text), at, at + len(k.data), len(sizes)}, sizes...) {
		value = binary.AppendUvarint(value, uint64(n))
	}
	if len(value)+body.Len() > packedBytes {
		return nil
	}
	return append(value, body.Bytes()...)
}

// readHeader reads the header at the start of a packed result.
func readHeader(start []byte) (*packed, error) {
	rest, ok := bytes.CutPrefix(start, []byte(packMark))
	if !ok {
		return nil, errPacked
	}
	next := func() int {
		n, length := binary.Uvarint(rest)
		if length <= 0 || n > maxBlocks*blockBytes {
			ok = false
			return 0
		}
		rest = rest[length:]
		return int(n)
	}
	p := &packed{size: next(), data: next(), dataEnd: next()}
	sizes := make([]int, min(next(), maxBlocks))
	for i := range sizes {
		sizes[i] = next()
	}
	if !ok || p.data > p.dataEnd || p.dataEnd > p.size || len(sizes) > 0 && len(sizes) != (p.size+blockBytes-1)/blockBytes {
		return nil, errPacked
	}
	p.head = len(start) - len(rest)
	end := p.head
	for _, n := range sizes {
		end += n
		p.ends = append(p.ends, end)
	}
	return p, nil
}

// stored returns which bytes of the packed result hold a part of the text.
func (p *packed) stored(from, to int) (start, end int) {
	if p.ends == nil {
		return p.head + from, p.head + to
	}
	if to <= from {
		return p.head, p.head
	}
	start = p.head
	if first := from / blockBytes; first > 0 {
		start = p.ends[first-1]
	}
	return start, p.ends[(to-1)/blockBytes]
}

// text returns the text in the stored bytes of a part that begins at from, and where it
// begins: at the start of its block.
func (p *packed) text(stored []byte, from int) (text string, at int, err error) {
	if p.ends == nil {
		return string(stored), from, nil
	}
	first := from / blockBytes
	begin, _ := p.stored(from, from+1)
	var b strings.Builder
	for i := first; len(stored) > 0 && i < len(p.ends); i++ {
		size := p.ends[i] - begin
		if size > len(stored) {
			return "", 0, errPacked
		}
		block := io.LimitReader(flate.NewReader(bytes.NewReader(stored[:size])), blockBytes)
		if _, err := io.Copy(&b, block); err != nil {
			return "", 0, errPacked
		}
		stored, begin = stored[size:], p.ends[i]
	}
	if at = first * blockBytes; at+b.Len() > p.size {
		return "", 0, errPacked
	}
	return b.String(), at, nil
}

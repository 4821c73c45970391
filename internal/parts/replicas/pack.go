package replicas

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"sync"

	"mcpx/executor/results"
	"mcpx/internal/rawjson"
)

// Limits of packed results.
const (
	rawBytes    = 4 << 10  // a longer text is compressed
	textBytes   = 64 << 20 // the longest text
	packedBytes = 16 << 20 // the longest packed result: longer ones take too long to send
)

// packMark begins a packed result. It names the format.
const packMark = "mcpx2"

const (
	headerBytes = len(packMark) + 4*4
	startBytes  = headerBytes + rawBytes // a result whose text is not compressed is never longer
)

var errPacked = errors.New("the kept result cannot be read")

// writers has compressors, since a new one needs a lot of memory (BenchmarkPut).
var writers = sync.Pool{New: func() any {
	w, _ := flate.NewWriter(nil, flate.BestSpeed) // fails only for an unknown level
	return w
}}

// packed is the header of a packed result. The text follows it.
type packed struct {
	size    int // of the text
	data    int // where the JSON begins in the text
	dataEnd int
	body    int // length of the text in the packed result
}

// pack returns a result as one value, nil if it is too long. The JSON of a result is always
// a part of its text.
func pack(k results.Kept) []byte {
	at := strings.Index(k.Text, k.Data)
	if len(k.Text) > textBytes || at < 0 {
		return nil
	}
	var value bytes.Buffer
	value.Write(make([]byte, headerBytes))
	if len(k.Text) > rawBytes {
		w := writers.Get().(*flate.Writer)
		defer writers.Put(w)
		w.Reset(&value)
		_, _ = w.Write(rawjson.Bytes(k.Text)) // a Buffer takes everything
		_ = w.Close()
	} else {
		value.WriteString(k.Text)
	}
	if value.Len() > packedBytes {
		return nil
	}
	header := []byte(packMark)
	for _, n := range []int{len(k.Text), at, at + len(k.Data), value.Len() - headerBytes} {
		header = binary.BigEndian.AppendUint32(header, uint32(n))
	}
	copy(value.Bytes(), header)
	return value.Bytes()
}

// readHeader reads the header at the start of a packed result. It returns false for any other
// value.
func readHeader(start []byte) (p packed, ok bool) {
	if len(start) < headerBytes || !bytes.HasPrefix(start, []byte(packMark)) {
		return p, false
	}
	number := func(i int) int { return int(binary.BigEndian.Uint32(start[len(packMark)+4*i:])) }
	p = packed{number(0), number(1), number(2), number(3)}
	return p, p.data <= p.dataEnd && p.dataEnd <= p.size && p.size <= textBytes && p.body <= packedBytes
}

// unpack returns a result whose text is in two parts of a value.
func (p packed) unpack(start, rest []byte) (results.Kept, error) {
	body := io.MultiReader(bytes.NewReader(start), bytes.NewReader(rest))
	if p.size > rawBytes {
		body = flate.NewReader(body)
	}
	var text strings.Builder
	text.Grow(p.size)
	if n, err := io.Copy(&text, io.LimitReader(body, int64(p.size)+1)); err != nil || int(n) != p.size {
		return results.Kept{}, errPacked
	}
	return results.Kept{Text: text.String(), Data: text.String()[p.data:p.dataEnd]}, nil
}

package jsonrpc

import (
	"math/bits"
	"sync"
)

// Buffers of long messages are used again: memory that is new to a process costs
// more than what is written to it.
const (
	minKept = 64 << 10
	maxKept = 2 << 20
)

var buffers sync.Pool // of *[]byte

// Buffer is an empty buffer for a message of that size.
func Buffer(size int) []byte {
	if size < minKept || size > maxKept {
		return make([]byte, 0, size)
	}
	if b, ok := buffers.Get().(*[]byte); ok && cap(*b) >= size {
		return (*b)[:0]
	}
	return make([]byte, 0, 1<<bits.Len(uint(size-1))) // so that it does for others, too
}

// Recycle takes a buffer that nobody uses any more.
func Recycle(b []byte) {
	if cap(b) >= minKept && cap(b) <= maxKept {
		buffers.Put(&b)
	}
}

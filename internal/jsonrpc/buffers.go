package jsonrpc

import "math/bits"

// Buffers of long messages are used again: memory that is new to a process costs
// more than what is written to it.
const (
	minKept = 64 << 10
	maxKept = 2 << 20
)

// buffers are those that nobody uses now. A sync.Pool has them for each processor
// apart, and so holds several where one would do.
var buffers = make(chan []byte, 4)

// Buffer is an empty buffer for a message of that size.
func Buffer(size int) []byte {
	if size < minKept || size > maxKept {
		return make([]byte, 0, size)
	}
	select {
	case b := <-buffers:
		if cap(b) >= size {
			return b
		}
	default:
	}
	return make([]byte, 0, 1<<bits.Len(uint(size-1))) // so that it does for others, too
}

// Recycle takes a buffer that nobody uses any more.
func Recycle(b []byte) {
	if cap(b) < minKept || cap(b) > maxKept {
		return
	}
	select {
	case buffers <- b[:0]:
	default:
	}
}

// DropBuffers leaves the buffers that nobody uses to the garbage collector.
func DropBuffers() {
	for range cap(buffers) {
		select {
		case <-buffers:
		default:
			return
		}
	}
}

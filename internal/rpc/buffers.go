package rpc

import "math/bits"

// Capacities of the buffers that are used again. The first use of fresh memory costs
// more than copying a long message (BenchmarkStdioLarge).
const (
	minRecycled = 64 << 10
	maxRecycled = 2 << 20
)

// buffers holds the buffers that are free. A sync.Pool would hold some for each
// processor.
var buffers = make(chan []byte, 4)

// Buffer returns an empty buffer with room for size bytes.
func Buffer(size int) []byte {
	if size < minRecycled || size > maxRecycled {
		return make([]byte, 0, size)
	}
	select {
	case b := <-buffers:
		if cap(b) >= size {
			return b
		}
	default:
	}
	return make([]byte, 0, 1<<bits.Len(uint(size-1))) // rounded up, so that later messages fit too
}

// Recycle makes a buffer available to Buffer. The caller must not use it any more.
func Recycle(b []byte) {
	if cap(b) < minRecycled || cap(b) > maxRecycled {
		return
	}
	select {
	case buffers <- b[:0]:
	default:
	}
}

// DropBuffers leaves the free buffers to the garbage collector.
func DropBuffers() {
	for range cap(buffers) {
		select {
		case <-buffers:
		default:
			return
		}
	}
}

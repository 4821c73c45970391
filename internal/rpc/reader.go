package rpc

import (
	"bytes"
	"errors"
	"io"
	"math/bits"
	"unicode/utf8"
)

// ErrTooLong is returned for a line over the reader's limit. The next Read returns the
// line after it.
var ErrTooLong = errors.New("message too long")

// Reader reads lines of bounded length, one message each. It copies long lines less
// often than bufio.Reader (BenchmarkStdioLarge). It is not safe for concurrent use.
type Reader struct {
	// Reserve is called before the buffer grows to size bytes for a line. It may wait. If
	// it fails, Read returns its error from then on. It may be nil.
	Reserve func(size int) error

	r     io.Reader
	limit int

	buffer     []byte
	start, end int   // the part of buffer that was read from r and not yet returned
	searched   int   // no newline between start and here
	longSize   int   // buffer size for the last long line
	err        error // from the last read
	skipping   bool  // the current line is too long
	partial    bool  // the last line had no newline
}

// readSize is the size of one read, unless a line is longer.
const readSize = 1 << 14

// NewReader returns a Reader of lines of at most limit bytes.
func NewReader(r io.Reader, limit int) *Reader {
	return &Reader{r: r, limit: limit}
}

// Read returns the next line that is not blank, as valid UTF-8 and without its newline. Some
// programs begin their output with a byte order mark, which is skipped at the start of any line.
// The caller owns the slice with all of its capacity. The last line may lack a newline.
// Read returns ErrTooLong as soon as a line is over the limit, since the line may never
// end; the next Read, or Skip, skips the rest of it.
func (r *Reader) Read() ([]byte, error) {
	for {
		line, err := r.ReadLine()
		if err != nil {
			return nil, err
		}
		line = bytes.TrimSpace(WithoutMark(bytes.TrimSpace(line)))
		if len(line) == 0 {
			continue
		}
		return UTF8(line), nil
	}
}

// ReadLine is Read for a line as it is, which may be blank.
func (r *Reader) ReadLine() ([]byte, error) {
	if err := r.Skip(); err != nil {
		return nil, err
	}
	for {
		if i := bytes.IndexByte(r.buffer[r.searched:r.end], '\n'); i >= 0 {
			return r.pop(r.searched+i, r.searched+i+1)
		}
		r.searched = r.end
		switch {
		case r.end-r.start > r.limit:
			r.skipping = true
			return nil, ErrTooLong
		case errors.Is(r.err, io.EOF) && r.end > r.start:
			r.partial = true
			return r.pop(r.end, r.end)
		case r.err != nil:
			return nil, r.err
		}
		r.fill()
	}
}

// Partial reports whether the line that Read returned last was cut off by the end of
// the input.
func (r *Reader) Partial() bool { return r.partial }

// pop removes and returns the line that ends at end. The line after it starts at next.
func (r *Reader) pop(end, next int) ([]byte, error) {
	line := r.buffer[r.start:end]
	if len(line) > r.limit {
		r.start, r.searched = next, next
		return nil, ErrTooLong
	}
	if len(line) <= readSize {
		line = append(make([]byte, 0, len(line)+EnvelopeBytes), line...)
		r.start, r.searched = next, next
		return line, nil
	}
	// The caller gets the buffer of a long line, so the bytes after the line are copied
	// to a new one.
	r.longSize = min(len(line)+EnvelopeBytes, maxRecycled)
	rest := r.buffer[next:r.end]
	r.buffer = make([]byte, max(readSize, len(rest)))
	r.start, r.searched, r.end = 0, 0, copy(r.buffer, rest)
	return line, nil
}

// fill reads more bytes. It enlarges the buffer if one line fills it.
func (r *Reader) fill() {
	switch {
	case r.start == r.end:
		r.start, r.searched, r.end = 0, 0, 0
		if len(r.buffer) > readSize { // it was enlarged for many lines at once
			r.buffer = nil
		}
	case r.end == len(r.buffer) && r.start > 0:
		r.end = copy(r.buffer, r.buffer[r.start:r.end])
		r.start, r.searched = 0, r.end
	}
	if r.end == len(r.buffer) {
		size := max(readSize, 2*len(r.buffer))
		if len(r.buffer) > 0 { // this long line is probably about as long as the last one
			size = max(size, r.longSize)
		}
		if r.Reserve != nil {
			if r.err = r.Reserve(size); r.err != nil {
				return
			}
		}
		larger := Buffer(size)
		r.buffer = append(larger, r.buffer[:r.end]...)[:cap(larger)]
	}
	n, err := r.r.Read(r.buffer[r.end:])
	r.end += n
	r.err = err
}

// Skip skips the rest of a line that was too long, in constant memory. If it fails, the
// next Read returns the same error.
func (r *Reader) Skip() error {
	for r.skipping {
		r.buffer, r.start, r.end, r.searched = r.buffer[:min(len(r.buffer), readSize)], 0, 0, 0
		if r.err != nil {
			return r.err
		}
		r.fill()
		if i := bytes.IndexByte(r.buffer[:r.end], '\n'); i >= 0 {
			r.start, r.searched, r.skipping = i+1, i+1, false
		}
	}
	return nil
}

// WithoutMark returns a text without the byte order mark that it may begin with.
func WithoutMark(text []byte) []byte { return bytes.TrimPrefix(text, byteOrderMark) }

var byteOrderMark = []byte("\ufeff")

// UTF8 returns a message with invalid UTF-8 replaced, since that could crash the
// receiver. A valid message is returned as it is.
func UTF8(message []byte) []byte {
	if utf8.Valid(message) {
		return message
	}
	return bytes.ToValidUTF8(message, []byte("\ufffd"))
}

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

// Trim returns a message that may wait long. If much of its memory is unused, it is copied to
// a buffer of its size. The memory of the message passes to Trim.
func Trim(message []byte) []byte {
	const little = 4 << 10
	unused := cap(message) - len(message)
	isRecycled := cap(message) <= maxRecycled && unused <= len(message)
	if unused <= little+len(message)/4 || isRecycled {
		return message
	}
	trimmed := append(make([]byte, 0, len(message)+EnvelopeBytes), message...)
	Recycle(message)
	return trimmed
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

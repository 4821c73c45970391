package jsonrpc

import (
	"bytes"
	"errors"
	"io"
)

// ErrTooLong is a line over its reader's limit. The reader can go on with the
// next line.
var ErrTooLong = errors.New("message too long")

// Reader reads messages that end with a newline, of bounded length. A bufio
// Reader would copy a long line twice more.
type Reader struct {
	// Reserve is called before a line takes that much memory, and with 0 when the
	// line is handed out. It may wait; its error ends the input. It may be nil.
	Reserve func(size int) error

	r     io.Reader
	limit int

	buffer     []byte // all of it can be read into
	start, end int    // what of it was read and not returned
	seen       int    // up to here there is no end of a line
	long       int    // the buffer that the last long line needed
	err        error  // of the last read
	over       bool   // it is inside a line that is too long
	partial    bool   // the last line had no end
	reserved   bool   // Reserve was called for the line that is being read
}

// readSize is how much is read at a time, unless a line is longer.
const readSize = 1 << 14

// NewReader returns a Reader of lines of at most limit bytes.
func NewReader(r io.Reader, limit int) *Reader {
	return &Reader{r: r, limit: limit}
}

// Read returns the next line that is not blank, without its end, as UTF8 has it.
// The bytes are the caller's to keep, with all the capacity they have. A last
// line without an end counts as one. A line that is too long is told of as soon
// as it is, since it may never end, and skipped by the next Read, or by Skip.
func (r *Reader) Read() ([]byte, error) {
	if err := r.Skip(); err != nil {
		return nil, err
	}
	for {
		line, err := r.line()
		if err != nil {
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		return UTF8(line), nil
	}
}

// Partial reports whether the line that Read returned last was cut off by the end of
// the input.
func (r *Reader) Partial() bool { return r.partial }

func (r *Reader) line() ([]byte, error) {
	for {
		if i := bytes.IndexByte(r.buffer[r.seen:r.end], '\n'); i >= 0 {
			return r.take(r.seen+i, r.seen+i+1)
		}
		r.seen = r.end
		switch {
		case r.end-r.start > r.limit:
			r.over = true
			return nil, ErrTooLong
		case errors.Is(r.err, io.EOF) && r.end > r.start:
			r.partial = true
			return r.take(r.end, r.end)
		case r.err != nil:
			return nil, r.err
		}
		r.fill()
	}
}

// take returns what is there up to end, and goes on at next.
func (r *Reader) take(end, next int) ([]byte, error) {
	line := r.buffer[r.start:end]
	if r.reserved {
		r.reserved = false
		_ = r.Reserve(0)
	}
	if len(line) > r.limit {
		r.start, r.seen = next, next
		return nil, ErrTooLong
	}
	if len(line) <= readSize {
		line = append(make([]byte, 0, len(line)+room), line...)
		r.start, r.seen = next, next
		return line, nil
	}
	// A line that needed a larger buffer takes it along. What came with it is
	// copied once, not with every line that it has.
	r.long = min(len(line)+room, maxKept)
	rest := r.buffer[next:r.end]
	r.buffer = make([]byte, max(readSize, len(rest)))
	r.start, r.seen, r.end = 0, 0, copy(r.buffer, rest)
	return line, nil
}

// fill reads more, into a larger buffer if this one is full of one line.
func (r *Reader) fill() {
	switch {
	case r.start == r.end:
		r.start, r.seen, r.end = 0, 0, 0
		if len(r.buffer) > readSize { // it was needed once
			r.buffer = nil
		}
	case r.end == len(r.buffer) && r.start > 0:
		r.end = copy(r.buffer, r.buffer[r.start:r.end])
		r.start, r.seen = 0, r.end
	}
	if r.end == len(r.buffer) {
		size := max(readSize, 2*len(r.buffer))
		if len(r.buffer) > 0 { // the next long line is likely to be like the last
			size = max(size, r.long)
		}
		if r.Reserve != nil {
			r.reserved = true
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

// Skip moves to the end of a line that was too long, in constant memory. Its error
// is that of the next Read too.
func (r *Reader) Skip() error {
	for r.over {
		r.buffer, r.start, r.end, r.seen = r.buffer[:min(len(r.buffer), readSize)], 0, 0, 0
		if r.err != nil {
			return r.err
		}
		r.fill()
		if i := bytes.IndexByte(r.buffer[:r.end], '\n'); i >= 0 {
			r.start, r.seen, r.over = i+1, i+1, false
		}
	}
	return nil
}

package jsonrpc

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync"
	"unicode/utf8"
)

// ErrTooLong is a line over its reader's limit. The reader is past it and can
// go on with the next line.
var ErrTooLong = errors.New("message too long")

// Reader reads messages that end with a newline, of bounded length.
type Reader struct {
	r     *bufio.Reader
	limit int
}

// NewReader returns a Reader of lines of at most limit bytes.
func NewReader(r io.Reader, limit int) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 1<<16), limit: limit}
}

// Read returns the next line that is not blank, without its end. The bytes are
// the caller's to keep. A last line without an end counts as one. What is not
// UTF-8 is replaced: passed on, it could end the other side.
func (r *Reader) Read() ([]byte, error) {
	for {
		line, err := r.line()
		if err != nil {
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if !utf8.Valid(line) {
			line = bytes.ToValidUTF8(line, []byte("\ufffd"))
		}
		return line, nil
	}
}

func (r *Reader) line() ([]byte, error) {
	var line []byte
	for {
		part, err := r.r.ReadSlice('\n')
		if len(line)+len(part) > r.limit+1 {
			return nil, r.skip(err)
		}
		line = append(line, part...)
		switch {
		case err == nil, err == io.EOF && len(line) > 0:
			return line, nil
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		}
		return nil, err
	}
}

// skip moves to the end of a line that is too long, in constant memory.
func (r *Reader) skip(err error) error {
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = r.r.ReadSlice('\n')
	}
	if err != nil && err != io.EOF {
		return err
	}
	return ErrTooLong
}

// Writer sends messages down a pipe, each on a line of its own, in the order in
// which they were queued. One goroutine writes, and what is queued while it
// does goes out in one piece.
type Writer struct {
	w     io.Writer
	limit int
	wake  chan struct{} // capacity 1

	mu     sync.Mutex
	room   sync.Cond // the queue got shorter, or the end has come
	queue  []byte    // whole lines
	err    error     // why nothing more is written
	closed bool
}

// ErrFull is returned when the other side has left too much unread.
var ErrFull = errors.New("the other side does not read its input")

// errClosed is returned for messages after Close.
var errClosed = errors.New("closed")

// NewWriter returns a Writer that holds at most limit bytes not yet read by the
// other side, or one message if that is larger.
func NewWriter(w io.Writer, limit int) *Writer {
	writer := &Writer{w: w, limit: limit, wake: make(chan struct{}, 1)}
	writer.room.L = &writer.mu
	return writer
}

// Send queues one message. It never waits: it fails with ErrFull when too much
// is queued. The bytes are copied.
func (w *Writer) Send(message []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.enqueue(message)
}

// Push is Send, but it waits while too much is queued.
func (w *Writer) Push(message []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		err := w.enqueue(message)
		if !errors.Is(err, ErrFull) {
			return err
		}
		w.room.Wait()
	}
}

func (w *Writer) enqueue(message []byte) error {
	switch {
	case w.err != nil:
		return w.err
	case w.closed:
		return errClosed
	case len(w.queue) > 0 && len(w.queue)+len(message) > w.limit:
		return ErrFull
	}
	start := len(w.queue)
	w.queue = append(append(w.queue, message...), '\n')
	OneLine(w.queue[start : len(w.queue)-1])
	w.notify()
	return nil
}

// OneLine makes a message one line. In JSON a line break is only ever white space
// between tokens; sent as it is, what follows it would be a message of its own.
func OneLine(message []byte) {
	for _, end := range []byte{'\n', '\r'} {
		for rest := message; ; {
			i := bytes.IndexByte(rest, end)
			if i < 0 {
				break
			}
			rest[i] = ' '
			rest = rest[i+1:]
		}
	}
}

// Close ends Run once what was queued before is written.
func (w *Writer) Close() {
	w.mu.Lock()
	w.closed = true
	w.room.Broadcast()
	w.mu.Unlock()
	w.notify()
}

func (w *Writer) notify() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Run writes until Close, or until a write fails. It returns only when the
// write under way returns: whoever stops it closes the pipe.
func (w *Writer) Run() error {
	var out []byte
	for range w.wake {
		var closed bool
		w.mu.Lock()
		out, w.queue, closed = w.queue, out[:0], w.closed
		w.room.Broadcast()
		w.mu.Unlock()
		if len(out) > 0 {
			if _, err := w.w.Write(out); err != nil {
				w.mu.Lock()
				w.err, w.queue = err, nil
				w.room.Broadcast()
				w.mu.Unlock()
				return err
			}
		}
		if closed {
			return nil
		}
		if cap(out) > keepBuffer {
			out = nil
		}
	}
	return nil
}

// keepBuffer is the size up to which a buffer is kept for the next messages.
const keepBuffer = 1 << 20

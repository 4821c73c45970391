package jsonrpc

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"sync"
	"time"
)

// Writer sends messages down a pipe, each on a line of its own, in the order in
// which they came. A message that comes alone is written at once, by whoever
// sends it, as far as that takes no waiting. Everything else is queued: one
// goroutine writes it, and what is queued meanwhile goes out in one piece.
type Writer struct {
	w     io.Writer
	try   func(b []byte) (int, error) // writes what goes without waiting; nil: nobody knows how
	limit int
	wake  chan struct{} // capacity 1

	mu     sync.Mutex
	room   sync.Cond // the queue got shorter, or the end has come
	queue  []byte    // whole lines
	spare  []byte    // for the queue
	busy   bool      // somebody writes
	last   time.Time // when the last message came
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
	writer := &Writer{w: w, try: withoutWaiting(w), limit: limit, wake: make(chan struct{}, 1)}
	writer.room.L = &writer.mu
	return writer
}

// Send sends one message, which is the writer's from then on. It never waits: it
// fails with ErrFull when too much is queued.
func (w *Writer) Send(message []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.send(message, w.try)
}

// Push is Send, but it waits while too much is queued, and for the other side.
func (w *Writer) Push(message []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		err := w.send(message, w.w.Write)
		if !errors.Is(err, ErrFull) {
			return err
		}
		w.room.Wait()
	}
}

func (w *Writer) send(message []byte, write func(b []byte) (int, error)) error {
	switch {
	case w.err != nil:
		return w.err
	case w.closed:
		return errClosed
	case len(w.queue) > 0 && len(w.queue)+len(message) > w.limit:
		return ErrFull
	}
	OneLine(message)
	if write == nil || w.busy || len(w.queue) > 0 || w.isRush() {
		w.queue = append(append(w.queue, message...), '\n')
		w.notify()
		return nil
	}
	return w.write(append(message, '\n'), write)
}

// rush is how close to each other messages come that are better gathered: about
// what it takes to write one.
const rush = 20 * time.Microsecond

// isRush reports whether another message has just come.
func (w *Writer) isRush() bool {
	now := time.Now()
	since := now.Sub(w.last)
	w.last = now
	return since < rush
}

// write writes a piece and puts back what did not go. The mutex is free
// meanwhile.
func (w *Writer) write(piece []byte, write func(b []byte) (int, error)) error {
	w.busy = true
	w.mu.Unlock()
	n, err := write(piece)
	if n == len(piece) {
		Recycle(piece)
	}
	w.mu.Lock()
	w.busy = false
	switch {
	case err != nil:
		w.err, w.queue = err, nil
	case n < len(piece):
		w.queue = append(piece[n:], w.queue...)
	}
	w.room.Broadcast()
	if len(w.queue) > 0 || w.closed || err != nil {
		w.notify()
	}
	return err
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

// Close ends Run once what was sent before is written.
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

// Run writes what is queued until Close, or until a write fails. It returns only
// when the write under way returns: whoever stops it closes the pipe.
func (w *Writer) Run() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		switch {
		case w.busy: // who writes says when that is over
		case w.err != nil:
			return w.err
		case len(w.queue) > 0:
			piece := w.queue
			w.queue, w.spare = w.spare[:0], nil
			_ = w.write(piece, w.w.Write)
			if cap(piece) < minKept { // else it is kept elsewhere
				w.spare = piece[:0]
			}
			continue
		case w.closed:
			return nil
		}
		w.mu.Unlock()
		<-w.wake
		runtime.Gosched() // who is about to send, too, does so first
		w.mu.Lock()
	}
}

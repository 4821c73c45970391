package rpc

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"slices"
	"sync"
	"time"

	"mcpx/internal/tasks"
)

// Writer writes messages to a pipe in the order of Send, one per line. If nothing is
// queued, Send writes the message itself, as far as the pipe has room
// (BenchmarkStdioSmall). Everything else is queued, and Run writes short messages
// together. All methods except Run may be called concurrently.
type Writer struct {
	w     io.Writer
	try   func(b []byte) (int, error) // writes as much as fits without waiting; nil if w cannot do that
	limit int
	wake  tasks.Signal

	mu     sync.Mutex
	room   sync.Cond // signaled when the queue shrinks, a write fails or the writer closes
	queue  [][]byte  // pieces of whole lines, except that the first may have been written in part
	queued int       // bytes of the queue
	isOpen bool      // the last piece takes further short messages
	spare  []byte    // memory for the next piece of short messages
	busy   bool      // a write is under way
	last   time.Time // of the last Send
	err    error     // of the write that failed
	closed bool
}

// ErrFull is returned while too many bytes are queued.
var ErrFull = errors.New("the other side does not read its input")

// NewWriter returns a Writer whose queue holds at most limit bytes, or one larger
// message.
func NewWriter(w io.Writer, limit int) *Writer {
	writer := &Writer{w: w, try: nonblockingWrite(w), limit: limit, wake: tasks.NewSignal()}
	writer.room.L = &writer.mu
	return writer
}

// Send writes or queues a message, whose memory then belongs to the Writer. It never
// waits. It returns ErrFull if too much is queued.
func (w *Writer) Send(message []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.send(message, w.try)
}

// Push is Send, except that it waits until there is room in the queue, and until the
// message is written if nothing is queued.
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
		return ErrClosed
	case len(w.queue) > 0 && w.queued+len(message) > w.limit:
		return ErrFull
	}
	OneLine(message)
	if write == nil || w.busy || len(w.queue) > 0 || w.isBurst() {
		w.add(message)
		w.wake.Notify()
		return nil
	}
	return w.write(append(message, '\n'), write)
}

// openBytes is the size up to which short messages are gathered in one piece.
const openBytes = 64 << 10

// add queues a message. Short ones are copied to a common piece.
func (w *Writer) add(message []byte) {
	w.queued += len(message) + len("\n")
	if len(message) >= openBytes {
		w.queue, w.isOpen = append(w.queue, append(Trim(message), '\n')), false
		return
	}
	last := len(w.queue) - 1
	if !w.isOpen || len(w.queue[last])+len(message) > openBytes {
		w.queue, w.spare, w.isOpen = append(w.queue, w.spare), nil, true
		last++
	}
	w.queue[last] = append(append(w.queue[last], message...), '\n')
}

// pop removes the first piece of the queue.
func (w *Writer) pop() []byte {
	piece := w.queue[0]
	w.queue = slices.Delete(w.queue, 0, 1)
	w.queued -= len(piece)
	w.isOpen = w.isOpen && len(w.queue) > 0
	return piece
}

// burstInterval is about the time that one write takes. Messages that follow each other
// faster are written together.
const burstInterval = 20 * time.Microsecond

// isBurst reports whether the message before this one was sent within burstInterval.
func (w *Writer) isBurst() bool {
	now := time.Now()
	since := now.Sub(w.last)
	w.last = now
	return since < burstInterval
}

// write writes a piece and puts the part that was not written back into the queue. It
// unlocks the mutex meanwhile.
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
		w.err, w.queue, w.queued, w.isOpen = err, nil, 0, false
	case n < len(piece):
		w.queue = slices.Insert(w.queue, 0, piece[n:])
		w.queued += len(piece) - n
	}
	w.room.Broadcast()
	if len(w.queue) > 0 || w.closed || err != nil {
		w.wake.Notify()
	}
	return err
}

// OneLine replaces the line breaks in a message by spaces. Valid JSON has them only
// between tokens. A line break would split the message in two.
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

// Close ends Run as soon as the queue is written.
func (w *Writer) Close() {
	w.mu.Lock()
	w.closed = true
	w.room.Broadcast()
	w.mu.Unlock()
	w.wake.Notify()
}

// Run writes the queue until Close is called or a write fails. It waits for the write
// that is under way; to stop it earlier, close the pipe.
func (w *Writer) Run() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		switch {
		case w.busy: // write wakes Run when it is done
		case w.err != nil:
			return w.err
		case len(w.queue) > 0:
			piece := w.pop()
			_ = w.write(piece, w.w.Write)
			if cap(piece) < minRecycled { // larger ones were recycled
				w.spare = piece[:0]
			}
			continue
		case w.closed:
			return nil
		}
		w.mu.Unlock()
		<-w.wake
		runtime.Gosched() // lets other goroutines send first, so that one write takes all
		w.mu.Lock()
	}
}

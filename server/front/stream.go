package front

import (
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"mcpx/internal/jsonrpc"
)

// stream is what goes to a client in one HTTP answer: messages as they come, and
// for a call its answer as the last. Whoever sends never waits for the client to
// read; only the answers of the older transport do.
type stream struct {
	times  times
	limit  int           // bytes that may be unread
	signal chan struct{} // capacity 1: there is something new

	mu     sync.Mutex
	room   sync.Cond // signaled when bytes shrinks or the stream closes
	queue  [][]byte
	bytes  int // of what is queued, and of what is being written
	ended  bool
	closed bool   // the client is gone; nothing more is taken
	start  func() // writes what is queued, as events; nil: somebody does, or nobody will
}

var errStreamFull = errors.New("the client does not read its stream")

// errStreamClosed is returned for messages to a client that is gone.
var errStreamClosed = errors.New("the client's stream is closed")

func newStream(t times, limit int) *stream {
	s := &stream{times: t, limit: limit, signal: make(chan struct{}, 1)}
	s.room.L = &s.mu
	return s
}

// Send queues a message. It never waits.
func (s *stream) Send(message []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.send(message)
}

// Push is Send, but it waits until the client has read enough.
func (s *stream) Push(message []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		err := s.send(message)
		if !errors.Is(err, errStreamFull) {
			return err
		}
		s.room.Wait()
	}
}

func (s *stream) send(message []byte) error {
	switch {
	case s.closed || s.ended:
		return errStreamClosed
	case s.bytes > 0 && s.bytes+len(message) > s.limit:
		return errStreamFull
	}
	s.queue = append(s.queue, message)
	s.bytes += len(message)
	s.flushLocked()
	return nil
}

// flushLocked starts or wakes the writer.
func (s *stream) flushLocked() {
	if s.start != nil {
		go s.start()
		s.start = nil
	}
	s.notify()
}

// end queues the last message, if there is one.
func (s *stream) end(last []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.ended = true
	if last != nil {
		s.queue = append(s.queue, last)
		s.bytes += len(last)
	}
	s.room.Broadcast()
	s.notify()
}

func (s *stream) notify() {
	select {
	case s.signal <- struct{}{}:
	default:
	}
}

// pieceBytes is about how much is written at a time.
const pieceBytes = 64 << 10

// take returns the next messages to write, which count as unread until written, and
// whether they are the last.
func (s *stream) take() (messages [][]byte, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for size := 0; len(s.queue) > 0 && size < pieceBytes; s.queue = s.queue[1:] {
		messages = append(messages, s.queue[0])
		size += len(s.queue[0])
		s.queue[0] = nil
	}
	if len(s.queue) > 0 {
		s.notify()
		return messages, false
	}
	s.queue = nil
	return messages, s.ended
}

// written makes room for others.
func (s *stream) written(messages [][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range messages {
		s.bytes -= len(m)
	}
	s.room.Broadcast()
}

func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.queue, s.bytes = true, nil, 0
	s.room.Broadcast()
}

// respond makes the answer to a request and writes it: as one JSON message if
// nothing comes before it, else all of it as server-sent events. Nearly every
// call has nothing but its answer, which then takes no goroutine and no waking.
func (s *stream) respond(w http.ResponseWriter, r *http.Request, answer func() []byte) {
	written := make(chan struct{})
	s.mu.Lock()
	s.start = func() {
		defer close(written)
		s.serve(s.times.events(w), r)
	}
	if len(s.queue) > 0 { // the call was begun before
		s.flushLocked()
	}
	s.mu.Unlock()
	alive := time.AfterFunc(s.times.alive, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.flushLocked()
	})
	last := answer()
	alive.Stop()
	s.mu.Lock()
	isAll := s.start != nil
	s.start, s.closed = nil, s.closed || isAll
	s.mu.Unlock()
	if isAll {
		s.times.writeJSON(w, last)
		return
	}
	s.end(last)
	<-written
}

// serve writes the stream as server-sent events. It returns when the stream has
// ended or the client is gone.
func (s *stream) serve(out *eventWriter, r *http.Request) {
	defer s.close()
	tick := time.NewTicker(s.times.alive)
	defer tick.Stop()
	for {
		select {
		case <-s.signal:
		case <-tick.C:
			if out.comment() != nil {
				return
			}
			continue
		case <-r.Context().Done():
			return
		}
		messages, ended := s.take()
		if out.events(messages) != nil || ended {
			return
		}
		s.written(messages)
	}
}

// mayWrite gives the client its time to take what is written next.
func (t times) mayWrite(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(t.write))
}

// writeJSON answers with one message, or with none for a call that was cancelled.
func (t times) writeJSON(w http.ResponseWriter, message []byte) {
	t.mayWrite(w)
	if message == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(message))) // or a long one is sent in chunks
	_, _ = w.Write(message)                                      // a client that is gone needs no answer
	jsonrpc.Recycle(message)
}

// eventWriter writes server-sent events, each within a deadline of its own.
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	limit   time.Duration // for one write
	started bool
	buffer  []byte
}

// events begins an answer of events.
func (t times) events(w http.ResponseWriter) *eventWriter {
	return &eventWriter{w: w, control: http.NewResponseController(w), limit: t.write}
}

// start sends the header.
func (e *eventWriter) start() {
	if e.started {
		return
	}
	e.started = true
	h := e.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // or a proxy in front holds events back
	e.w.WriteHeader(http.StatusOK)
}

// events writes messages as events and flushes them.
func (e *eventWriter) events(messages [][]byte) error {
	e.start()
	e.buffer = e.buffer[:0]
	for _, m := range messages {
		e.buffer = appendEvent(e.buffer, "message", m)
	}
	return e.flush()
}

// comment shows that the stream is alive.
func (e *eventWriter) comment() error {
	e.start()
	e.buffer = append(e.buffer[:0], ": alive\n\n"...)
	return e.flush()
}

func (e *eventWriter) flush() error {
	_ = e.control.SetWriteDeadline(time.Now().Add(e.limit))
	if len(e.buffer) > 0 {
		if _, err := e.w.Write(e.buffer); err != nil {
			return err
		}
	}
	if cap(e.buffer) > 1<<20 {
		e.buffer = nil
	}
	return e.control.Flush()
}

// appendEvent appends one event. Its data is one line.
func appendEvent(b []byte, name string, data []byte) []byte {
	b = append(append(append(b, "event: "...), name...), "\ndata: "...)
	start := len(b)
	b = append(b, data...)
	jsonrpc.OneLine(b[start:])
	return append(b, "\n\n"...)
}

package front

import (
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"mcpx/internal/rpc"
	"mcpx/internal/tasks"
)

// stream queues the messages that go to a client in one HTTP response. The stream of a
// call ends with the call's response. Its methods may be called concurrently, except
// finish and serve, which write the HTTP response.
type stream struct {
	times  times
	limit  int          // of unread bytes
	signal tasks.Signal // messages were queued

	mu     sync.Mutex
	room   sync.Cond // signaled when bytes shrinks or the stream ends
	queue  [][]byte
	bytes  int  // size of the messages that are queued or being written
	ended  bool // the last message is queued
	closed bool // the HTTP response is finished or the client is gone

	// Of a call's stream.
	status func(response []byte) int // the HTTP status of a response of one message; nil: 200
	alive  *time.Timer               // starts serve if the call takes long
	start  func()                    // starts serve; nil: serve was started or is not needed
	served chan struct{}             // closed when serve has returned; nil: serve was not started
}

// errStreamFull is returned while the client has too much unread.
var errStreamFull = errors.New("the client does not read its stream")

// errStreamClosed is returned for messages after the end of the stream.
var errStreamClosed = errors.New("the client's stream is closed")

func newStream(t times, limit int) *stream {
	s := &stream{times: t, limit: limit, signal: tasks.NewSignal()}
	s.room.L = &s.mu
	return s
}

// Send queues a message. It never waits.
func (s *stream) Send(message []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.send(message)
}

// Push is Send, except that it waits until the client has read enough.
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

// flush starts serve, or wakes it.
func (s *stream) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flushLocked()
}

func (s *stream) flushLocked() {
	if s.start != nil {
		s.served = make(chan struct{})
		go s.start()
		s.start = nil
	}
	s.signal.Notify()
}

// end ends the stream after the last message, which may be nil.
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
	s.signal.Notify()
}

// pieceBytes is about the size of one write.
const pieceBytes = 64 << 10

// pop removes the next messages to write, and reports whether they are the last. They
// count as unread until written is called.
func (s *stream) pop() (messages [][]byte, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for size := 0; len(s.queue) > 0 && size < pieceBytes; s.queue = s.queue[1:] {
		messages = append(messages, s.queue[0])
		size += len(s.queue[0])
		s.queue[0] = nil
	}
	if len(s.queue) > 0 {
		s.signal.Notify()
		return messages, false
	}
	s.queue = nil
	return messages, s.ended
}

// written makes room for more messages.
func (s *stream) written(messages [][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range messages {
		s.bytes -= len(m)
	}
	s.room.Broadcast()
}

// close drops the queue. Nothing more can be sent.
func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.queue, s.bytes = true, nil, 0
	s.room.Broadcast()
}

// open makes the stream of a call the HTTP response to r. finish must follow. Nearly every
// call has only a response, which needs no further goroutine (BenchmarkHTTPSmall).
func (s *stream) open(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.start = func() {
		defer close(s.served)
		s.serve(s.times.events(w), r)
	}
	if len(s.queue) > 0 { // sent before open was called
		s.flushLocked()
	}
	s.alive = time.AfterFunc(s.times.alive, s.flush)
}

// finish writes the response of a call: as one JSON message if it is the only message of the
// stream, otherwise as the last of the server-sent events.
func (s *stream) finish(w http.ResponseWriter, response []byte) {
	s.alive.Stop()
	s.mu.Lock()
	isOnly := s.start != nil
	s.start, s.closed = nil, s.closed || isOnly
	s.mu.Unlock()
	if !isOnly {
		s.end(response)
		<-s.served
		return
	}
	status := http.StatusOK
	if s.status != nil {
		status = s.status(response)
	}
	s.times.writeJSON(w, response, status)
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
		messages, ended := s.pop()
		if out.events(messages) != nil || ended {
			return
		}
		s.written(messages)
	}
}

// setWriteDeadline sets the deadline of the next write.
func (t times) setWriteDeadline(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(t.write))
}

// writeJSON writes a response of one message. A nil message, for a canceled call, is
// written as 202 Accepted.
func (t times) writeJSON(w http.ResponseWriter, message []byte, status int) {
	t.setWriteDeadline(w)
	if message == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(message))) // otherwise a long message is sent in chunks
	w.WriteHeader(status)
	_, _ = w.Write(message) // on failure the client is gone
	rpc.Recycle(message)
}

// eventWriter writes server-sent events. Each write has its own deadline.
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration // of one write
	started bool
	buffer  []byte
}

// events returns an eventWriter for a response.
func (t times) events(w http.ResponseWriter) *eventWriter {
	return &eventWriter{w: w, control: http.NewResponseController(w), timeout: t.write}
}

// start writes the headers, once.
func (e *eventWriter) start() {
	if e.started {
		return
	}
	e.started = true
	h := e.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // otherwise a reverse proxy may delay events
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

// comment writes a comment, which shows that the stream is alive.
func (e *eventWriter) comment() error {
	e.start()
	e.buffer = append(e.buffer[:0], ": alive\n\n"...)
	return e.flush()
}

func (e *eventWriter) flush() error {
	_ = e.control.SetWriteDeadline(time.Now().Add(e.timeout))
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

// appendEvent appends one event. It replaces line breaks in the data by spaces.
func appendEvent(b []byte, name string, data []byte) []byte {
	b = append(append(append(b, "event: "...), name...), "\ndata: "...)
	start := len(b)
	b = append(b, data...)
	rpc.OneLine(b[start:])
	return append(b, "\n\n"...)
}

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
// respond and serve, which write the HTTP response.
type stream struct {
	times  times
	limit  int          // of unread bytes
	signal tasks.Signal // messages were queued

	mu     sync.Mutex
	room   sync.Cond // signaled when bytes shrinks or the stream ends
	queue  [][]byte
	bytes  int       // size of the messages that are queued or being written
	first  [1][]byte // memory of the queue for the stream of a call that has only a response
	sent   bool      // a message was queued besides the last
	ended  bool      // the last message is queued
	closed bool      // the HTTP response is finished or the client is gone
}

// errStreamFull is returned while the client has too much unread.
var errStreamFull = errors.New("the client does not read its stream")

// errStreamClosed is returned for messages after the end of the stream.
var errStreamClosed = errors.New("the client's stream is closed")

func newStream(t times, limit int) *stream {
	s := &stream{times: t, limit: limit, signal: tasks.NewSignal()}
	s.room.L, s.queue = &s.mu, s.first[:0]
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
	s.sent = true
	s.signal.Notify()
	return nil
}

// end ends the stream after the last message, which may be nil.
func (s *stream) end(last []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.ended = true
	if last != nil && !s.closed {
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

// respond writes the stream of a call: as one JSON message if it has only the call's response,
// otherwise as server-sent events. status returns the HTTP status of the JSON message; nil: 200.
// Nearly every call has only a response.
func (s *stream) respond(w http.ResponseWriter, r *http.Request, status func(response []byte) int) {
	alive := time.NewTimer(s.times.alive)
	defer alive.Stop()
	select {
	case <-s.signal:
	case <-alive.C: // the call takes long
	}
	response, ok := s.onlyResponse()
	switch {
	case !ok:
		s.signal.Notify() // serve reads the queue
		startEvents(w)
		s.serve(w, r)
	case status != nil:
		s.times.writeJSON(w, response, status(response))
	default:
		s.times.writeJSON(w, response, http.StatusOK)
	}
}

// onlyResponse removes and returns the response of a call if the stream has ended and has
// nothing else; nil if the call was canceled.
func (s *stream) onlyResponse() (response []byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended || s.sent {
		return nil, false
	}
	response, s.first[0], s.queue = s.first[0], nil, nil
	return response, true
}

// serve writes the stream as server-sent events. It returns when the stream has
// ended or the client is gone.
func (s *stream) serve(w http.ResponseWriter, r *http.Request) {
	defer s.close()
	tick := time.NewTicker(s.times.alive)
	defer tick.Stop()
	var events []byte
	for {
		var messages [][]byte
		var ended bool
		events = events[:0]
		select {
		case <-s.signal:
			messages, ended = s.pop()
			for _, m := range messages {
				events = appendEvent(events, "message", m)
			}
		case <-tick.C:
			events = append(events, ": alive\n\n"...)
		case <-r.Context().Done():
			return
		}
		if s.times.writeEvents(w, events) != nil || ended {
			return
		}
		s.written(messages)
		if cap(events) > 1<<20 {
			events = nil
		}
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

// startEvents writes the headers of a response with server-sent events.
func startEvents(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // otherwise a reverse proxy may delay events
	w.WriteHeader(http.StatusOK)
}

// writeEvents writes server-sent events, or only the headers. Each write has its own deadline.
func (t times) writeEvents(w http.ResponseWriter, events []byte) error {
	t.setWriteDeadline(w)
	if _, err := w.Write(events); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
}

// appendEvent appends one event. It replaces line breaks in the data by spaces.
func appendEvent(b []byte, name string, data []byte) []byte {
	b = append(append(append(b, "event: "...), name...), "\ndata: "...)
	start := len(b)
	b = append(b, data...)
	rpc.OneLine(b[start:])
	return append(b, "\n\n"...)
}

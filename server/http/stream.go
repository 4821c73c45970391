package httpfront

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"mcpx/internal/tasks"
	"mcpx/internal/unread"
)

// Stream queues the messages that go to a client in one HTTP response. The stream of a
// call ends with the call's response. Its methods may be called concurrently, except
// respond and serve, which write the HTTP response.
type Stream struct {
	times  times
	unread *unread.Account // of the queue
	status int             // of the HTTP response if it is one JSON message; 0: 200; set before end
	signal tasks.Signal    // messages were queued

	mu     sync.Mutex
	queue  []unread.Message
	first  [1]unread.Message // memory of the queue for the stream of a call that has only a response
	sent   bool              // a message was queued besides the last
	ended  bool              // the last message is queued
	closed bool              // the HTTP response is finished or the client is gone
}

// errStreamFull is returned while the client has too much unread.
var errStreamFull = errors.New("the client does not read its stream")

// errStreamClosed is returned for messages after the end of the stream.
var errStreamClosed = errors.New("the client's stream is closed")

func newStream(t times, account *unread.Account) *Stream {
	s := &Stream{times: t, unread: account, signal: tasks.NewSignal()}
	s.queue = s.first[:0]
	return s
}

// Send queues a message. It never waits.
func (s *Stream) Send(message []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.ended {
		return errStreamClosed
	}
	m, ok := s.unread.Add(message)
	if !ok {
		return errStreamFull
	}
	s.push(m)
	return nil
}

// push queues a message. The caller holds mu.
func (s *Stream) push(m unread.Message) {
	s.queue = append(s.queue, m)
	s.sent = true
	s.signal.Notify()
}

// sendResponse queues a response, however much is unread. It never waits for the client.
func (s *Stream) sendResponse(response []byte) {
	m := s.unread.Keep(response)
	s.mu.Lock()
	isOpen := !s.closed && !s.ended
	if isOpen && !m.IsZero() {
		s.push(m)
	}
	s.mu.Unlock()
	if !isOpen {
		m.Release()
	}
}

// end ends the stream after the last message, which may be nil.
func (s *Stream) end(last []byte) {
	m := s.unread.Keep(last)
	s.mu.Lock()
	isOpen := !s.closed && !s.ended
	if isOpen && !m.IsZero() {
		s.queue = append(s.queue, m)
	}
	s.ended = true
	s.signal.Notify()
	s.mu.Unlock()
	if !isOpen {
		m.Release()
	}
}

// pieceBytes is about the size of one write.
const pieceBytes = 64 << 10

// pop removes the next messages to write, and reports whether they are the last. The caller
// must release them.
func (s *Stream) pop() (messages []unread.Message, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for size := 0; len(s.queue) > 0 && size < pieceBytes; s.queue = s.queue[1:] {
		messages = append(messages, s.queue[0])
		size += s.queue[0].Len()
		s.queue[0] = unread.Message{}
	}
	if len(s.queue) > 0 {
		s.signal.Notify()
		return messages, false
	}
	s.queue = nil
	return messages, s.ended
}

// close drops the queue. Nothing more can be sent.
func (s *Stream) close() {
	s.mu.Lock()
	dropped := s.queue
	s.closed, s.queue = true, nil
	s.mu.Unlock()
	release(dropped)
}

// release releases messages that were written or dropped.
func release(messages []unread.Message) {
	for i := range messages {
		messages[i].Release()
	}
}

// respond writes the stream of a call: as one JSON message if it has only the call's response,
// otherwise as server-sent events. Nearly every call has only a response.
func (s *Stream) respond(w http.ResponseWriter, r *http.Request) {
	defer s.close()
	alive := time.NewTimer(s.times.alive)
	defer alive.Stop()
	select {
	case <-s.signal:
	case <-alive.C: // the call takes long
	}
	response, ok := s.onlyResponse()
	if !ok {
		s.signal.Notify() // serve reads the queue
		startEvents(w)
		s.serve(w, r)
		return
	}
	defer response.Release()
	s.times.writeResponse(w, response, cmp.Or(s.status, http.StatusOK))
}

// onlyResponse removes and returns the response of a call if the stream has ended and has
// nothing else; the zero Message if the call was canceled. The caller must release it.
func (s *Stream) onlyResponse() (response unread.Message, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended || s.sent {
		return response, false
	}
	response, s.first[0], s.queue = s.first[0], unread.Message{}, nil
	return response, true
}

// serve writes the stream as server-sent events. It returns when the stream has
// ended or the client is gone.
func (s *Stream) serve(w http.ResponseWriter, r *http.Request) {
	defer s.close()
	tick := time.NewTicker(s.times.alive)
	defer tick.Stop()
	var events []byte
	for {
		var messages []unread.Message
		var ended bool
		var err error
		events = events[:0]
		select {
		case <-s.signal:
			messages, ended = s.pop()
			events, err = s.times.writeMessages(w, events, messages)
		case <-tick.C:
			err = s.times.writeEvents(w, append(events, ": alive\n\n"...))
		case <-r.Context().Done():
			return
		}
		release(messages)
		if err != nil || ended {
			return
		}
	}
}

// setWriteDeadline sets the deadline of the next write.
func (t times) setWriteDeadline(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(t.write))
}

// writeJSON writes a response of one short message. A nil message, for a canceled request,
// is written as 202 Accepted.
func (t times) writeJSON(w http.ResponseWriter, message []byte, status int) {
	if message == nil {
		t.writeAccepted(w)
		return
	}
	t.startJSON(w, len(message), status)
	_, _ = w.Write(message) // on failure the client is gone
}

// startJSON writes the headers of a response of one message.
func (t times) startJSON(w http.ResponseWriter, size, status int) {
	t.setWriteDeadline(w)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(size)) // otherwise a long message is sent in chunks
	w.WriteHeader(status)
}

// writeAccepted writes a response without a message.
func (t times) writeAccepted(w http.ResponseWriter) {
	t.setWriteDeadline(w)
	w.WriteHeader(http.StatusAccepted)
}

// writeResponse writes the response of a call, each piece with its own deadline. The zero
// Message, for a canceled call, is written as 202 Accepted.
func (t times) writeResponse(w http.ResponseWriter, m unread.Message, status int) {
	if m.IsZero() {
		t.writeAccepted(w)
		return
	}
	t.startJSON(w, m.Len(), status)
	isFirst := true
	_ = m.Each(func(piece []byte) error { // on failure the client is gone
		if !isFirst {
			t.setWriteDeadline(w)
		}
		isFirst = false
		_, err := w.Write(piece)
		return err
	})
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
	if err := t.writePart(w, events); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
}

// writePart writes a part of server-sent events, whose end may not be sent before the next
// write.
func (t times) writePart(w http.ResponseWriter, part []byte) error {
	t.setWriteDeadline(w)
	_, err := w.Write(part)
	return err
}

// maxEvents is the size of the buffer in which short events are gathered. It takes memory until
// the client has read them.
const maxEvents = 16 << 10

// writeMessages writes messages as events, short ones together and long ones in pieces. It
// gathers events in the memory of buffer, and returns the memory for the next ones.
func (t times) writeMessages(w http.ResponseWriter, buffer []byte, messages []unread.Message) ([]byte, error) {
	for i := range messages {
		buffer = append(buffer, messageHead...)
		err := messages[i].EachOnOneLine(func(piece []byte) error {
			if len(buffer)+len(piece) <= maxEvents {
				buffer = append(buffer, piece...)
				return nil
			}
			if err := t.writePart(w, buffer); err != nil {
				return err
			}
			buffer = buffer[:0]
			return t.writePart(w, piece)
		})
		if err != nil {
			return nil, err
		}
		buffer = append(buffer, eventEnd...)
	}
	return buffer, t.writeEvents(w, buffer)
}

// The text before and after the data of an event.
const (
	messageHead = "event: message\ndata: "
	eventEnd    = "\n\n"
)

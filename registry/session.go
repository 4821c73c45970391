package registry

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"mcpx/internal/jsonrpc"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
)

// Session is a live connection to an upstream. It carries any number of calls
// at a time: each has an id of mcpx's own, and its parameters and its result
// pass as bytes.
type Session struct {
	server string
	link   link
	log    zerolog.Logger
	notify func(method string, params []byte) // notifications that belong to no call
	done   chan struct{}                      // closed when the session is over

	mu      sync.Mutex
	lastID  int64
	pending map[int64]*call
	err     error // why it is over
}

// link carries whole JSON-RPC messages to and from one upstream.
type link interface {
	// Send queues a message; it never waits for the upstream to read. It fails
	// with errOver when the connection has ended.
	Send(message []byte) error
	// Receive waits for the next message. Its error says why there are no more.
	Receive() ([]byte, error)
	// Close ends the connection and returns when nothing of it is left. It is
	// safe to call twice, and makes a Receive under way return.
	Close()
}

// Request is one call to an upstream.
type Request struct {
	Method string
	Params []byte // an object without _meta, or nil
	// Meta is the _meta object to send, with a progress token of mcpx's own. Nil:
	// none is sent, and progress is not asked for.
	Meta []byte

	Timeout    time.Duration // without any progress; 0: none
	MaxTimeout time.Duration // in all; 0: none

	// Notify is called with what the upstream says of this call, in order and
	// before Call returns; it may be nil.
	Notify func(method string, params []byte)
}

// call is a request that waits for its answer.
type call struct {
	signal chan struct{} // capacity 1: there is something new

	// Guarded by the session's mutex.
	notes []note
	reply *jsonrpc.Message
}

type note struct {
	method string
	params []byte
}

// errOver is returned for a call that was not sent, since the session is over.
var errOver = errors.New("the session is over")

// maxNotes bounds what is kept of a flood of notifications for one call while
// its client does not take them.
const maxNotes = 10_000

func newSession(server string, l link, log zerolog.Logger, notify func(string, []byte)) *Session {
	return &Session{
		server:  server,
		link:    l,
		log:     log,
		notify:  notify,
		done:    make(chan struct{}),
		pending: map[int64]*call{},
	}
}

// run reads what the upstream sends until the link ends.
func (s *Session) run() {
	for {
		line, err := s.link.Receive()
		if err != nil {
			s.end(err)
			return
		}
		m, err := jsonrpc.Parse(line)
		if err != nil {
			s.log.Warn().Str("text", plain.Cut(plain.Line(string(line[:min(len(line), 200)])), 200)).Err(err).Msg("skipped a message that is not JSON-RPC")
			continue
		}
		s.receive(m)
	}
}

// end fails everything that waits, and whatever comes after, with the reason.
func (s *Session) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
		close(s.done)
	}
}

// receive hands a message to the call it belongs to.
func (s *Session) receive(m jsonrpc.Message) {
	switch {
	case m.IsResponse():
		id, err := strconv.ParseInt(string(m.ID), 10, 64)
		s.mu.Lock()
		c := s.pending[id]
		if err != nil || c == nil || c.reply != nil {
			s.mu.Unlock()
			s.log.Debug().Bytes("id", m.ID).Msg("dropped an answer that nothing waits for")
			return
		}
		c.reply = &m
		s.mu.Unlock()
		c.wake()
	case m.IsRequest():
		s.answer(m)
	case m.Method == "notifications/progress":
		s.progress(m)
	default:
		s.notify(m.Method, m.Params)
	}
}

// progress hands a progress notification to its call. The token mcpx gave the
// upstream is the id of the call.
func (s *Session) progress(m jsonrpc.Message) {
	token, err := strconv.ParseInt(string(rawjson.Get(m.Params, "progressToken")), 10, 64)
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.pending[token]
	if err != nil || c == nil || c.reply != nil || len(c.notes) >= maxNotes {
		return
	}
	c.notes = append(c.notes, note{m.Method, m.Params})
	c.wake()
}

// answer answers a request of the upstream.
func (s *Session) answer(m jsonrpc.Message) {
	answer := jsonrpc.AppendResult(nil, m.ID, []byte("{}"))
	if m.Method != "ping" {
		answer = jsonrpc.AppendError(nil, m.ID, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method '%s' not found", m.Method))
	}
	if err := s.link.Send(answer); err != nil {
		s.log.Debug().Err(err).Str("method", m.Method).Msg("could not answer the upstream")
	}
}

func (c *call) wake() {
	select {
	case c.signal <- struct{}{}:
	default:
	}
}

// Call sends a request and waits for its result. The error is the upstream's
// own as a *jsonrpc.Error, a *Lost, a *Timeout, or the cause of ctx; in the last
// two cases the upstream is told that the call is cancelled.
func (s *Session) Call(ctx context.Context, r Request) ([]byte, error) {
	c := &call{signal: make(chan struct{}, 1)}
	id, err := s.register(c)
	if err != nil {
		return nil, err
	}
	defer s.forget(id)
	if err := s.link.Send(appendCall(nil, id, r)); err != nil {
		return nil, err
	}
	m, err := s.wait(ctx, c, r)
	if err != nil {
		s.abandon(id, r.Method, err)
		return nil, err
	}
	if m.Error != nil {
		return nil, jsonrpc.ParseError(m.Error)
	}
	return m.Result, nil
}

func (s *Session) register(c *call) (id int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, errOver
	}
	s.lastID++
	s.pending[s.lastID] = c
	return s.lastID, nil
}

func (s *Session) forget(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pending, id)
}

// wait returns the call's answer once its notifications are delivered.
func (s *Session) wait(ctx context.Context, c *call, r Request) (*jsonrpc.Message, error) {
	limits := newLimits(s.server, r)
	defer limits.stop()
	done := s.done
	for {
		select {
		case <-c.signal:
		case <-done:
			done = nil // an answer that came before the end still counts
			c.wake()
			continue
		case <-limits.C():
			return nil, limits.exceeded()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		s.mu.Lock()
		notes, reply, err := c.notes, c.reply, s.err
		c.notes = nil
		s.mu.Unlock()
		for _, n := range notes {
			limits.progress()
			if r.Notify != nil {
				r.Notify(n.method, n.params)
			}
		}
		if reply != nil {
			return reply, nil
		}
		if err != nil {
			return nil, s.lost(err)
		}
	}
}

// abandon tells the upstream that nobody waits for the call any more. MCP has it
// that initialize is never cancelled.
func (s *Session) abandon(id int64, method string, reason error) {
	if s.over() || method == "initialize" {
		return
	}
	params := strconv.AppendInt([]byte(`{"requestId":`), id, 10)
	params = rawjson.AppendString(append(params, `,"reason":`...), plain.Line(reason.Error()))
	if err := s.Notify("notifications/cancelled", append(params, '}')); err != nil {
		s.log.Debug().Err(err).Msg("could not tell the upstream of a cancelled call")
	}
}

// Notify sends a notification.
func (s *Session) Notify(method string, params []byte) error {
	return s.link.Send(jsonrpc.AppendNotification(nil, method, params))
}

// Close ends the session and what it runs on.
func (s *Session) Close() { s.link.Close() }

func (s *Session) over() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

func (s *Session) lost(err error) error {
	e := &Lost{Server: s.server, Reason: err.Error()}
	var f *failure
	if errors.As(err, &f) {
		e.Reason, e.Stderr = f.reason, f.stderr
	}
	return e
}

// appendCall writes a request. Its progress token is its id.
func appendCall(b []byte, id int64, r Request) []byte {
	if r.Meta == nil {
		return jsonrpc.AppendRequest(b, id, r.Method, r.Params)
	}
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = strconv.AppendInt(b, id, 10)
	b = append(b, `,"method":`...)
	b = rawjson.AppendString(b, r.Method)
	b = append(b, `,"params":{"_meta":{"progressToken":`...)
	b = strconv.AppendInt(b, id, 10)
	for key, value := range rawjson.Members(r.Meta) {
		if key != "progressToken" {
			b = append(rawjson.AppendString(append(b, ','), key), ':')
			b = append(b, value...)
		}
	}
	b = append(b, '}')
	if len(r.Params) > len("{}") {
		b = append(b, ',')
		b = append(b, r.Params[1:len(r.Params)-1]...)
	}
	return append(b, "}}"...)
}

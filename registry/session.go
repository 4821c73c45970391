package registry

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/jsonrpc"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
)

// Session is a live connection to an upstream. It carries any number of calls
// at a time: each has an id of mcpx's own, and its parameters and its result
// pass as bytes.
type Session struct {
	server string
	redact func(text string) string // hides the upstream's secrets
	link   link
	log    zerolog.Logger
	broken sync.Once // warns of the first message that is none
	peer   peer
	modern *modern         // of an upstream that speaks 2026-07-28; nil for all others
	ctx    context.Context // ends with the session
	cancel context.CancelFunc

	mu      sync.Mutex
	lastID  int64
	pending map[int64]*call
	asked   map[string]context.CancelFunc // what the upstream asks, by its id
	err     error                         // why it is over

	elicited elicited
}

// peer takes what the upstream says of its own accord. Its methods are called by
// the goroutine that reads, and never wait.
type peer interface {
	// notified takes a notification. from is the client it must be for, nil if
	// that is not certain.
	notified(method string, params []byte, from Client)
	// only is the one client there is, nil if there are none or several.
	only() Client
	// subscribed are the resources that clients want to hear of.
	subscribed() []string
	// level is the log level that clients want, empty if none has said.
	level() string
}

// link carries whole JSON-RPC messages to and from one upstream.
type link interface {
	// Send queues a message; it never waits for the upstream to read. It fails
	// with errOver when the connection has ended.
	Send(message []byte) error
	// Receive waits for the next message. Its error says why there are no more,
	// but for a *brokenCall, which is the end of one call alone.
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

	// Client is whose call it is: the upstream's own requests during the call go
	// there. Nil: the call is mcpx's own.
	Client Client
	// Progress is called with the params of each progress notification of this
	// call, in order and before Call returns. It must not wait. It may be nil.
	Progress func(params []byte)
}

// call is a request that waits for its answer.
type call struct {
	id      int64
	request Request
	signal  chan struct{} // capacity 1: there is something new

	// Guarded by the session's mutex.
	reply *jsonrpc.Message
	end   *brokenCall // there will be no reply
	moved bool        // there was progress
	held  int         // requests of the upstream that its client has not answered
}

// errOver is returned for a call that was not sent, since the session is over.
var errOver = errors.New("the session is over")

func newSession(c *config.Upstream, l link, log zerolog.Logger, p peer) *Session {
	ctx, cancel := context.WithCancel(context.Background())
	return &Session{
		ctx:     ctx,
		cancel:  cancel,
		server:  c.Name,
		redact:  c.Redact,
		link:    l,
		log:     log,
		peer:    p,
		pending: map[int64]*call{},
		asked:   map[string]context.CancelFunc{},
	}
}

// run reads what the upstream sends until the link ends.
func (s *Session) run() {
	for {
		line, err := s.link.Receive()
		if b := (*brokenCall)(nil); errors.As(err, &b) {
			s.broke(b)
			continue
		}
		if err != nil {
			s.end(err)
			return
		}
		m, err := jsonrpc.Parse(line)
		if err != nil {
			s.malformed(m.ID, line, err)
			continue
		}
		s.receive(m)
	}
}

// brokenCall is the end of a call whose connection broke, where the session has
// others.
type brokenCall struct {
	id       []byte
	reason   string
	isUnsent bool // the upstream cannot have got it
}

func (e *brokenCall) Error() string { return e.reason }

// broke ends a call whose connection broke.
func (s *Session) broke(b *brokenCall) {
	if c := s.waiting(b.id); c != nil {
		s.mu.Lock()
		c.end = b
		s.mu.Unlock()
		c.wake()
	}
}

// malformed takes a message that is no JSON-RPC. If it was the answer to a call,
// the call fails with that, rather than wait for another.
func (s *Session) malformed(id, line []byte, err error) {
	s.broken.Do(func() {
		s.log.Warn().Err(err).Msg("the server sends messages that are not JSON-RPC; they are skipped")
	})
	s.log.Debug().Str("text", excerpt(s.redact, line)).Err(err).Msg("skipped a message")
	if c := s.waiting(id); c != nil {
		s.complete(c, &jsonrpc.Message{Error: jsonrpc.AppendErrorObject(nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "it answered with a message that is not JSON-RPC: %v", err))})
	}
}

// excerpt is the start of what an upstream wrote, for the log.
func excerpt(redact func(string) string, line []byte) string {
	const most = 200
	return plain.Cut(plain.Line(redact(string(line[:min(len(line), 10*most)]))), most)
}

// end fails everything that waits, and whatever comes after, with the reason.
func (s *Session) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
		s.cancel()
		for _, c := range s.pending {
			c.wake()
		}
	}
}

// receive hands a message to the call it belongs to.
func (s *Session) receive(m jsonrpc.Message) {
	switch {
	case m.IsResponse():
		c := s.waiting(m.ID)
		if c == nil {
			s.log.Debug().Bytes("id", m.ID).Msg("dropped an answer that nothing waits for")
			return
		}
		s.complete(c, &m)
	case m.IsRequest():
		s.asks(m)
	case m.Method == "notifications/progress":
		s.progress(m.Params)
	case m.Method == "notifications/cancelled":
		s.withdrawn(m.Params)
	default:
		from, _ := s.addressee()
		if m.Method == elicitationComplete {
			if to := s.sentTo(m.Params); to != nil {
				from = to
			}
		}
		s.peer.notified(m.Method, m.Params, from)
	}
}

// waiting is the call that an answer's id belongs to, nil if none waits for it.
// Servers exist that write the number as a string or a float.
func (s *Session) waiting(id []byte) *call {
	number, err := strconv.ParseFloat(strings.Trim(string(id), `"`), 64)
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.pending[int64(number)]
	if err != nil || c == nil || c.reply != nil || float64(c.id) != number {
		return nil
	}
	return c
}

// complete hands a call its answer.
func (s *Session) complete(c *call, m *jsonrpc.Message) {
	s.mu.Lock()
	c.reply = m
	s.mu.Unlock()
	c.wake()
}

// progress hands a progress notification to its call. The token mcpx gave the
// upstream is the id of the call.
func (s *Session) progress(params []byte) {
	token, err := strconv.ParseInt(string(rawjson.Get(params, "progressToken")), 10, 64)
	s.mu.Lock()
	c := s.pending[token]
	if err != nil || c == nil || c.reply != nil {
		s.mu.Unlock()
		return
	}
	c.moved = true
	s.mu.Unlock()
	if c.request.Progress != nil {
		c.request.Progress(params)
	}
	c.wake()
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
	if s.modern != nil {
		return s.inRounds(ctx, r)
	}
	return s.call(ctx, r)
}

func (s *Session) call(ctx context.Context, r Request) ([]byte, error) {
	c := &call{request: r, signal: make(chan struct{}, 1)}
	if err := s.register(c); err != nil {
		return nil, err
	}
	defer s.forget(c)
	message := make([]byte, 0, 128+len(r.Method)+len(r.Meta)+len(r.Params)) // 128: the envelope
	if err := s.link.Send(appendCall(message, c.id, r, s.modern != nil)); err != nil {
		return nil, err
	}
	m, err := s.wait(ctx, c)
	if err != nil {
		s.abandon(c, err)
		return nil, err
	}
	switch {
	case m.Error != nil:
		err := s.own(m.Error)
		s.elicitsBy(err, r.Client)
		return nil, err
	case rawjson.Kind(m.Result) != '{': // clients never settle a call whose result is no object
		return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "it answered %s with a result that is no object", r.Method)
	}
	return m.Result, nil
}

// own is the upstream's own error. Servers repeat the key that they refuse, and an
// error is shown and logged where a result is not.
func (s *Session) own(raw []byte) *jsonrpc.Error {
	e := jsonrpc.ParseError(raw)
	e.Message = s.redact(e.Message)
	if data := []byte(s.redact(string(e.Data))); rawjson.Check(data) == nil {
		e.Data = data
	} else {
		e.Data = nil
	}
	return e
}

func (s *Session) register(c *call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return errOver
	}
	s.lastID++
	c.id = s.lastID
	s.pending[c.id] = c
	return nil
}

func (s *Session) forget(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pending, c.id)
}

// wait returns the call's answer. Its notifications were delivered before.
func (s *Session) wait(ctx context.Context, c *call) (*jsonrpc.Message, error) {
	limits := newLimits(s.server, c.request)
	defer limits.stop()
	for {
		select {
		case <-c.signal:
		case <-limits.C():
			switch {
			case s.held(c) && !limits.over():
				limits.progress() // the client is thinking, not the upstream
				continue
			case len(c.signal) == 0:
				return nil, limits.timeout()
			}
			// Something came in the same moment. If it is not the answer, the limits
			// still hold.
			limits.restart()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		s.mu.Lock()
		reply, end, moved, err := c.reply, c.end, c.moved, s.err
		c.moved = false
		s.mu.Unlock()
		switch {
		case reply != nil:
			return reply, nil
		case end != nil && end.isUnsent:
			return nil, errOver
		case end != nil:
			return nil, s.lost(end)
		case err != nil:
			return nil, s.lost(err)
		case moved:
			limits.progress()
		}
	}
}

// abandon tells the upstream that nobody waits for the call any more. MCP has it
// that initialize is never cancelled.
func (s *Session) abandon(c *call, reason error) {
	if s.ctx.Err() != nil || c.end != nil && c.end.isUnsent || c.request.Method == "initialize" {
		return
	}
	params := strconv.AppendInt([]byte(`{"requestId":`), c.id, 10)
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

func (s *Session) lost(err error) error {
	e := &Lost{Server: s.server, Reason: err.Error()}
	var f *failure
	if errors.As(err, &f) {
		e.Reason, e.Stderr = f.reason, f.stderr
	}
	return e
}

// appendCall writes a request. Its progress token is its id.
func appendCall(b []byte, id int64, r Request, modern bool) []byte {
	if r.Meta == nil {
		return jsonrpc.AppendRequest(b, strconv.AppendInt(nil, id, 10), r.Method, r.Params)
	}
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = strconv.AppendInt(b, id, 10)
	b = append(b, `,"method":`...)
	b = rawjson.AppendString(b, r.Method)
	b = append(b, `,"params":{"_meta":{"progressToken":`...)
	b = strconv.AppendInt(b, id, 10)
	for key, value := range rawjson.Members(r.Meta) {
		// What a client of the new way says of itself is not for a session of the old.
		if key != "progressToken" && (modern || !strings.HasPrefix(key, modernPrefix)) {
			b = rawjson.AppendMember(b, key, value)
		}
	}
	b = append(b, '}')
	if len(r.Params) > len("{}") {
		b = append(b, ',')
		b = append(b, r.Params[1:len(r.Params)-1]...)
	}
	return append(b, "}}"...)
}

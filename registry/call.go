package registry

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"mcpx/internal/jsonrpc"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
)

// Request is one call to an upstream.
type Request struct {
	Method string
	Params []byte // an object without _meta, or nil
	// Meta is the _meta object to send, with a progress token of mcpx's own. Nil:
	// none is sent, and progress is not asked for.
	Meta []byte

	Timeout    time.Duration // without any progress; 0: none
	MaxTimeout time.Duration // in all; 0: none
	Begun      time.Time     // when the client's call came in: a wait for a start counts from there; zero: now

	// Client is whose call it is: the upstream's own requests during the call go
	// there. Nil: the call is mcpx's own.
	Client Client
	// Progress is called with the params of each progress notification of this
	// call, in order and before Call returns. It must not wait. It may be nil.
	Progress func(params []byte)

	acknowledged func() // the upstream says that it listens; may be nil
}

// isCall reports whether the request is a call of a client, during which the
// upstream may ask the client something. Subscriptions are not.
func (r *Request) isCall() bool {
	return r.Client != nil && r.Method != "resources/subscribe" && r.Method != "resources/unsubscribe"
}

// Done is told the end of a call, once, and must not wait. The line is what the
// result came in, nil if there is none: its memory is Done's own.
type Done func(result, line []byte, err error)

// call is a request that waits for its answer.
type call struct {
	id      int64
	request Request
	done    Done
	begun   time.Time

	// Guarded by the session's mutex.
	limits *time.Timer // nil if it has none, or is not sent yet
	moved  time.Time   // the last sign of life
	held   int         // requests of the upstream that its client has not answered
	sent   bool
	over   bool
}

// errOver is returned for a call that was not sent, since the session is over.
var errOver = errors.New("the session is over")

// Call sends a request and waits for its result. The error is the upstream's
// own as a *jsonrpc.Error, a *Lost, an *Unanswered, a *Timeout, or the cause of ctx; in
// the last two cases the call is cancelled at the upstream.
func (s *Session) Call(ctx context.Context, r Request) ([]byte, error) {
	if s.modern != nil {
		return s.inRounds(ctx, r)
	}
	return s.call(ctx, r)
}

func (s *Session) call(ctx context.Context, r Request) ([]byte, error) {
	type end struct {
		result []byte
		err    error
	}
	ended := make(chan end, 1)
	c, err := s.begin(r, func(result, _ []byte, err error) { ended <- end{result, err} })
	if err != nil {
		return nil, err
	}
	select {
	case e := <-ended:
		return e.result, e.err
	case <-ctx.Done():
	}
	s.abandon(c, context.Cause(ctx))
	e := <-ended // which may be the answer, if it came in the same moment
	return e.result, e.err
}

// begin sends a request. Unless it fails, done is told what Call would return: by
// the goroutine that reads, as a rule, before or after begin returns.
func (s *Session) begin(r Request, done Done) (*call, error) {
	now := time.Now()
	c := &call{request: r, done: done, begun: now, moved: now}
	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		return nil, errOver
	}
	s.lastID++
	c.id = s.lastID
	s.pending[c.id] = c
	if r.isCall() {
		s.callers.add(s.peer.caller(r.Client))
	}
	s.mu.Unlock()
	message := make([]byte, 0, 128+len(r.Method)+len(r.Meta)+len(r.Params)) // 128: the envelope
	err := s.link.Send(appendCall(message, c.id, r, s.modern != nil))
	if err != nil && s.take(c) {
		return nil, err
	}
	s.mu.Lock()
	c.sent = true
	isOver := s.err != nil
	if left, limited := c.left(time.Now()); limited && !c.over { // not before: a cancellation must not overtake its call
		c.limits = time.AfterFunc(left, func() { s.expire(c) })
	}
	s.mu.Unlock()
	if isOver { // the end came while it was sent, and has left it alone
		s.lose(c)
	}
	return c, nil
}

// take makes a call one that nobody else ends.
func (s *Session) take(c *call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.takeLocked(c)
}

// drop is take for a call that the upstream has not answered and may still work
// on: its client is remembered.
func (s *Session) drop(c *call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.takeLocked(c) {
		return false
	}
	if c.request.isCall() {
		s.callers.abandon(c.id, s.peer.caller(c.request.Client))
	}
	return true
}

func (s *Session) takeLocked(c *call) bool {
	if c.over {
		return false
	}
	c.over = true
	delete(s.pending, c.id)
	if c.limits != nil {
		c.limits.Stop()
	}
	return true
}

// finish ends a call.
func (s *Session) finish(c *call, result, line []byte, err error) {
	if s.take(c) {
		s.complete(c, result, line, err)
	}
}

// complete reports the end of a call that was taken.
func (s *Session) complete(c *call, result, line []byte, err error) {
	defer s.guard()
	c.done(result, line, err)
}

// abandon ends a call that nobody waits for any more, and tells the upstream.
func (s *Session) abandon(c *call, reason error) {
	if s.drop(c) {
		s.giveUp(c, reason)
		s.withdraw(c, reason)
		s.complete(c, nil, nil, reason)
	}
}

// lose ends a call whose session is over. One that is just being sent is left to
// begin, which knows whether it was.
func (s *Session) lose(c *call) {
	s.mu.Lock()
	sent, err := c.sent, s.err
	s.mu.Unlock()
	if sent {
		s.finish(c, nil, nil, s.lost(err))
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

// resultOf is what an answer says.
func (s *Session) resultOf(c *call, m jsonrpc.Message) ([]byte, error) {
	switch {
	case m.Error != nil:
		err := s.own(m.Error)
		s.elicitsBy(err, c.request.Client)
		return nil, err
	case rawjson.Kind(m.Result) != '{': // clients never settle a call whose result is no object
		return nil, &Unanswered{Server: s.server, Reason: "it answered " + c.request.Method + " with a result that is not an object"}
	}
	return m.Result, nil
}

// own is the upstream's own error. Servers repeat the key that they refuse, and an
// error is shown and logged where a result is not.
func (s *Session) own(raw []byte) *jsonrpc.Error {
	e := jsonrpc.ParseError(raw)
	e.Message = s.redact(e.Message)
	e.Data = redactJSON(s.redact, e.Data)
	return e
}

// waiting returns the call that an answer's ID belongs to, or nil if none waits
// for it.
func (s *Session) waiting(id []byte) *call {
	number, ok := callID(id)
	if !ok {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pending[number]
}

// late takes an answer that nothing waits for. It may be to an abandoned call,
// which the upstream is then done with.
func (s *Session) late(id []byte) {
	s.log.Debug().Bytes("id", id).Msg("dropped an answer that nothing waits for")
	if number, ok := callID(id); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.callers.answered(number)
	}
}

// callID reads the ID of a call. Some servers write the number as a string or a
// float.
func callID(id []byte) (int64, bool) {
	number, err := strconv.ParseFloat(strings.Trim(string(id), `"`), 64)
	return int64(number), err == nil && float64(int64(number)) == number
}

// progress hands a progress notification to its call. The token mcpx gave the
// upstream is the id of the call.
func (s *Session) progress(params []byte) {
	token, err := strconv.ParseInt(string(rawjson.Get(params, "progressToken")), 10, 64)
	s.mu.Lock()
	c := s.pending[token]
	if err != nil || c == nil {
		s.mu.Unlock()
		return
	}
	c.moved = time.Now() // the limits see it when they are reached
	s.mu.Unlock()
	if c.request.Progress != nil {
		c.request.Progress(params)
	}
}

// left is the time until the nearer of the call's limits; limited is false if it
// has none.
func (c *call) left(now time.Time) (left time.Duration, limited bool) {
	left = 1 << 62
	if t := c.request.Timeout; t > 0 {
		left = c.moved.Add(t).Sub(now)
	}
	if t := c.request.MaxTimeout; t > 0 {
		left = min(left, c.begun.Add(t).Sub(now))
	}
	return left, c.request.Timeout > 0 || c.request.MaxTimeout > 0
}

// expire looks whether a limit of the call was reached.
func (s *Session) expire(c *call) {
	now := time.Now()
	s.mu.Lock()
	if c.held > 0 {
		c.moved = now // the client is thinking, not the upstream
	}
	left, _ := c.left(now)
	if c.over || left > 0 {
		if !c.over {
			c.limits.Reset(left)
		}
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	e := &Timeout{Server: s.server, Key: "timeout", Limit: c.request.Timeout}
	if most := c.request.MaxTimeout; most > 0 && now.Sub(c.begun) >= most {
		e.Key, e.Limit = "max_timeout", most
	}
	s.abandon(c, e)
}

// withdraw tells the upstream that nobody waits for a call any more. MCP has it
// that initialize is never cancelled.
func (s *Session) withdraw(c *call, reason error) {
	if s.ctx.Err() != nil || c.request.Method == "initialize" {
		return
	}
	params := strconv.AppendInt([]byte(`{"requestId":`), c.id, 10)
	params = rawjson.AppendString(append(params, `,"reason":`...), plain.Line(reason.Error()))
	if err := s.Notify("notifications/cancelled", append(params, '}')); err != nil {
		s.log.Debug().Err(err).Msg("could not tell the upstream of a cancelled call")
	}
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

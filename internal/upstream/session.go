// Package upstream speaks MCP with one upstream: it opens a session, makes calls and listens,
// and passes the upstream's own requests to the clients that they are for.
//
// A session knows nothing about other upstreams, and is not opened again when it has ended:
// the registry does that.
package upstream

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/link"
	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/internal/tasks"
)

// Session is an upstream session: shared by all clients, or owned by one. It carries any
// number of calls at the same time. Their params and results stay bytes.
type Session struct {
	Options
	conn   *rpc.Conn
	spoken atomic.Pointer[modern] // of an upstream that speaks 2026-07-28; nil for all others
	tasks  tasks.Group            // goroutines of the session; Close waits for them
	rounds atomic.Int64           // calls that may be between two rounds, when nothing is in flight
	warned sync.Once              // for the first message that is not JSON-RPC

	preparing chan struct{} // holds one while the upstream is prepared for the call of another client

	mu       sync.Mutex
	kept     keptRoots
	callers  callers
	elicited elicited
}

// Options are the parts of a session.
type Options struct {
	Host      Host
	Owner     Client // nil for the shared session
	Config    *config.Upstream
	Link      link.Link
	Log       zerolog.Logger
	Version   string        // of mcpx, which the upstream learns
	PingEvery time.Duration // 0: pingEvery
}

// New returns a session that uses a link. It handles no messages before Run.
func New(o Options) *Session {
	s := &Session{Options: o, preparing: make(chan struct{}, 1)}
	s.conn = rpc.NewConn(rpc.ConnOptions{Handler: s, Send: s.sendMessage, Log: o.Log})
	return s
}

// sendMessage sends a message on the link.
func (s *Session) sendMessage(message []byte) error {
	s.Host.Record(Sent, message)
	return s.Link.Send(message)
}

// Request is a request to an upstream.
type Request struct {
	Method string
	Params []byte // an object without _meta, or nil
	// Meta is the _meta object to send, to which a progress token is added. Nil: no
	// _meta is sent, and the upstream sends no progress.
	Meta     []byte
	Client   Client              // the caller, which gets the upstream's requests during the call; nil: mcpx itself
	Progress func(params []byte) // gets each progress notification, in order and before the response; must not wait; may be nil
	Begun    time.Time           // when the client's call arrived; the wait for a start counts from it; zero: now
}

// isCall reports whether the request is a call of a client, during which the
// upstream may send requests to the client. Subscriptions are not.
func (r *Request) isCall() bool {
	return r.Client != nil && r.Method != "resources/subscribe" && r.Method != "resources/unsubscribe"
}

// Limits are the time limits of a client's request.
type Limits struct{ Idle, Total time.Duration }

// Send sends a request; done gets its end, unless Send fails. The end has one of
// these errors: the upstream's own as a *rpc.Error, a *Lost, an *Unanswered, a
// *Timeout, or the cause of ctx. In the last two cases the call is cancelled at the
// upstream.
func (s *Session) Send(ctx context.Context, r Request, l Limits, done rpc.Done) error {
	if r.isCall() {
		s.mu.Lock()
		s.callers.add(s.callerID(r.Client))
		s.mu.Unlock()
	}
	return s.conn.Go(ctx, s.wireRequest(r, l), done)
}

// wireRequest returns the request as it is sent.
func (s *Session) wireRequest(r Request, l Limits) rpc.Request {
	meta := r.Meta
	if s.modern() == nil {
		meta = withoutModernKeys(meta)
	}
	request := rpc.Request{
		Method: r.Method, Params: r.Params, Meta: meta, Progress: r.Progress,
		Timeout: l.Idle, MaxTimeout: l.Total, Tag: r.Client,
	}
	if r.isCall() {
		request.Remember = s.callerID(r.Client)
	}
	return request
}

// Call sends a request and waits for its end. rpc.ErrClosed means that the request was
// not sent.
func (s *Session) Call(ctx context.Context, r Request, l Limits) ([]byte, error) {
	if s.modern() != nil {
		return s.callInRounds(ctx, r, l)
	}
	if r.isCall() && s.MustPrepare(r.Client) {
		if err := s.prepare(ctx, r.Client); err != nil {
			return nil, err
		}
		return s.Call(ctx, r, l)
	}
	return s.callOnce(ctx, r, l)
}

func (s *Session) callOnce(ctx context.Context, r Request, l Limits) ([]byte, error) {
	return rpc.Wait(func(done rpc.Done) {
		if err := s.Send(ctx, r, l, done); err != nil {
			done(nil, nil, err)
		}
	})
}

// MustPrepare reports whether the upstream must learn about the client before its call.
func (s *Session) MustPrepare(c Client) bool {
	return c != nil && s.modern() == nil && (s.mayUpgrade(c) || s.needsRoots(c))
}

// prepare does what MustPrepare is about, for one client at a time. rpc.ErrClosed means
// that the session has ended.
func (s *Session) prepare(ctx context.Context, c Client) error {
	select {
	case s.preparing <- struct{}{}:
		defer func() { <-s.preparing }()
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.Done():
		return rpc.ErrClosed
	}
	switch {
	case s.modern() != nil: // another call has done it
		return nil
	case s.mayUpgrade(c):
		return s.upgrade(ctx)
	}
	return s.changeRoots(ctx, c)
}

// Request sends a request of mcpx itself and waits for its end.
func (s *Session) Request(ctx context.Context, method string, params []byte) ([]byte, error) {
	return s.Call(ctx, Request{Method: method, Params: params}, Limits{})
}

// clientOf returns the client of a call, nil for mcpx itself.
func clientOf(c *rpc.Call) Client {
	client, _ := c.Tag.(Client)
	return client
}

// Run handles what the upstream sends until the link ends.
func (s *Session) Run() { s.conn.Close(s.Link.Run(s.receive)) }

// receive handles a message of the link, or an error that does not end it. It may be
// called concurrently.
func (s *Session) receive(d link.Delivery) {
	if d.Err == nil {
		s.Host.Record(Received, d.Message)
		s.accept(d.Message, d.CallID)
		return
	}
	var ended *link.CallEnd // errors.As needs it on the heap; messages do not
	switch {
	case errors.As(d.Err, &ended):
		s.endCall(ended)
	case errors.Is(d.Err, link.ErrGap):
		for _, list := range Listable {
			s.Host.Notified(ListChanged(list), nil, nil)
		}
	}
}

// endCall ends a call that the link could not finish.
func (s *Session) endCall(e *link.CallEnd) {
	switch e.Outcome {
	case link.NotSent:
		s.conn.Refuse(e.ID, rpc.ErrClosed)
	case link.Refused:
		if e.Denied != nil {
			s.denied(e.ID, e.Denied)
			return
		}
		s.conn.Refuse(e.ID, &Unanswered{Server: s.Config.Name, Reason: e.Reason})
	case link.Unknown:
		s.conn.Abandon(e.ID, &Unanswered{Server: s.Config.Name, Reason: e.Reason, Unknown: true})
	case link.CutOff:
		s.conn.Abandon(e.ID, &Lost{Server: s.Config.Name, Reason: e.Reason})
	}
}

// denied ends a call that was refused. Without a sign-in the session is of no use; if only
// some access is missing, it stays.
func (s *Session) denied(id []byte, f *link.Failure) {
	err := s.Host.Denied(f)
	if err == nil {
		s.conn.Refuse(id, &Unanswered{Server: s.Config.Name, Reason: f.Reason})
		return
	}
	s.conn.Refuse(id, err)
	if f.Cause == link.CauseSignIn {
		s.conn.Close(f)
	}
}

// accept handles one message. callID is the ID of the call whose stream carried it, nil
// if the link does not know it. A panic affects only this message.
func (s *Session) accept(line, callID []byte) {
	defer s.conn.Recover()
	m, err := rpc.Parse(line)
	switch {
	case err != nil:
		s.malformed(m.ID, line, err)
	case s.conn.Receive(m, line):
	case m.IsRequest():
		s.handleRequest(m, callID)
	case m.Method == mcp.MethodNotificationSubscriptionsAcknowledged:
		s.acknowledged(m.Params, callID)
	default:
		s.Host.Notified(m.Method, m.Params, s.recipients(m, callID))
	}
}

// malformed handles a message that is not JSON-RPC. If it has the ID of a call, the call
// fails.
func (s *Session) malformed(id, line []byte, err error) {
	s.warned.Do(func() {
		s.Log.Warn().Err(err).Msg("the server sends messages that are not JSON-RPC; they are skipped")
	})
	s.Log.Debug().Func(func(e *zerolog.Event) { e.Str("text", link.Excerpt(s.Host.Redact, line)) }).Err(err).Msg("skipped a message")
	s.conn.Refuse(id, &Unanswered{Server: s.Config.Name, Reason: "it answered with a message that is not JSON-RPC: " + rpc.Text(err)})
}

// Result implements rpc.Handler.
func (s *Session) Result(c *rpc.Call, m rpc.Message) ([]byte, error) {
	if m.Error != nil {
		err := s.ownError(m.Error)
		s.rememberURLs(err, clientOf(c))
		return nil, err
	}
	if rawjson.Kind(m.Result) != '{' { // no client could use it
		return nil, &Unanswered{Server: s.Config.Name, Reason: "it answered " + c.Method + " with a result that is not an object"}
	}
	return m.Result, nil
}

// ownError returns the upstream's own error, redacted: servers repeat the key that
// they refuse, and errors are shown and logged.
func (s *Session) ownError(raw []byte) *rpc.Error {
	e := rpc.ParseError(raw)
	e.Message = s.Host.Redact(e.Message)
	e.Data = redactJSON(s.Host.Redact, e.Data)
	return e
}

// TimedOut implements rpc.Handler.
func (s *Session) TimedOut(c *rpc.Call, l rpc.Limit) error {
	if l == rpc.TotalLimit {
		return &Timeout{Server: s.Config.Name, Key: "max_timeout", Limit: c.MaxTimeout}
	}
	return &Timeout{Server: s.Config.Name, Key: "timeout", Limit: c.Timeout}
}

// Lost implements rpc.Handler.
func (s *Session) Lost(reason error) error {
	e := &Lost{Server: s.Config.Name, Reason: reason.Error()}
	var f *link.Failure
	if errors.As(reason, &f) {
		e.Reason, e.Stderr = f.Reason, f.Stderr
	}
	return e
}

// Cancelled implements rpc.Handler.
func (s *Session) Cancelled(reason string) error {
	return errors.New(cmp.Or(s.Host.Redact(reason), "the server has cancelled its request"))
}

// redactJSON returns any JSON value redacted, keys included.
func redactJSON(redact func(text string) string, value []byte) []byte {
	if text := string(value); redact(text) == text {
		return value
	}
	return rawjson.Rewrite(value, redact, func(_ []string, text string) string { return redact(text) })
}

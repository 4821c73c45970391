package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	supervisor *supervisor
	owner      Client // nil for the shared session
	config     *config.Upstream
	link       link.Link
	conn       *rpc.Conn
	log        zerolog.Logger
	spoken     atomic.Pointer[modern] // of an upstream that speaks 2026-07-28; nil for all others
	tasks      tasks.Group            // goroutines of the session; Close waits for them
	rounds     atomic.Int64           // calls that may be between two rounds, when nothing is in flight
	warned     sync.Once              // for the first message that is not JSON-RPC

	level   atomic.Pointer[string] // the log level that was set last
	setting chan struct{}          // holds one while a log level is set

	preparing chan struct{} // holds one while the upstream is prepared for the call of another client

	mu       sync.Mutex
	kept     keptRoots
	callers  callers
	elicited elicited
}

func newSession(s *supervisor, owner Client, l link.Link) *Session {
	session := &Session{supervisor: s, owner: owner, config: s.config(), link: l, log: s.log, setting: make(chan struct{}, 1), preparing: make(chan struct{}, 1)}
	session.conn = rpc.NewConn(rpc.ConnOptions{Handler: session, Send: session.sendMessage, Log: s.log})
	return session
}

// sendMessage sends a message on the link.
func (s *Session) sendMessage(message []byte) error {
	s.record(sent, message)
	return s.link.Send(message)
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

// limits are the time limits of a client's request.
type limits struct{ idle, total time.Duration }

// send sends a request; done gets its end, unless send fails. The end has one of
// these errors: the upstream's own as a *rpc.Error, a *Lost, an *Unanswered, a
// *Timeout, or the cause of ctx. In the last two cases the call is cancelled at the
// upstream.
func (s *Session) send(ctx context.Context, r Request, l limits, done rpc.Done) error {
	if r.isCall() {
		s.mu.Lock()
		s.callers.add(s.callerID(r.Client))
		s.mu.Unlock()
	}
	return s.conn.Go(ctx, s.wireRequest(r, l), done)
}

// wireRequest returns the request as it is sent.
func (s *Session) wireRequest(r Request, l limits) rpc.Request {
	meta := r.Meta
	if s.modern() == nil {
		meta = withoutModernKeys(meta)
	}
	request := rpc.Request{
		Method: r.Method, Params: r.Params, Meta: meta, Progress: r.Progress,
		Timeout: l.idle, MaxTimeout: l.total, Tag: r.Client,
	}
	if r.isCall() {
		request.Remember = s.callerID(r.Client)
	}
	return request
}

// call sends a request and waits for its end. rpc.ErrClosed means that the request was
// not sent.
func (s *Session) call(ctx context.Context, r Request, l limits) ([]byte, error) {
	if s.modern() != nil {
		return s.callInRounds(ctx, r, l)
	}
	if r.isCall() && s.mustPrepare(r.Client) {
		if err := s.prepare(ctx, r.Client); err != nil {
			return nil, err
		}
		return s.call(ctx, r, l)
	}
	return s.callOnce(ctx, r, l)
}

func (s *Session) callOnce(ctx context.Context, r Request, l limits) ([]byte, error) {
	return rpc.Wait(func(done rpc.Done) {
		if err := s.send(ctx, r, l, done); err != nil {
			done(nil, nil, err)
		}
	})
}

// mustPrepare reports whether the upstream must learn about the client before its call.
func (s *Session) mustPrepare(c Client) bool {
	return c != nil && s.modern() == nil && (s.mayUpgrade(c) || s.needsRoots(c))
}

// prepare does what mustPrepare is about, for one client at a time. rpc.ErrClosed means
// that the session has ended.
func (s *Session) prepare(ctx context.Context, c Client) error {
	select {
	case s.preparing <- struct{}{}:
		defer func() { <-s.preparing }()
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.done():
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

// request sends a request of mcpx itself and waits for its end.
func (s *Session) request(ctx context.Context, method string, params []byte) ([]byte, error) {
	return s.call(ctx, Request{Method: method, Params: params}, limits{})
}

// clientOf returns the client of a call, nil for mcpx itself.
func clientOf(c *rpc.Call) Client {
	client, _ := c.Tag.(Client)
	return client
}

// modern returns the state of a session that speaks 2026-07-28, nil for others.
func (s *Session) modern() *modern { return s.spoken.Load() }

// done is closed when the session has ended.
func (s *Session) done() <-chan struct{} { return s.conn.Context().Done() }

// activity returns the number of requests so far, and whether one is unfinished. The
// request that waits for notifications does not count as unfinished.
func (s *Session) activity() (requests int64, isBusy bool) {
	requests, isBusy = s.conn.Activity(isListening)
	return requests, isBusy || s.rounds.Load() > 0
}

// isOver reports whether the session has ended.
func (s *Session) isOver() bool { return s.conn.Context().Err() != nil }

// run handles what the upstream sends until the link ends.
func (s *Session) run() { s.conn.Close(s.link.Run(s.receive)) }

// receive handles a message of the link, or an error that does not end it. It may be
// called concurrently.
func (s *Session) receive(d link.Delivery) {
	var ended *link.CallEnd
	switch {
	case d.Err == nil:
		s.record(received, d.Message)
		s.accept(d.Message, d.CallID)
	case errors.As(d.Err, &ended):
		s.endCall(ended)
	case errors.Is(d.Err, link.ErrGap):
		for _, list := range listable {
			s.notified(listChanged(list), nil, nil)
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
		s.conn.Refuse(e.ID, &Unanswered{Server: s.config.Name, Reason: e.Reason})
	case link.Unknown:
		s.conn.Abandon(e.ID, &Unanswered{Server: s.config.Name, Reason: e.Reason, Unknown: true})
	case link.CutOff:
		s.conn.Abandon(e.ID, &Lost{Server: s.config.Name, Reason: e.Reason})
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
		s.notified(m.Method, m.Params, s.recipients(m, callID))
	}
}

// malformed handles a message that is not JSON-RPC. If it has the ID of a call, the call
// fails.
func (s *Session) malformed(id, line []byte, err error) {
	s.warned.Do(func() {
		s.log.Warn().Err(err).Msg("the server sends messages that are not JSON-RPC; they are skipped")
	})
	s.log.Debug().Func(func(e *zerolog.Event) { e.Str("text", link.Excerpt(s.redact, line)) }).Err(err).Msg("skipped a message")
	s.conn.Refuse(id, &Unanswered{Server: s.config.Name, Reason: "it answered with a message that is not JSON-RPC: " + rpc.Text(err)})
}

// Result implements rpc.Handler.
func (s *Session) Result(c *rpc.Call, m rpc.Message) ([]byte, error) {
	if m.Error != nil {
		err := s.ownError(m.Error)
		s.rememberURLs(err, clientOf(c))
		return nil, err
	}
	if rawjson.Kind(m.Result) != '{' { // no client could use it
		return nil, &Unanswered{Server: s.config.Name, Reason: "it answered " + c.Method + " with a result that is not an object"}
	}
	return m.Result, nil
}

// ownError returns the upstream's own error, redacted: servers repeat the key that
// they refuse, and errors are shown and logged.
func (s *Session) ownError(raw []byte) *rpc.Error {
	e := rpc.ParseError(raw)
	e.Message = s.redact(e.Message)
	e.Data = redactJSON(s.redact, e.Data)
	return e
}

// redact hides the secrets of the upstream's entry and the tokens of its sign-in.
func (s *Session) redact(text string) string {
	return s.supervisor.account.Load().Redact(s.config.Redact(text))
}

// TimedOut implements rpc.Handler.
func (s *Session) TimedOut(c *rpc.Call, l rpc.Limit) error {
	if l == rpc.TotalLimit {
		return &Timeout{Server: s.config.Name, Key: "max_timeout", Limit: c.MaxTimeout}
	}
	return &Timeout{Server: s.config.Name, Key: "timeout", Limit: c.Timeout}
}

// Lost implements rpc.Handler.
func (s *Session) Lost(reason error) error {
	e := &Lost{Server: s.config.Name, Reason: reason.Error()}
	var f *link.Failure
	if errors.As(reason, &f) {
		e.Reason, e.Stderr = f.Reason, f.Stderr
	}
	return e
}

// Cancelled implements rpc.Handler.
func (s *Session) Cancelled(reason string) error {
	return errors.New(cmp.Or(s.redact(reason), "the server has cancelled its request"))
}

// Close ends the session and its link, and waits for the session's goroutines.
func (s *Session) Close() {
	s.link.Close()
	s.tasks.Close()
}

// pingEvery is how often an idle network session is pinged, and how long the ping
// may take. A ping finds connections that broke silently, for example while a laptop
// slept.
const pingEvery = 30 * time.Second

// keepAlive closes a session that does not respond to a ping. It does not ping during
// calls: they have their own limits, and the upstream may be busy with them.
func (s *Session) keepAlive() {
	every := cmp.Or(s.supervisor.registry.options.PingEvery, pingEvery)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-s.done():
			return
		}
		if s.conn.Len() > 0 {
			continue
		}
		if err := s.ping(every); err != nil && s.conn.Len() == 0 { // a call that came meanwhile may have delayed the ping
			s.log.Debug().Err(err).Msg("no response to ping")
			s.conn.Close(&link.Failure{Reason: fmt.Sprintf("no response to ping within %s", every)})
			return
		}
	}
}

// ping fails if the upstream does not respond within limit. An error response counts as
// a response. A broken connection is noticed elsewhere.
func (s *Session) ping(limit time.Duration) error {
	ctx, cancel := context.WithTimeout(s.conn.Context(), limit)
	defer cancel()
	_, err := s.request(ctx, "ping", nil)
	if s.isOver() || !errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

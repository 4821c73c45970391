// Package upstream speaks MCP with one upstream: it opens an upstream session, makes calls,
// listens for notifications, and passes the upstream's own requests to clients.
//
// A session knows nothing about other upstreams. After its end, the registry opens another
// one.
package upstream

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/rpc"
	"mcpx/internal/tasks"
	"mcpx/registry/link"
)

// Session is an upstream session: shared by all clients, or owned by one. It carries any
// number of calls at the same time. Their params and results stay bytes.
type Session struct {
	Options
	conn   *rpc.Conn
	spoken atomic.Pointer[state2026] // the state for 2026-07-28; nil for earlier revisions
	tasks  tasks.Group               // goroutines of the session; Close waits for them
	rounds atomic.Int64              // calls of 2026-07-28, which may be between two rounds
	warned sync.Once                 // for the first message that is not JSON-RPC

	preparing chan struct{} // full while the upstream is prepared for a call

	mu       sync.Mutex
	kept     keptRoots
	callers  callers
	elicited elicited
}

// Options are the parts and settings of an upstream session.
type Options struct {
	Host      Host
	Owner     Client // nil for the shared session
	Config    *config.Upstream
	Link      link.Link
	Log       zerolog.Logger
	Version   string        // of mcpx, sent to the upstream
	PingEvery time.Duration // 0: pingEvery
}

// New returns an upstream session that uses a link. It handles no messages before Run.
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

// Limits are the time limits of a client's request: without progress, and in all. 0 means
// no limit.
type Limits struct{ Idle, Total time.Duration }

// Go sends a request and never waits. done gets its end, unless Go fails. The end has one of
// these errors: the upstream's own as a *rpc.Error, a *Lost, an *Unanswered, a
// *Timeout, or the cause of ctx. In the last two cases the call is canceled at the
// upstream. MustPrepare must have returned false.
func (s *Session) Go(ctx context.Context, r Request, l Limits, done rpc.Done) error {
	if s.state2026() != nil {
		return s.goInRounds(ctx, r, l, done)
	}
	r.Meta = withoutCoreKeys(r.Meta)
	return s.goOnce(ctx, r, l, done)
}

// goOnce sends one request.
func (s *Session) goOnce(ctx context.Context, r Request, l Limits, done rpc.Done) error {
	request := rpc.Request{
		Method: r.Method, Params: r.Params, Meta: r.Meta, Progress: r.Progress,
		Timeout: l.Idle, MaxTimeout: l.Total, Tag: r.Client,
		IsBackground: r.Method == "ping",
	}
	if r.isCall() {
		request.Remember = rpc.Remember{Abandoned: s.callerID(r.Client), Ended: r.Client.Owner()}
		s.mu.Lock()
		s.callers.add(request.Remember.Abandoned)
		s.mu.Unlock()
	}
	return s.conn.Go(ctx, request, done)
}

// Call sends a request and waits for its end. rpc.ErrClosed means that the request was not
// sent, or that the upstream did not run it (*Forgotten).
func (s *Session) Call(ctx context.Context, r Request, l Limits) (rpc.Result, error) {
	for r.isCall() && s.MustPrepare(r.Client) {
		if err := s.prepare(ctx, r.Client); err != nil {
			return rpc.Result{}, err
		}
	}
	return wait(func(done rpc.Done) error { return s.Go(ctx, r, l, done) })
}

// wait calls send and waits for the end of the request.
func wait(send func(done rpc.Done) error) (rpc.Result, error) {
	return rpc.Wait(func(done rpc.Done) {
		if err := send(done); err != nil {
			done(rpc.Result{}, err)
		}
	})
}

// MustPrepare reports whether a call of the client must wait for a change: of the upstream
// session's revision, or of the roots that the upstream keeps.
func (s *Session) MustPrepare(c Client) bool {
	return c != nil && s.state2026() == nil && (s.mayUpgrade(c) || s.needsRoots(c))
}

// prepare prepares the upstream for a call of the client, one client at a time.
// rpc.ErrClosed means that the session has ended.
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
	case s.state2026() != nil: // another call has done it
		return nil
	case s.mayUpgrade(c):
		return s.upgrade(ctx)
	}
	return s.changeRoots(ctx, c)
}

// Request sends a request of mcpx itself and waits for its end.
func (s *Session) Request(ctx context.Context, method string, params []byte) ([]byte, error) {
	result, err := s.Call(ctx, Request{Method: method, Params: params}, Limits{})
	return result.Take(), err
}

// Lost is returned for a call whose upstream session ended before the response came.
type Lost struct {
	Server string
	Reason string
	Stderr []string
}

func (e *Lost) Error() string {
	return fmt.Sprintf("server %q stopped during the call: %s%s", e.Server, e.Reason, unknownEffect) + link.Tail(e.Stderr)
}

// Forgotten is returned for a call that was not run, because the upstream has forgotten the
// upstream session. It is an rpc.ErrClosed: the call can be sent in another session.
type Forgotten struct {
	Server string
	Reason string
}

func (e *Forgotten) Error() string {
	return fmt.Sprintf("the call to server %q was not made: %s", e.Server, e.Reason)
}

func (e *Forgotten) Unwrap() error { return rpc.ErrClosed }

// Unanswered is returned for a call without a usable response: the transport refused the
// call, or the upstream sent something else.
type Unanswered struct {
	Server  string
	Reason  string
	Unknown bool // the upstream may be working on the call
}

func (e *Unanswered) Error() string {
	text := fmt.Sprintf("the call to server %q failed: %s", e.Server, e.Reason)
	if e.Unknown {
		text += unknownEffect
	}
	return text
}

// unknownEffect is the end of errors for calls that the upstream may have done.
const unknownEffect = "; whether the call took effect is unknown, and mcpx does not repeat it"

// Timeout is returned for a call that reached one of its time limits.
type Timeout struct {
	Server string
	Key    string // the config key of the limit
	Limit  time.Duration
}

func (e *Timeout) Error() string {
	what := "no answer and no progress"
	if e.Key == "max_timeout" {
		what = "no answer"
	}
	return fmt.Sprintf("server %q: timed out: %s within %s (its %q); the call was canceled", e.Server, what, e.Limit, e.Key)
}

package rpc

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"mcpx/internal/logging"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
)

// Conn is one end of a JSON-RPC connection. Both ends are alike: each sends requests,
// responds to the requests of its peer, and cancels. A Conn matches responses to
// requests, enforces time limits, passes progress on, and cancels in both directions.
// Reading and writing messages is left to its user, since an HTTP client is reached
// over many streams. The methods may be called concurrently.
type Conn struct {
	handler Handler
	send    func(message []byte) error // queues a message; never waits
	prefix  string                     // of the IDs of our requests; empty: they are numbers
	log     zerolog.Logger
	ctx     context.Context
	cancel  context.CancelCauseFunc

	mu       sync.Mutex
	inFlight inFlight
}

// Handler is the user of a Conn.
type Handler interface {
	// Result interprets the response to a call.
	Result(c *Call, m Message) (result []byte, err error)
	// TimedOut returns the error for a call that reached a limit.
	TimedOut(c *Call, l Limit) error
	// Lost returns the error for a call whose connection was closed for that reason.
	Lost(reason error) error
	// Canceled returns the cause for a request that the peer canceled.
	Canceled(reason string) error
}

// BasicHandler is a Handler without special needs. Others may embed it.
type BasicHandler struct{}

// Result implements Handler.
func (BasicHandler) Result(_ *Call, m Message) ([]byte, error) {
	if m.Error != nil {
		return nil, ParseError(m.Error)
	}
	return m.Result, nil
}

// TimedOut implements Handler.
func (BasicHandler) TimedOut(*Call, Limit) error { return context.DeadlineExceeded }

// Lost implements Handler.
func (BasicHandler) Lost(reason error) error { return reason }

// Canceled implements Handler.
func (BasicHandler) Canceled(reason string) error {
	return errors.New(cmp.Or(reason, "canceled"))
}

// Limit is a time limit of a call.
type Limit int

// The limits.
const (
	IdleLimit  Limit = iota // Request.Timeout
	TotalLimit              // Request.MaxTimeout
)

// ConnOptions are what a Conn needs.
type ConnOptions struct {
	Handler Handler
	Send    func(message []byte) error // queues a message; it must not wait
	Prefix  string                     // makes the IDs of our requests strings, so that they differ from the peer's
	Log     zerolog.Logger
}

// NewConn returns an open Conn.
func NewConn(o ConnOptions) *Conn {
	c := &Conn{handler: o.Handler, send: o.Send, prefix: o.Prefix, log: o.Log}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.inFlight.calls = map[int64]*Call{}
	c.inFlight.incoming = map[*Incoming]struct{}{}
	return c
}

// ErrClosed is returned for a message that was not sent because the connection is
// closed.
var ErrClosed = errors.New("the session is over")

// Request is a request to the peer.
type Request struct {
	Method string
	Params []byte // an object without _meta, or nil
	// Meta is the _meta object to send, to which a progress token is added. Nil: no
	// _meta is sent, and the peer sends no progress.
	Meta     []byte
	Progress func(params []byte)        // gets each progress notification, in order and before the response; must not wait; may be nil
	Send     func(message []byte) error // queues the messages of this call; must not wait; nil: the connection's Send

	Timeout    time.Duration // the longest time without progress; 0: no limit
	MaxTimeout time.Duration // the longest time in all; 0: no limit

	IsBackground bool // the call does not count as activity

	Tag      any // any value of the caller
	Remember Remember
}

// Done receives the end of a call, once. It runs on the goroutine that reads the
// peer's messages and must not wait. The result then belongs to Done.
type Done func(r Result, err error)

// Call is a request to the peer that has no response yet.
type Call struct {
	Request
	ID int64

	done  Done
	begun time.Time

	// Guarded by the connection's mutex.
	sent      bool
	over      bool        // removed from the calls of the connection
	held      int         // requests of the peer that wait for our user during this call
	moved     time.Time   // the last sign of progress
	timer     *time.Timer // enforces the limits; nil if there are none
	stopWatch func() bool // stops watching the context of the call
}

// Go sends a request. Unless it fails, done gets the end of the call, perhaps before
// Go returns. The call is canceled at the peer when ctx ends.
func (c *Conn) Go(ctx context.Context, r Request, done Done) error {
	now := time.Now()
	call := &Call{Request: r, done: done, begun: now, moved: now}
	if call.Send == nil {
		call.Send = c.send
	}
	if !c.add(call) {
		return ErrClosed
	}
	message := make([]byte, 0, 128+len(r.Method)+len(r.Meta)+len(r.Params)) // 128: the envelope
	err := call.Send(c.appendCall(message, call))
	if err != nil && c.remove(call) {
		return err
	}
	c.watch(ctx, call)
	return nil
}

// Call sends a request and waits for its end.
func (c *Conn) Call(ctx context.Context, r Request) ([]byte, error) {
	result, err := Wait(func(done Done) {
		if err := c.Go(ctx, r, done); err != nil {
			done(Result{}, err)
		}
	})
	return result.Take(), err
}

// Wait calls start, waits until done is called, and returns the end of the call.
func Wait(start func(done Done)) (Result, error) {
	type end struct {
		result Result
		err    error
	}
	ended := make(chan end, 1)
	start(func(r Result, err error) { ended <- end{r, err} })
	e := <-ended
	return e.result, e.err
}

// watch makes a call end at its time limits, with its context, or with the connection. It
// runs after the call was sent, because a cancellation must not overtake its call.
func (c *Conn) watch(ctx context.Context, call *Call) {
	in, isIncoming := ctx.(*Incoming)
	isIncoming = isIncoming && in.onCancel(func(cause error) { c.Cancel(call, cause) })
	c.mu.Lock()
	call.sent = true
	closed := c.inFlight.err
	if !call.over {
		if left, limited := call.left(time.Now()); limited {
			call.timer = time.AfterFunc(left, func() { c.expire(call) })
		}
		if !isIncoming && ctx.Done() != nil {
			call.stopWatch = context.AfterFunc(ctx, func() { c.Cancel(call, context.Cause(ctx)) })
		}
	}
	c.mu.Unlock()
	if closed != nil { // Close left it alone, because it was not sent yet
		c.finish(call, Result{}, c.handler.Lost(closed))
	}
}

// Notify sends a notification.
func (c *Conn) Notify(method string, params []byte) error {
	return c.send(AppendNotification(nil, method, params))
}

// Cancel abandons a call and notifies the peer, unless the call is over. MCP forbids
// canceling initialize.
func (c *Conn) Cancel(call *Call, cause error) {
	if !c.abandon(call, cause) {
		return
	}
	if c.ctx.Err() == nil && call.Method != "initialize" {
		params := append([]byte(`{"requestId":`), c.id(call.ID)...)
		params = rawjson.AppendString(append(params, `,"reason":`...), plain.Line(cause.Error()))
		if err := call.Send(AppendNotification(nil, "notifications/cancelled", append(params, '}'))); err != nil {
			c.log.Debug().Err(err).Msg("could not send a cancellation")
		}
	}
	c.complete(call, Result{}, cause)
}

// Refuse ends the call with that ID. The peer does not work on it.
func (c *Conn) Refuse(id []byte, err error) {
	if call := c.Pending(id); call != nil {
		c.finish(call, Result{}, err)
	}
}

// Abandon ends the call with that ID. The peer may still work on it.
func (c *Conn) Abandon(id []byte, err error) {
	if call := c.Pending(id); call != nil && c.abandon(call, err) {
		c.complete(call, Result{}, err)
	}
}

// Receive handles responses, progress and cancellations. It returns false for other
// messages, which the user must handle. line is the text of the message; it belongs to Receive
// unless Receive returns false.
func (c *Conn) Receive(m Message, line Line) bool {
	switch {
	case m.IsResponse():
		c.responded(m, line)
		return true
	case m.IsRequest():
		return false // whatever its method is called, the peer waits for a response
	case m.Method == "notifications/progress":
		c.progressed(m.Params)
	case m.Method == "notifications/cancelled":
		c.canceled(m.Params)
	default:
		return false
	}
	line.Room.Free()
	return true
}

// responded ends the call that a response belongs to.
func (c *Conn) responded(m Message, line Line) {
	call := c.Pending(m.ID)
	if call == nil {
		line.Room.Free()
		c.log.Debug().Bytes("id", m.ID).Msg("dropped a response without a pending call")
		c.answered(m.ID)
		return
	}
	result, err := c.handler.Result(call, m)
	if err != nil {
		line.Room.Free()
		c.finish(call, Result{}, err) // without the line: the error may hold parts of it
		return
	}
	c.finish(call, Result{result, line}, nil)
}

// progressed passes progress to its call. The token is the ID of the call.
func (c *Conn) progressed(params []byte) {
	token, err := strconv.ParseInt(string(rawjson.Get(params, "progressToken")), 10, 64)
	c.mu.Lock()
	call := c.inFlight.calls[token]
	switch {
	case err != nil:
	case call != nil:
		call.moved = time.Now() // expire reads it
	default:
		c.inFlight.past.touch(token, time.Now())
	}
	c.mu.Unlock()
	if err == nil && call != nil && call.Progress != nil {
		call.Progress(params)
	}
}

// canceled cancels the peer's request that a notification names.
func (c *Conn) canceled(params []byte) {
	reason, _ := rawjson.String(rawjson.Get(params, "reason"))
	c.mu.Lock()
	in := c.inFlight.request(rawjson.Get(params, "requestId"))
	c.mu.Unlock()
	if in != nil {
		in.Cancel(c.handler.Canceled(reason))
	}
}

// finish ends a call, unless it is over.
func (c *Conn) finish(call *Call, r Result, err error) {
	if !c.remove(call) {
		r.Free()
		return
	}
	c.complete(call, r, err)
}

// complete reports the end of a call that was removed. A panic affects only this call.
func (c *Conn) complete(call *Call, r Result, err error) {
	defer c.Recover()
	hasOwner := false
	defer func() {
		if !hasOwner {
			r.Free()
		}
	}()
	call.done(r, err)
	hasOwner = true
}

// Recover logs a panic; it must be deferred. The panic then affects one message instead
// of the process.
func (c *Conn) Recover() {
	if p := recover(); p != nil {
		logging.Panic(c.log.Error(), p).Msg("panic while handling a message")
	}
}

// expire ends a call that has reached a limit; otherwise it resets the timer.
func (c *Conn) expire(call *Call) {
	now := time.Now()
	c.mu.Lock()
	if call.held > 0 {
		call.moved = now // the peer waits for our user
	}
	left, _ := call.left(now)
	if call.over || left > 0 {
		if !call.over {
			call.timer.Reset(left)
		}
		c.mu.Unlock()
		return
	}
	c.mu.Unlock()
	limit := IdleLimit
	if call.MaxTimeout > 0 && now.Sub(call.begun) >= call.MaxTimeout {
		limit = TotalLimit
	}
	c.Cancel(call, c.handler.TimedOut(call, limit))
}

// left returns the time until the nearer limit; limited is false without limits.
func (c *Call) left(now time.Time) (left time.Duration, limited bool) {
	left = 1 << 62
	if c.Timeout > 0 {
		left = c.moved.Add(c.Timeout).Sub(now)
	}
	if c.MaxTimeout > 0 {
		left = min(left, c.begun.Add(c.MaxTimeout).Sub(now))
	}
	return left, c.Timeout > 0 || c.MaxTimeout > 0
}

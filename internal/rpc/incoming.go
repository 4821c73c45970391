package rpc

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// Incoming is a request of the peer that has no response yet. It is also the context
// for handling the request: it ends when the peer cancels the request, the connection
// is closed, or End is called. It creates a standard context only on demand, because
// most requests need none (BenchmarkStdioInFlight).
type Incoming struct {
	conn   *Conn
	id     string
	parent context.Context

	mu     sync.Mutex
	ctx    context.Context // made on demand
	cancel context.CancelCauseFunc
	stays  bool // the next End leaves the context open
	ended  bool
	cause  error             // why it ended
	hook   func(cause error) // called by Cancel; may be nil

	// Guarded by the connection's mutex.
	number int64   // in the order of the peer's requests
	causes []*Call // calls that it may belong to and that were not abandoned
	held   []*Call // calls whose idle limit it suspends
}

// ErrTooMany is returned when the peer has too many unfinished requests.
var ErrTooMany = errors.New("too many requests are unanswered")

// Begin registers a request of the peer until End. At most limit requests are
// registered; 0 means no limit. causes are the calls that the request may belong to:
// when all of them are abandoned, it is canceled.
func (c *Conn) Begin(parent context.Context, id []byte, limit int, causes ...*Call) (*Incoming, error) {
	in := &Incoming{conn: c, id: string(id), parent: parent, causes: causes}
	c.mu.Lock()
	defer c.mu.Unlock()
	if limit > 0 && len(c.inFlight.incoming) >= limit {
		return nil, ErrTooMany
	}
	if c.inFlight.err != nil {
		in.end(c.inFlight.err)
		return in, nil
	}
	isOver := func(call *Call) bool { return call.over }
	if in.causes = slices.DeleteFunc(in.causes, isOver); len(causes) > 0 && len(in.causes) == 0 {
		in.end(context.Canceled)
	}
	c.inFlight.begin(in)
	return in, nil
}

// End removes the request, because it has a response, and ends its context.
func (in *Incoming) End() {
	in.conn.mu.Lock()
	delete(in.conn.inFlight.incoming, in)
	in.release()
	in.conn.mu.Unlock()
	in.mu.Lock()
	stays := in.stays
	in.stays = false
	in.mu.Unlock()
	if !stays {
		in.end(nil)
	}
}

// Outlive makes the next End leave the context open, because the work goes on after the
// response. End must be called once more after the work.
func (in *Incoming) Outlive() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.stays = true
}

// Cancel ends the context of the request.
func (in *Incoming) Cancel(cause error) {
	if hook := in.end(cause); hook != nil {
		hook(cause)
	}
}

// end ends the context and returns the hook, which must be called without a lock.
func (in *Incoming) end(cause error) (hook func(cause error)) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.ended {
		return nil
	}
	in.ended, in.cause = true, cause
	if in.cancel != nil {
		in.cancel(cause)
	}
	return in.hook
}

// IsCanceledBy reports whether the request has ended for that cause.
func (in *Incoming) IsCanceledBy(cause error) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.ended && errors.Is(in.cause, cause)
}

// onCancel registers the one function that Cancel calls. It returns false if there is
// one already, if the request has ended, or if its parent may end without Cancel.
func (in *Incoming) onCancel(hook func(cause error)) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.hook != nil || in.ended || in.parent.Done() != nil {
		return false
	}
	in.hook = hook
	return true
}

// context returns the standard context of the request.
func (in *Incoming) context() context.Context {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.ctx == nil {
		in.ctx, in.cancel = context.WithCancelCause(in.parent)
		if in.ended {
			in.cancel(in.cause)
		}
	}
	return in.ctx
}

// Done implements context.Context.
func (in *Incoming) Done() <-chan struct{} { return in.context().Done() }

// Err implements context.Context.
func (in *Incoming) Err() error {
	in.mu.Lock()
	isOpen := !in.ended && in.parent.Err() == nil
	in.mu.Unlock()
	if isOpen {
		return nil
	}
	return in.context().Err()
}

// Value implements context.Context.
func (in *Incoming) Value(key any) any { return in.context().Value(key) }

// Deadline implements context.Context.
func (in *Incoming) Deadline() (time.Time, bool) { return in.parent.Deadline() }

// CancelIncoming cancels every request of the peer.
func (c *Conn) CancelIncoming(cause error) {
	c.mu.Lock()
	all := slices.Collect(maps.Keys(c.inFlight.incoming))
	c.mu.Unlock()
	for _, in := range all {
		in.Cancel(cause)
	}
}

// Hold suspends the idle limit of the pending calls that match, until End or the
// next Hold: meanwhile the peer waits for our user.
func (in *Incoming) Hold(matches func(c *Call) bool) {
	in.conn.mu.Lock()
	defer in.conn.mu.Unlock()
	in.release()
	for _, call := range in.conn.inFlight.calls {
		if matches(call) {
			call.held++
			in.held = append(in.held, call)
		}
	}
}

// release lets the idle limits run again.
func (in *Incoming) release() {
	for _, call := range in.held {
		call.held--
		call.moved = time.Now()
	}
	in.held = nil
}

// MayBelongTo reports whether the request may belong to a pending call that matches.
func (in *Incoming) MayBelongTo(matches func(c *Call) bool) bool {
	in.conn.mu.Lock()
	defer in.conn.mu.Unlock()
	return slices.ContainsFunc(in.causes, func(c *Call) bool { return !c.over && matches(c) })
}

// IsIncoming reports whether the request of the peer with that ID is unfinished.
func (c *Conn) IsIncoming(id []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inFlight.request(id) != nil
}

// Incoming returns the number of unfinished requests of the peer.
func (c *Conn) Incoming() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.inFlight.incoming)
}

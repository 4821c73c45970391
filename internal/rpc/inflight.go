package rpc

import (
	"context"
	"maps"
	"slices"
	"time"
)

// inFlight holds the unfinished requests of a connection, in both directions. Only the
// functions in this file and Incoming change it, under the connection's mutex.
//
// The closing rule: once err is set, nothing is added. Close ends every call that was
// sent and cancels every request of the peer. Go ends a call that it is just sending,
// since only Go knows whether the call was sent.
type inFlight struct {
	lastID   int64
	active   int64                  // number of calls so far, without background calls
	calls    map[int64]*Call        // pending calls
	past     past                   // calls that are over
	incoming map[*Incoming]struct{} // unfinished requests of the peer, some of which may share an ID
	begun    int64                  // number of requests of the peer so far
	err      error                  // why the connection is closed
}

// Context ends when the connection is closed. Its cause is the reason.
func (c *Conn) Context() context.Context { return c.ctx }

// Err returns why the connection is closed, nil while it is open.
func (c *Conn) Err() error { return context.Cause(c.ctx) }

// Close ends the connection: every call fails, and every request of the peer is
// canceled. The first reason counts.
func (c *Conn) Close(reason error) {
	c.closeIf(reason, func() bool { return true })
}

// closeIf closes the connection if it is open and the condition holds. It reports whether
// it did.
func (c *Conn) closeIf(reason error, holds func() bool) bool {
	c.mu.Lock()
	if c.inFlight.err != nil || !holds() {
		c.mu.Unlock()
		return false
	}
	c.inFlight.err = reason
	var sent []*Call
	for _, call := range c.inFlight.calls {
		if call.sent {
			sent = append(sent, call)
		}
	}
	c.mu.Unlock()
	c.cancel(reason)
	c.CancelIncoming(reason)
	for _, call := range sent {
		c.finish(call, Result{}, c.handler.Lost(reason))
	}
	return true
}

// Activity returns the number of calls so far, and whether a request is unfinished in
// either direction. Background calls do not count.
func (c *Conn) Activity() (calls int64, isBusy bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inFlight.active, c.inFlight.isBusy()
}

// CloseIfIdle closes the connection if Activity still returns that many calls, and that it is
// not busy. It reports whether it did.
func (c *Conn) CloseIfIdle(calls int64, reason error) bool {
	return c.closeIf(reason, func() bool { return c.inFlight.active == calls && !c.inFlight.isBusy() })
}

func (f *inFlight) isBusy() bool {
	for _, call := range f.calls {
		if !call.IsBackground {
			return true
		}
	}
	return len(f.incoming) > 0
}

// add adds a call and sets its ID; false if the connection is closed.
func (c *Conn) add(call *Call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inFlight.err != nil {
		return false
	}
	c.inFlight.lastID++
	call.ID = c.inFlight.lastID
	c.inFlight.calls[call.ID] = call
	if !call.IsBackground {
		c.inFlight.active++
	}
	return true
}

// remove removes a call that was not abandoned; false if it is over already. Whoever removes
// a call reports its end.
func (c *Conn) remove(call *Call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.inFlight.remove(call) {
		return false
	}
	c.inFlight.past.end(call.Remember.Ended, time.Now())
	return true
}

func (f *inFlight) remove(call *Call) bool {
	if call.over {
		return false
	}
	call.over = true
	delete(f.calls, call.ID)
	if call.timer != nil {
		call.timer.Stop()
	}
	if call.stopWatch != nil {
		call.stopWatch()
	}
	return true
}

// abandon removes a call that the peer may still work on. It cancels the requests of
// the peer that can belong to no other call.
func (c *Conn) abandon(call *Call, cause error) bool {
	c.mu.Lock()
	if !c.inFlight.remove(call) {
		c.mu.Unlock()
		return false
	}
	c.inFlight.past.abandon(call, time.Now())
	var orphans []*Incoming
	for in := range c.inFlight.incoming {
		if i := slices.Index(in.causes, call); i >= 0 {
			if in.causes = slices.Delete(in.causes, i, i+1); len(in.causes) == 0 {
				orphans = append(orphans, in)
			}
		}
	}
	c.mu.Unlock()
	for _, in := range orphans {
		in.Cancel(cause)
	}
	return true
}

// begin registers a request of the peer.
func (f *inFlight) begin(in *Incoming) {
	f.begun++
	in.number = f.begun
	f.incoming[in] = struct{}{}
}

// request returns the newest unfinished request of the peer with that ID, nil if there is
// none. It looks at all of them, because only cancellations need it.
func (f *inFlight) request(id []byte) (newest *Incoming) {
	for in := range f.incoming {
		if in.id == string(id) && (newest == nil || in.number > newest.number) {
			newest = in
		}
	}
	return newest
}

// Pending returns the call with that ID, nil if there is none.
func (c *Conn) Pending(id []byte) *Call {
	number, ok := c.number(id)
	if !ok {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inFlight.calls[number]
}

// Sent reports whether a response with that ID can be for a call of this connection, which
// may have ended.
func (c *Conn) Sent(id []byte) bool {
	_, ok := c.number(id)
	return ok
}

// Snapshot is the state of the calls at one moment.
type Snapshot struct {
	Calls []*Call // pending, in the order in which they were sent
	Held  []*Call // pending calls during which the peer waits for our user
	Past
}

// Snapshot returns the state of the calls now.
func (c *Conn) Snapshot() Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Snapshot{Past: c.inFlight.past.at(time.Now())}
	for _, id := range slices.Sorted(maps.Keys(c.inFlight.calls)) {
		call := c.inFlight.calls[id]
		s.Calls = append(s.Calls, call)
		if call.held > 0 {
			s.Held = append(s.Held, call)
		}
	}
	return s
}

// Len returns the number of pending calls.
func (c *Conn) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.inFlight.calls)
}

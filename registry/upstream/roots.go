package upstream

import (
	"context"
	"time"

	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/internal/tasks"
)

// Some servers request the roots of their client once and keep them, which is right with
// one client. On a shared session the roots of one client must not be used for the calls of
// another. So before a call of another client, mcpx notifies such a server that the roots
// have changed, and waits until it has the roots of that client. If it does not request
// them, or works for another client at that moment, the call is refused.

// keptRoots tracks which client's roots an upstream keeps. The mutex of the session guards it.
type keptRoots struct {
	isKeeper  bool         // the upstream has requested roots when no client had a call
	owner     string       // the client that sent its roots last; "" if none did
	next      Client       // the client whose roots the upstream must request; nil if nothing has changed
	requested tasks.Signal // the upstream has requested the roots of next
	received  tasks.Signal // it has received them
}

// Times for a change of roots.
const (
	rootsWait  = 5 * time.Second        // for calls of other clients to end
	rootsTime  = time.Second            // for the upstream to request them
	rootsTick  = 20 * time.Millisecond  // between checks whether they have ended
	rootsGrace = 100 * time.Millisecond // for the upstream to use them: it may have to look at folders first
)

// needsRoots reports whether a call must wait until the upstream has the client's roots.
func (s *Session) needsRoots(c Client) bool {
	if s.Owner != nil || c == nil || s.state2026() != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k := &s.kept
	switch {
	case !k.isKeeper:
		return false
	case k.next != nil:
		return true
	}
	return k.owner != s.callerID(c) && (k.owner != "" || hasRoots(c))
}

// hasRoots reports whether a client may have roots.
func hasRoots(c Client) bool {
	declared, ok := c.(InputClient)
	return !ok || !rawjson.IsNull(rawjson.Get(declared.Capabilities(), "roots"))
}

// changeRoots waits until the upstream has the roots of a client.
func (s *Session) changeRoots(ctx context.Context, c Client) error {
	if !s.needsRoots(c) { // another call has done it
		return nil
	}
	if !s.othersDone(ctx, c) {
		return s.keepsOthers("a call of another client is running")
	}
	s.mu.Lock()
	requested, received := tasks.NewSignal(), tasks.NewSignal()
	s.kept.next, s.kept.requested, s.kept.received = c, requested, received
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.kept.next = nil
	}()
	if err := s.conn.Notify("notifications/roots/list_changed", nil); err != nil {
		return err
	}
	return s.awaitRoots(ctx, requested, received)
}

// awaitRoots waits until the upstream has requested and received new roots. If it does not
// request them, that is an error only if it keeps those of another client.
func (s *Session) awaitRoots(ctx context.Context, requested, received <-chan struct{}) error {
	limited, cancel := context.WithTimeout(ctx, rootsTime)
	defer cancel()
	err := await(limited, s, requested)
	if err != nil && ctx.Err() == nil && !s.IsOver() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.kept.owner != "" {
			return s.keepsOthers("the server does not request new ones")
		}
		s.kept.isKeeper = false // it has none, and wants none
		return nil
	}
	if err == nil {
		err = await(ctx, s, received) // the client may need a person for that
	}
	if err == nil {
		err = await(ctx, s, time.After(rootsGrace))
	}
	return err
}

// await receives from a channel. It fails if ctx or the session ends before.
func await[T any](ctx context.Context, s *Session, c <-chan T) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.Done():
		return rpc.ErrClosed
	}
}

// othersDone waits until no other client has a pending call.
func (s *Session) othersDone(ctx context.Context, c Client) bool {
	tick, limit := time.NewTicker(rootsTick), time.After(rootsWait)
	defer tick.Stop()
	for {
		busy, parked := clientsOf(s.conn.Snapshot())
		delete(busy, c.ID())
		delete(parked, c.ID())
		if len(busy)+len(parked) == 0 {
			return true
		}
		select {
		case <-tick.C:
		case <-limit:
			return false
		case <-ctx.Done():
			return false
		case <-s.Done():
			return true // the call finds out
		}
	}
}

// keepsOthers returns the error for a call that might use the roots of another client.
func (s *Session) keepsOthers(why string) error {
	return &Unanswered{Server: s.Config.Name, Reason: `it keeps the roots of one client for all, and ` + why +
		`; try again later, or set "isolation": "client" for it`}
}

// rootsAddressee picks the client that a request for roots goes to.
func (s *Session) rootsAddressee(callID []byte) (Client, error) {
	now := s.conn.Snapshot()
	busy, parked := clientsOf(now)
	isOutsideCalls := len(busy)+len(parked)+len(now.Abandoned) == 0 && !now.Overflow
	s.mu.Lock()
	next := s.kept.next
	s.kept.isKeeper = s.kept.isKeeper || isOutsideCalls
	if next != nil {
		s.kept.requested.Notify()
	}
	s.mu.Unlock()
	if next != nil {
		return next, nil
	}
	return s.addressee(callID)
}

// respondRoots responds to a request for roots, and records whose roots the upstream has. A
// client without roots has an empty list, so that the upstream does not keep those of
// another.
func (s *Session) respondRoots(id []byte, c Client, result []byte, err error) {
	s.mu.Lock()
	isChange := s.kept.next != nil && s.kept.next.ID() == c.ID()
	if err != nil && isChange {
		result, err = []byte(`{"roots":[]}`), nil
	}
	if err == nil {
		s.kept.owner = s.callerID(c)
	}
	s.mu.Unlock()
	s.respond(id, result, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	if isChange && s.kept.next != nil { // calls are sent after the response
		s.kept.received.Notify()
	}
}

// KeepsRoots reports whether the upstream has requested roots when there was no call, and so
// probably keeps them.
func (s *Session) KeepsRoots() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept.isKeeper
}

package server

import (
	"context"
	"errors"
	"sync"
)

// Quota bounds what one client session can make mcpx hold: calls that are in
// flight, and answers that the client has not read. A call is in flight until its
// answer is written. Its methods may be called concurrently.
type Quota struct {
	most   int // calls in flight; 0: no limit
	unread int // bytes of answers that may wait to be written before no further call begins

	mu      sync.Mutex
	calls   int
	waiting int           // bytes of answers that wait to be written
	queued  int           // calls that wait for room
	bytes   int           // size of the queued calls
	freed   chan struct{} // closed when there may be room; nil if nobody waits for that
}

// Limits on calls that wait for room.
const (
	maxQueued      = 1000
	maxQueuedBytes = 1 << 20 // a single larger call may wait alone
)

var errNoRoom = errors.New("too many calls wait already")

func NewQuota(most, unread int) *Quota { return &Quota{most: most, unread: unread} }

// Enter begins a call; false if there is no room for it, or q is nil.
func (q *Quota) Enter() bool {
	if q == nil {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.enterLocked()
}

func (q *Quota) enterLocked() bool {
	if q.most > 0 && (q.calls >= q.most || q.waiting > q.unread) {
		return false
	}
	q.calls++
	return true
}

// Wait begins a call of that size once there is room for it. It fails with
// errNoRoom if too many wait, or with the cause of ctx.
func (q *Quota) Wait(ctx context.Context, size int) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if q.queued >= maxQueued || q.queued > 0 && q.bytes+size > maxQueuedBytes {
		return errNoRoom
	}
	q.queued++
	q.bytes += size
	defer func() {
		q.queued--
		q.bytes -= size
	}()
	for !q.enterLocked() {
		if q.freed == nil {
			q.freed = make(chan struct{})
		}
		freed := q.freed
		q.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
		}
		q.mu.Lock()
		if ctx.Err() != nil { // first: what ends the context may also make room
			return context.Cause(ctx)
		}
	}
	return nil
}

// Leave ends a call.
func (q *Quota) Leave() { q.change(-1, 0) }

// Hold notes that an answer waits to be written, until release.
func (q *Quota) Hold(answer []byte) (release func()) {
	n := len(answer)
	q.change(0, n)
	return func() { q.change(0, -n) }
}

func (q *Quota) change(calls, waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.calls += calls
	q.waiting += waiting
	if q.freed != nil {
		close(q.freed)
		q.freed = nil
	}
}

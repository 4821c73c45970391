package server

import (
	"context"
	"errors"
	"sync"
)

// Quota bounds the memory that one client session can make mcpx use: the unfinished
// calls and the unread responses. A call is unfinished until its response is written.
// The methods may be called concurrently.
type Quota struct {
	limit       int // of unfinished calls; 0: no limit
	unreadLimit int // of the bytes of unread responses; above it no call starts

	mu     sync.Mutex
	calls  int           // unfinished calls
	unread int           // bytes of responses that wait to be written
	queued int           // calls that wait in Acquire
	bytes  int           // size of the queued calls
	freed  chan struct{} // closed when there may be room; nil if no call is queued
}

// Limits on calls that wait in Acquire.
const (
	maxQueued      = 1000
	maxQueuedBytes = 1 << 20 // a single larger call may wait alone
)

var errNoRoom = errors.New("too many calls are waiting")

// NewQuota returns a Quota with these limits.
func NewQuota(limit, unreadLimit int) *Quota { return &Quota{limit: limit, unreadLimit: unreadLimit} }

// TryAcquire counts a call; false if there is no room for it, or q is nil.
func (q *Quota) TryAcquire() bool {
	if q == nil {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.tryAcquireLocked()
}

func (q *Quota) tryAcquireLocked() bool {
	if q.limit > 0 && (q.calls >= q.limit || q.unread > q.unreadLimit) {
		return false
	}
	q.calls++
	return true
}

// Acquire waits until there is room for a call of that size, and counts it. It returns
// errNoRoom if too many calls wait, or the cause of ctx.
func (q *Quota) Acquire(ctx context.Context, size int) error {
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
	for !q.tryAcquireLocked() {
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
		if ctx.Err() != nil { // before tryAcquireLocked, since the end of ctx may also make room
			return context.Cause(ctx)
		}
	}
	return nil
}

// Release removes a call.
func (q *Quota) Release() { q.change(-1, 0) }

// Hold counts a response as unread until release is called.
func (q *Quota) Hold(response []byte) (release func()) {
	n := len(response)
	q.change(0, n)
	return func() { q.change(0, -n) }
}

func (q *Quota) change(calls, unread int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.calls += calls
	q.unread += unread
	if q.freed != nil {
		close(q.freed)
		q.freed = nil
	}
}

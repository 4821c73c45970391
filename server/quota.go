package server

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"mcpx/internal/tasks"
)

// Quota bounds the memory that one client session can make mcpx use: the unfinished
// calls, the unread responses, and the calls that wait for room. A call is unfinished
// until its response is written. The methods may be called concurrently.
type Quota struct {
	limit       int // of unfinished calls; 0: no limit
	unreadLimit int // of the bytes of unread responses; above it no call starts

	mu       sync.Mutex
	calls    int           // unfinished calls
	unread   int           // bytes of responses that wait to be written
	entering int           // calls between Enter and Start
	queue    []*queuedCall // in the order of Start; while it is not empty, later calls are queued too
	bytes    int           // size of the calls that are entering or queued
	starting bool          // a queued call is being started; other changes leave the queue alone meanwhile
	shrunk   tasks.Signal  // a call has left the queue

	batchBytes atomic.Int64 // see batchMemory
}

// queuedCall is a call that waits for room.
type queuedCall struct {
	size    int
	start   func(respond func(response []byte))
	respond func(response []byte)
	forget  func() bool // stops waiting for the end of the context
}

// Limits on queued calls.
const (
	maxQueued      = 1000
	maxQueuedBytes = 1 << 20 // a single larger call may wait alone
)

// NewQuota returns a Quota with these limits.
func NewQuota(limit, unreadLimit int) *Quota {
	return &Quota{limit: limit, unreadLimit: unreadLimit, shrunk: tasks.NewSignal()}
}

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
	if !q.hasRoom(1) {
		return false
	}
	q.calls++
	return true
}

// hasRoom reports whether that many more calls may start.
func (q *Quota) hasRoom(calls int) bool {
	return q.limit == 0 || q.calls+calls <= q.limit && q.unread <= q.unreadLimit
}

// Enter reserves room in the queue for a call of that size, which Start must follow; false
// if there is none. A call that need not wait may always enter.
func (q *Quota) Enter(size int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(q.queue) + q.entering
	mustWait := len(q.queue) > 0 || q.starting || !q.hasRoom(q.entering+1)
	if mustWait && (n >= maxQueued || n > 0 && q.bytes+size > maxQueuedBytes) {
		return false
	}
	q.entering++
	q.bytes += size
	return true
}

// WaitToEnter is Enter, except that it waits until there is room; false if ctx ends. One
// goroutine at a time may wait.
func (q *Quota) WaitToEnter(ctx context.Context, size int) bool {
	for !q.Enter(size) {
		select {
		case <-q.shrunk:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// Start counts a call that has entered and starts it, as soon as there is room and every
// earlier call has started. It does not wait, and neither may start. If the context ends
// first, the call is started at once, so that it ends too. Release ends the call.
func (q *Quota) Start(ctx context.Context, size int, start func(respond func(response []byte)), respond func(response []byte)) {
	q.mu.Lock()
	q.entering--
	if len(q.queue) > 0 || q.starting || !q.tryAcquireLocked() {
		call := &queuedCall{size: size, start: start, respond: respond}
		call.forget = context.AfterFunc(ctx, func() { q.startEnded(call) })
		q.queue = append(q.queue, call)
		q.mu.Unlock()
		return
	}
	q.bytes -= size
	q.mu.Unlock()
	start(respond)
}

// startEnded starts a call whose context has ended, if it is still queued.
func (q *Quota) startEnded(call *queuedCall) {
	q.mu.Lock()
	i := slices.Index(q.queue, call)
	if i >= 0 {
		q.pop(i)
		q.calls++
	}
	q.mu.Unlock()
	if i >= 0 {
		call.start(call.respond)
	}
}

// pop removes a call from the queue. The caller holds mu.
func (q *Quota) pop(i int) *queuedCall {
	call := q.queue[i]
	q.queue = slices.Delete(q.queue, i, i+1)
	q.bytes -= call.size
	q.shrunk.Notify()
	return call
}

// Release removes a call.
func (q *Quota) Release() { q.change(-1, 0) }

// AddUnread counts bytes of a response that waits to be written; negative: of one that was
// written or dropped.
func (q *Quota) AddUnread(bytes int) { q.change(0, bytes) }

// change changes the counts and starts the queued calls that there is room for.
func (q *Quota) change(calls, unread int) {
	q.mu.Lock()
	q.calls += calls
	q.unread += unread
	q.mu.Unlock()
	for q.startNext() {
	}
}

// startNext starts the next queued call; false if there is none, or no room for it. A call
// that ends at once calls change again, which leaves the queue to the first change.
func (q *Quota) startNext() bool {
	q.mu.Lock()
	if q.starting || len(q.queue) == 0 || !q.tryAcquireLocked() {
		q.mu.Unlock()
		return false
	}
	q.starting = true
	call := q.pop(0)
	q.mu.Unlock()
	defer func() { // also if start panics
		q.mu.Lock()
		q.starting = false
		q.mu.Unlock()
	}()
	call.forget()
	call.start(call.respond)
	return true
}

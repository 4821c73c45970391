package stdio

import (
	"bytes"
	"slices"
	"sync"

	"mcpx/server"
)

// Limits of a backlog.
const (
	backlogBytes   = 1 << 20 // a single larger request may wait alone
	backlogEntries = 10_000
)

// backlog is the queue of requests that the quota has no room for. mcpx queues them and
// reads on, because a response that a pending call needs may follow. The methods may be
// called concurrently.
type backlog struct {
	mu       sync.Mutex
	changed  sync.Cond
	queue    []server.Inbound
	bytes    int
	starting *server.Inbound // the request that was popped and that Server.Handle cannot cancel yet
	closed   bool
}

func newBacklog() *backlog {
	b := &backlog{}
	b.changed.L = &b.mu
	return b
}

// add appends a request. It waits while the backlog is full.
func (b *backlog) add(p server.Inbound) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.queue) > 0 && (b.bytes+len(p.Text) > backlogBytes || len(b.queue) >= backlogEntries) && !b.closed {
		b.changed.Wait()
	}
	b.queue = append(b.queue, p)
	b.bytes += len(p.Text)
	b.changed.Broadcast()
}

// isEmpty reports whether every request was started.
func (b *backlog) isEmpty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queue) == 0 && b.starting == nil
}

// wait waits until there is a request; false after close.
func (b *backlog) wait() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.queue) == 0 && !b.closed {
		b.changed.Wait()
	}
	return !b.closed
}

// pop removes the first request; false if there is none. The request is starting until
// started is called.
func (b *backlog) pop() (server.Inbound, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		return server.Inbound{}, false
	}
	p := b.queue[0]
	b.queue[0] = server.Inbound{}
	b.queue = b.queue[1:]
	b.bytes -= len(p.Text)
	b.starting = &p
	b.changed.Broadcast()
	return p, true
}

// started records that Server.Handle can now cancel the request that was popped.
func (b *backlog) started() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.starting = nil
	b.changed.Broadcast()
}

// cancel removes the request with that ID; false if it is not queued. It waits while
// the request is starting.
func (b *backlog) cancel(id []byte) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(id) == 0 {
		return false // a batch has no ID
	}
	for b.starting != nil && bytes.Equal(b.starting.Message.ID, id) {
		b.changed.Wait()
	}
	i := slices.IndexFunc(b.queue, func(p server.Inbound) bool { return bytes.Equal(p.Message.ID, id) })
	if i < 0 {
		return false
	}
	b.bytes -= len(b.queue[i].Text)
	b.queue = slices.Delete(b.queue, i, i+1)
	b.changed.Broadcast()
	return true
}

// close ends every wait.
func (b *backlog) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.changed.Broadcast()
}

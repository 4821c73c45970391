package server

import (
	"bytes"
	"slices"
	"sync"
)

// backlogBytes bounds the requests that wait for room in the quota. Some have to be
// read: the answer that a call in flight waits for may come after them.
const backlogBytes = 1 << 20

// backlog holds requests that the quota has no room for, in the order in which they
// came. Its methods may be called concurrently.
type backlog struct {
	mu      sync.Mutex
	changed sync.Cond
	queue   []parsed
	bytes   int
	closed  bool
}

func newBacklog() *backlog {
	b := &backlog{}
	b.changed.L = &b.mu
	return b
}

// add appends a request. It waits while too much is queued.
func (b *backlog) add(p parsed) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.bytes > 0 && b.bytes+len(p.text) > backlogBytes && !b.closed {
		b.changed.Wait()
	}
	b.queue = append(b.queue, p)
	b.bytes += len(p.text)
	b.changed.Broadcast()
}

func (b *backlog) isEmpty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queue) == 0
}

// wait waits until there is a request; false if there will be none.
func (b *backlog) wait() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.queue) == 0 && !b.closed {
		b.changed.Wait()
	}
	return !b.closed
}

// first removes the first request; false if there is none.
func (b *backlog) first() (parsed, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		return parsed{}, false
	}
	return b.remove(0), true
}

// cancel removes the request with that ID; false if it is not queued.
func (b *backlog) cancel(id []byte) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.queue, func(p parsed) bool { return bytes.Equal(p.message.ID, id) })
	if i < 0 {
		return false
	}
	b.remove(i)
	return true
}

func (b *backlog) remove(i int) parsed {
	p := b.queue[i]
	b.queue = slices.Delete(b.queue, i, i+1)
	b.bytes -= len(p.text)
	b.changed.Broadcast()
	return p
}

// close ends every wait.
func (b *backlog) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.changed.Broadcast()
}

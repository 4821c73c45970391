// Package tasks gives goroutines an owner that waits for them.
package tasks

import "sync"

// Group is a set of goroutines with one owner. Unlike a WaitGroup it may be closed
// while others still try to start goroutines. The zero value is ready to use; its
// methods may be called concurrently.
type Group struct {
	mu      sync.Mutex
	running sync.WaitGroup
	closed  bool
}

// Go runs task in a goroutine. It returns false, and runs nothing, after Close.
func (g *Group) Go(task func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.running.Go(task)
	}
	return !g.closed
}

// Close lets no more goroutines start and waits for those that run. It is safe to
// call twice.
func (g *Group) Close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.running.Wait()
}

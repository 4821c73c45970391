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
	if !g.Add() {
		return false
	}
	go func() {
		defer g.Done()
		task()
	}()
	return true
}

// Add counts work that is not one goroutine as running, until Done. It returns false after
// Close.
func (g *Group) Add() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.running.Add(1)
	}
	return !g.closed
}

// Done ends work that Add counted.
func (g *Group) Done() { g.running.Done() }

// Close lets no more work begin and waits for the work that runs. It is safe to call twice.
func (g *Group) Close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.running.Wait()
}

// Signal wakes one goroutine. Any number of notices before it looks become one. It is
// used with a state that the sender changes first and the receiver reads after.
type Signal chan struct{}

// NewSignal returns a Signal.
func NewSignal() Signal { return make(Signal, 1) }

// Notify wakes the receiver. It never waits.
func (s Signal) Notify() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// Clear forgets a notice that nobody has received.
func (s Signal) Clear() {
	select {
	case <-s:
	default:
	}
}

package registry

import (
	"context"
	"errors"
	"sync"
)

// changes collects the names of what has changed until somebody looks: any
// number of notices become one.
type changes struct {
	signal chan struct{} // capacity 1

	mu    sync.Mutex
	names map[string]bool
}

func newChanges() changes { return changes{signal: make(chan struct{}, 1), names: map[string]bool{}} }

// note adds names. It never waits.
func (c *changes) note(names ...string) {
	if len(names) == 0 {
		return
	}
	c.mu.Lock()
	for _, name := range names {
		c.names[name] = true
	}
	c.mu.Unlock()
	select {
	case c.signal <- struct{}{}:
	default:
	}
}

// errDone is returned by wait when done was closed.
var errDone = errors.New("done")

// wait returns what has changed, once something has.
func (c *changes) wait(ctx context.Context, done <-chan struct{}) (map[string]bool, error) {
	select {
	case <-c.signal:
	case <-done:
		return nil, errDone
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	names := c.names
	c.names = map[string]bool{}
	return names, nil
}

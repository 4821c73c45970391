package live

import (
	"context"
	"errors"
	"sync"
	"time"

	"mcpx/internal/tasks"
)

// Changes collects the names of changed lists until Wait returns them. The methods may be
// called concurrently.
type Changes struct {
	signal tasks.Signal

	mu    sync.Mutex
	names map[string]bool
	count int64 // of calls of Note
	taken int64 // those that Wait has returned
}

// NewChanges returns Changes without any.
func NewChanges() Changes { return Changes{signal: tasks.NewSignal(), names: map[string]bool{}} }

// Note adds names. It never waits.
func (c *Changes) Note(names ...string) {
	if len(names) == 0 {
		return
	}
	c.mu.Lock()
	for _, name := range names {
		c.names[name] = true
	}
	c.count++
	c.mu.Unlock()
	c.signal.Notify()
}

// Noted returns how often Note was called.
func (c *Changes) Noted() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}

// Returned is Noted for the names that Wait has returned.
func (c *Changes) Returned() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.taken
}

// errDone is returned by Wait when done was closed.
var errDone = errors.New("done")

// Wait returns the changed names, once there are any or retry delivers.
func (c *Changes) Wait(ctx context.Context, done <-chan struct{}, retry <-chan time.Time) (map[string]bool, error) {
	select {
	case <-c.signal:
	case <-retry:
	case <-done:
		return nil, errDone
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	names := c.names
	c.names, c.taken = map[string]bool{}, c.count
	return names, nil
}

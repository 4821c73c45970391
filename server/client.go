package server

import (
	"context"
	"errors"
	"sync"

	"mcpx/internal/jsonrpc"
	"mcpx/internal/rawjson"
)

// Client is one client of a front and its conversation.
type Client struct {
	ID string // tells clients apart

	mu       sync.Mutex
	revision string                             // negotiated by initialize
	calls    map[string]context.CancelCauseFunc // in flight, by the id as it was written
}

// errCancelled is the cause of a request's end by its client.
var errCancelled = errors.New("cancelled by the client")

// NewClient returns a Client with that id.
func NewClient(id string) *Client {
	return &Client{ID: id, calls: map[string]context.CancelCauseFunc{}}
}

// begin makes a request one that the client can cancel; done ends that.
func (c *Client) begin(ctx context.Context, id []byte) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	key := string(id)
	c.mu.Lock()
	c.calls[key] = cancel
	c.mu.Unlock()
	return ctx, func() {
		c.mu.Lock()
		delete(c.calls, key)
		c.mu.Unlock()
		cancel(nil)
	}
}

// notified takes a notification of the client.
func (c *Client) notified(m jsonrpc.Message) {
	if m.Method != "notifications/cancelled" {
		return
	}
	id := rawjson.Get(m.Params, "requestId")
	c.mu.Lock()
	cancel := c.calls[string(id)]
	c.mu.Unlock()
	if cancel != nil {
		cancel(errCancelled)
	}
}

func (c *Client) setRevision(revision string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.revision = revision
}

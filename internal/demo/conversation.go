package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"mcpx/internal/jsonrpc"
	"mcpx/internal/rawjson"
)

// Limits on the memory that a client can use.
const (
	maxMessage  = 1 << 20 // bytes of one message
	maxUnread   = 4 << 20 // bytes written that the client has not read
	maxRequests = 64      // requests at a time
)

// drainTime is how long running requests may take once the input has ended.
const drainTime = 5 * time.Second

// conversation is the connection to one client.
type conversation struct {
	*server
	out     *jsonrpc.Writer
	running sync.WaitGroup // requests

	mu       sync.Mutex
	requests map[string]context.CancelFunc // the client's, by ID
	sent     map[string]chan<- reply       // the server's own requests, by ID
	lastID   int
	elicits  bool // the client supports elicitation
}

// reply is the client's response to a request of the server.
type reply struct{ result, failure []byte }

// serve implements Serve.
func (s *server) serve(ctx context.Context, in io.Reader, out io.Writer) error {
	c := &conversation{
		server:   s,
		out:      jsonrpc.NewWriter(out, maxUnread),
		requests: map[string]context.CancelFunc{},
		sent:     map[string]chan<- reply{},
	}
	ended := make(chan error, 1)
	go func() { ended <- c.run(ctx, in) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil
	}
}

// run reads messages until in ends, and returns when all its goroutines have ended.
func (c *conversation) run(ctx context.Context, in io.Reader) error {
	var writing sync.WaitGroup
	writing.Go(func() { _ = c.out.Run() }) // a client that is gone also ends in
	ctx, cancel := context.WithCancel(ctx)
	err := c.read(ctx, in)
	late := time.AfterFunc(drainTime, cancel)
	c.running.Wait()
	late.Stop()
	cancel()
	c.out.Close()
	writing.Wait()
	return err
}

func (c *conversation) read(ctx context.Context, in io.Reader) error {
	lines := jsonrpc.NewReader(in, maxMessage)
	for {
		line, err := lines.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, jsonrpc.ErrTooLong):
			c.send(jsonrpc.AppendError(nil, nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "message over %d bytes", maxMessage)))
		case err != nil:
			return fmt.Errorf("reading from the client: %w", err)
		default:
			c.accept(ctx, line)
		}
	}
}

// accept handles one message. It does not wait for the request in it.
func (c *conversation) accept(ctx context.Context, line []byte) {
	m, err := jsonrpc.ParseStrict(line)
	var wrong *jsonrpc.Error
	switch {
	case errors.As(err, &wrong):
		c.send(jsonrpc.AppendError(nil, m.ID, wrong))
	case m.IsResponse():
		c.replied(m)
	case m.IsNotification():
		if m.Method == "notifications/cancelled" {
			c.cancel(string(rawjson.Get(m.Params, "requestId")))
		}
	default:
		c.start(ctx, m)
	}
}

// start runs a request in a goroutine of its own.
func (c *conversation) start(ctx context.Context, m jsonrpc.Message) {
	ctx, cancel := context.WithCancel(ctx)
	id := string(m.ID)
	if err := c.add(id, cancel); err != nil {
		cancel()
		c.send(jsonrpc.AppendError(nil, m.ID, err))
		return
	}
	c.running.Go(func() {
		defer c.remove(id)
		response := c.respond(ctx, m)
		if ctx.Err() == nil { // a canceled request gets no response
			c.send(response)
		}
	})
}

// add registers a running request.
func (c *conversation) add(id string, cancel context.CancelFunc) *jsonrpc.Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.requests[id] != nil:
		return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "a request with the id %s is running", id)
	case len(c.requests) >= maxRequests:
		return jsonrpc.Errorf(jsonrpc.CodeServer, "more than %d requests at a time; wait for one to finish", maxRequests)
	}
	c.requests[id] = cancel
	return nil
}

// cancel cancels a running request of the client.
func (c *conversation) cancel(id string) {
	c.mu.Lock()
	cancel := c.requests[id]
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// remove unregisters a request that has ended.
func (c *conversation) remove(id string) {
	c.cancel(id)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.requests, id)
}

// send writes one message. If that fails, the client is gone, and reading ends too.
func (c *conversation) send(message []byte) { _ = c.out.Push(message) }

// request sends the client a request and waits for the reply. If ctx ends first,
// the request is canceled.
func (c *conversation) request(ctx context.Context, method string, params []byte) (reply, error) {
	replies := make(chan reply, 1)
	c.mu.Lock()
	c.lastID++
	id := fmt.Sprintf(`"demo-%d"`, c.lastID)
	c.sent[id] = replies
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.sent, id)
		c.mu.Unlock()
	}()
	c.send(jsonrpc.AppendRequest(nil, []byte(id), method, params))
	select {
	case r := <-replies:
		return r, nil
	case <-ctx.Done():
		c.send(jsonrpc.AppendNotification(nil, "notifications/cancelled", []byte(`{"requestId":`+id+`}`)))
		return reply{}, ctx.Err()
	}
}

// replied passes a response to the goroutine that waits for it.
func (c *conversation) replied(m jsonrpc.Message) {
	c.mu.Lock()
	waiting := c.sent[string(m.ID)]
	delete(c.sent, string(m.ID))
	c.mu.Unlock()
	if waiting != nil {
		waiting <- reply{result: m.Result, failure: m.Error}
	}
}

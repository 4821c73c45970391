package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"mcpx/internal/rpc"

	"github.com/rs/zerolog"
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
	rpc.BasicHandler
	conn    *rpc.Conn
	out     *rpc.Writer
	running sync.WaitGroup // requests
	elicits atomic.Bool    // the client supports elicitation
}

// serve implements Serve.
func (s *server) serve(ctx context.Context, in io.Reader, out io.Writer) error {
	c := &conversation{server: s, out: rpc.NewWriter(out, maxUnread)}
	c.conn = rpc.NewConn(rpc.ConnOptions{Handler: c, Send: c.out.Push, Prefix: "demo-", Log: zerolog.Nop()})
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
	lines := rpc.NewReader(in, maxMessage)
	for {
		line, err := lines.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, rpc.ErrTooLong):
			c.send(rpc.AppendError(nil, nil, rpc.Errorf(rpc.CodeInvalidRequest, "message over %d bytes", maxMessage)))
		case err != nil:
			return fmt.Errorf("reading from the client: %w", err)
		default:
			c.accept(ctx, line)
		}
	}
}

// accept handles one message. It does not wait for the request in it.
func (c *conversation) accept(ctx context.Context, line []byte) {
	m, err := rpc.ParseStrict(line)
	wrong, isWrong := errors.AsType[*rpc.Error](err)
	switch {
	case isWrong:
		c.send(rpc.AppendError(nil, m.ID, wrong))
	case !c.conn.Receive(m, line) && m.IsRequest():
		c.start(ctx, m)
	}
}

// start runs a request in a goroutine of its own.
func (c *conversation) start(ctx context.Context, m rpc.Message) {
	in, err := c.conn.Begin(ctx, m.ID, maxRequests)
	if err != nil {
		c.send(rpc.AppendError(nil, m.ID, rpc.Errorf(rpc.CodeServer, "more than %d requests at a time; wait for one to finish", maxRequests)))
		return
	}
	c.running.Go(func() {
		defer in.End()
		response := c.respond(in, m)
		if in.Err() == nil { // a canceled request gets no response
			c.send(response)
		}
	})
}

// send writes one message. If that fails, the client is gone, and reading ends too.
func (c *conversation) send(message []byte) { _ = c.out.Push(message) }

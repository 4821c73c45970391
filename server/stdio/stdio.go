// Package stdio has the front for one client on a pair of pipes. It reads messages line by
// line, hands them to a server.Server, and writes the responses. It bounds what the client
// may have pending or leave unread.
package stdio

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"time"

	"mcpx/config"
	"mcpx/internal/rpc"
	"mcpx/internal/tasks"
	"mcpx/internal/unread"
	"mcpx/server"
)

// Front serves one client on a pair of pipes. It does not use mcp-go's loop, which runs
// five calls at a time, reorders and drops notifications, and reads IDs as floats.
type Front struct {
	Server  *server.Server
	In      io.Reader
	Out     io.Writer
	Limits  config.Limits // if UnreadBytes is 0, it is MessageBytes
	Timeout time.Duration // of a request; 0: only the upstream's own limits
	Freed   func()        // called whenever much memory of unread responses was freed; may be nil
}

// stdoutBytes is the size of the pipe to the client.
const stdoutBytes = 1 << 20

// Run serves until the input ends, the client sends notifications/exit, or ctx ends.
// Unfinished calls then have server.DrainTime to finish before they are canceled. Run does
// not wait for a read that blocks on the pipe; that goroutine ends with the process.
func (f *Front) Run(ctx context.Context) error {
	if pipe, ok := f.Out.(*os.File); ok {
		rpc.Widen(pipe, stdoutBytes)
	}
	unreadBytes := cmp.Or(f.Limits.UnreadBytes, f.Limits.MessageBytes)
	out := rpc.NewWriter(f.Out, unreadBytes)
	var writeErr error
	written := make(chan struct{})
	go func() {
		defer close(written)
		writeErr = out.Run()
	}()

	c := &run{Front: f, out: out, client: f.Server.NewClient("stdio", out.Send)}
	c.client.Quota, c.client.Timeout = server.NewQuota(f.Limits.CallsPerClient, 0), f.Timeout
	budget := unread.NewBudget(unreadBytes)
	budget.Log, budget.Freed = f.Server.Log, f.Freed
	c.unread = overflow{
		account: budget.NewAccount(0, c.client.Quota.AddUnread),
		write:   c.send,
		written: c.finish,
	}
	f.Server.Attach(c.client)
	ended := make(chan error, 1)
	go func() { ended <- c.read() }()

	var err error
	select {
	case err = <-ended:
	case <-written:
	case <-ctx.Done():
	}
	c.client.End()
	c.drain()
	out.Close()
	select {
	case <-written:
	case <-time.After(server.CancelTime): // the client does not read
		return err
	}
	return errors.Join(err, writeErr)
}

// run is one run of the front.
type run struct {
	*Front
	client  *server.Client
	out     *rpc.Writer
	pending tasks.Group // requests without a response
	unread  overflow    // responses that out has no room for
}

// drain waits until no requests are pending. After server.DrainTime it cancels them.
func (c *run) drain() {
	idle := make(chan struct{})
	go func() { // ends with the last request, perhaps after Run
		defer close(idle)
		c.pending.Close()
	}()
	select {
	case <-idle:
		return
	case <-time.After(server.DrainTime):
	}
	c.client.Conn.Close(server.ErrStopping)
	select {
	case <-idle:
	case <-time.After(server.CancelTime):
	}
}

// read handles the client's messages until the input ends.
func (c *run) read() error {
	lines := rpc.NewReader(c.In, c.Limits.MessageBytes)
	for {
		line, err := lines.Read()
		switch {
		case errors.Is(err, rpc.ErrTooLong):
			// Skip before the response: the client may read only after it has written the whole
			// line. If Skip fails, the next Read returns the same error.
			_ = lines.Skip()
			c.send(rpc.AppendError(nil, nil, rpc.Errorf(rpc.CodeInvalidRequest, "Invalid request: a message is at most %d bytes (limits.message_bytes)", c.Limits.MessageBytes)))
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		c.handle(server.Read(line))
		if c.client.Exited.Load() {
			return nil
		}
	}
}

// handle handles a message. Requests run concurrently. Those that the quota has no room for
// are queued, because a response that a pending call needs may follow. While the queue is
// full, handle waits. Once the front stops, it drops requests and invalid messages.
func (c *run) handle(p server.Inbound) {
	switch {
	case !p.IsAnswered():
		c.Server.Handle(context.Background(), c.client, p, nil)
	case !c.pending.Add(): // the front stops
	case !p.IsRequest():
		c.Server.Handle(context.Background(), c.client, p, c.send)
		c.pending.Done()
	case !c.client.Quota.WaitToEnter(c.client.Conn.Context(), p.Size()): // the calls were canceled
		c.pending.Done()
	default:
		request, start := c.Server.Accept(context.Background(), c.client, p)
		c.client.Quota.Start(request, p.Size(), start, c.respond)
	}
}

// finish ends a request.
func (c *run) finish() {
	c.client.Quota.Release()
	c.pending.Done()
}

// send writes a message, if it is not nil. It may wait.
func (c *run) send(message []byte) {
	if message == nil {
		return
	}
	if err := c.out.Push(message); err != nil {
		c.Server.Log.Debug().Err(err).Msg("could not write a response")
	}
}

// respond sends the response to a request and ends the request. It never waits for the
// client.
func (c *run) respond(response []byte) {
	if response == nil || c.unread.isEmpty() && !errors.Is(c.out.Send(response), rpc.ErrFull) {
		c.finish()
		return
	}
	c.unread.add(response)
}

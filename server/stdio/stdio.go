// Package stdio has the front for one client on a pair of pipes. It reads messages line by
// line, hands them to a server.Server, and writes the responses. It bounds what the client
// may have pending or leave unread.
package stdio

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/internal/tasks"
	"mcpx/server"
)

// Front serves one client on a pair of pipes. It does not use mcp-go's loop, which runs
// five calls at a time, reorders and drops notifications, and reads IDs as floats.
type Front struct {
	Server       *server.Server
	In           io.Reader
	Out          io.Writer
	MessageBytes int           // limit of a line
	Calls        int           // limit of unfinished calls; 0: no limit
	UnreadBytes  int           // limit of unread output; 0: MessageBytes
	Timeout      time.Duration // of a request; 0: only the upstream's own limits
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
	out := rpc.NewWriter(f.Out, cmp.Or(f.UnreadBytes, f.MessageBytes))
	var writeErr error
	written := make(chan struct{})
	go func() {
		defer close(written)
		writeErr = out.Run()
	}()

	calls, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	c := &run{Front: f, ctx: calls, out: out, quota: server.NewQuota(f.Calls, 0), backlog: newBacklog()}
	c.client = f.Server.NewClient("stdio", out.Send)
	c.client.Quota = c.quota
	f.Server.Attach(c.client)
	ended := make(chan error, 1)
	go func() { ended <- c.read() }()
	dispatched := make(chan struct{})
	go func() {
		defer close(dispatched)
		c.dispatch()
	}()

	var err error
	select {
	case err = <-ended:
	case <-written:
	case <-ctx.Done():
	}
	c.client.End()
	c.drain(cancel)
	out.Close()
	c.backlog.close()
	last := time.After(server.CancelTime)
	for _, ended := range []chan struct{}{dispatched, written} {
		select {
		case <-ended:
		case <-last: // the client does not read
			return err
		}
	}
	return errors.Join(err, writeErr)
}

// run is one run of the front.
type run struct {
	*Front
	ctx     context.Context // canceled after server.DrainTime
	client  *server.Client
	out     *rpc.Writer
	pending tasks.Group // requests without a response
	quota   *server.Quota
	backlog *backlog
}

// drain waits until no requests are pending. After server.DrainTime it cancels them.
func (c *run) drain(cancel context.CancelCauseFunc) {
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
	cancel(server.ErrStopping)
	c.client.Conn.CancelIncoming(server.ErrStopping)
	select {
	case <-idle:
	case <-time.After(server.CancelTime):
	}
}

// read handles the client's messages until the input ends. Once the front stops, it
// handles no more requests. Requests run concurrently. While the backlog is full, read
// pauses.
func (c *run) read() error {
	lines := rpc.NewReader(c.In, c.MessageBytes)
	for {
		line, err := lines.Read()
		switch {
		case errors.Is(err, rpc.ErrTooLong):
			// Skip before the response: the client may read only after it has written the whole
			// line. If Skip fails, the next Read returns the same error.
			_ = lines.Skip()
			c.send(rpc.AppendError(nil, nil, rpc.Errorf(rpc.CodeInvalidRequest, "Invalid request: a message is at most %d bytes (limits.message_bytes)", c.MessageBytes)))
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		p := server.Read(line)
		if !c.pending.Add() {
			c.handleLate(p)
			continue
		}
		switch {
		case !p.IsRequest():
			c.handleOther(p)
			c.pending.Done()
		case c.backlog.isEmpty() && c.quota.TryAcquire():
			c.begin(p)
		default:
			c.backlog.add(p)
		}
		if c.client.Exited.Load() {
			return nil
		}
	}
}

// handleOther handles notifications, responses and invalid messages.
func (c *run) handleOther(p server.Inbound) {
	if c.unqueue(p) {
		return
	}
	c.Server.Handle(c.ctx, c.client, p, c.send)
}

// unqueue removes the request that p cancels from the backlog; false if there is none.
func (c *run) unqueue(p server.Inbound) bool {
	if p.Err != nil || p.Message.Method != "notifications/cancelled" || !c.backlog.cancel(rawjson.Get(p.Message.Params, "requestId")) {
		return false
	}
	c.pending.Done()
	return true
}

// dispatch begins the requests of the backlog when the quota has room for them.
func (c *run) dispatch() {
	for c.backlog.wait() {
		err := c.quota.Acquire(c.ctx, 0)
		p, ok := c.backlog.pop()
		switch {
		case !ok && err == nil: // the request was canceled meanwhile
			c.quota.Release()
		case ok && err == nil:
			c.begin(p)
		case ok:
			c.send(rpc.AppendError(nil, p.Message.ID, server.WireError(err)))
			c.pending.Done()
		}
		c.backlog.started()
	}
}

// begin starts a request that is counted in pending and in the quota.
func (c *run) begin(p server.Inbound) {
	ctx, cancel := c.requestContext()
	c.Server.Handle(ctx, c.client, p, func(response []byte) {
		cancel()
		c.respond(response)
	})
	if c.ctx.Err() != nil { // drain has cancelled the others meanwhile
		c.client.Conn.CancelIncoming(context.Cause(c.ctx))
	}
}

// finish ends a request.
func (c *run) finish() {
	c.quota.Release()
	c.pending.Done()
}

// handleLate handles a message that arrives while the front stops. It drops requests and
// invalid messages.
func (c *run) handleLate(p server.Inbound) {
	if c.unqueue(p) {
		return
	}
	if p.Err == nil && !p.Message.IsRequest() {
		c.Server.Handle(context.Background(), c.client, p, c.send)
	}
}

// requestContext returns the context of one request, with the front's timeout if it has
// one.
func (c *run) requestContext() (context.Context, context.CancelFunc) {
	if c.Timeout == 0 { // drain cancels the requests one by one
		return context.Background(), func() {}
	}
	return context.WithTimeoutCause(c.ctx, c.Timeout, fmt.Errorf("no answer within %s (cli.stdio.timeout); the call was cancelled", c.Timeout))
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

// respond sends the response to a request and ends the request. It never waits: if the
// client does not read, a goroutine waits.
func (c *run) respond(response []byte) {
	if response == nil || !errors.Is(c.out.Send(response), rpc.ErrFull) {
		c.finish()
		return
	}
	release := c.quota.Hold(response)
	go func() {
		defer c.finish()
		defer release()
		c.send(response)
	}()
}

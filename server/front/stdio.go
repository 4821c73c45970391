package front

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"mcpx/internal/jsonrpc"
	"mcpx/internal/rawjson"
	"mcpx/server"
)

// Stdio is the front for one client on a pair of pipes. mcp-go's loop is not used: it
// runs five calls at a time, reorders and drops notifications, and reads IDs as
// floats.
type Stdio struct {
	Server       *server.Server
	In           io.Reader
	Out          io.Writer
	MessageBytes int           // the longest line it takes
	Calls        int           // in flight at a time; 0: no limit
	UnreadBytes  int           // how much the client may leave unread; 0: MessageBytes
	Timeout      time.Duration // of a request; 0: only the upstream's own limits
}

// Times of a front that stops. Upstreams need four more seconds; all of it takes ten
// at most.
const (
	drainTime = 5 * time.Second        // for calls in flight to finish
	lastTime  = 500 * time.Millisecond // for cancelled calls to end
)

// stdoutBytes is the size of the pipe to the client.
const stdoutBytes = 1 << 20

// Run serves until the input ends, the client sends notifications/exit, or ctx ends.
// Calls in flight then have drainTime to finish before they are cancelled. A reader
// that blocks on its pipe is left behind; it ends with the process.
func (f *Stdio) Run(ctx context.Context) error {
	if pipe, ok := f.Out.(*os.File); ok {
		jsonrpc.Widen(pipe, stdoutBytes)
	}
	out := jsonrpc.NewWriter(f.Out, cmp.Or(f.UnreadBytes, f.MessageBytes))
	var writeErr error
	written := make(chan struct{})
	go func() {
		defer close(written)
		writeErr = out.Run()
	}()

	calls, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	c := &stdioRun{Stdio: f, ctx: calls, out: out, running: newRunning(), quota: server.NewQuota(f.Calls, 0), backlog: newBacklog()}
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
	drain(c.running, func(cause error) {
		cancel(cause)
		c.client.Conn.CancelIncoming(cause)
	})
	out.Close()
	c.backlog.close()
	last := time.After(lastTime)
	for _, ended := range []chan struct{}{dispatched, written} {
		select {
		case <-ended:
		case <-last: // the client does not read
			return err
		}
	}
	return errors.Join(err, writeErr)
}

// drain waits for the calls in flight and cancels them when time is up.
func drain(r *running, cancel func(cause error)) {
	r.end()
	select {
	case <-r.idle:
		return
	case <-time.After(drainTime):
	}
	cancel(errStopping)
	select {
	case <-r.idle:
	case <-time.After(lastTime):
	}
}

// running counts unanswered requests. Unlike a WaitGroup it may grow while somebody
// waits for the end.
type running struct {
	idle chan struct{} // closed after end, when no request is left

	mu    sync.Mutex
	n     int
	ended bool
}

func newRunning() *running { return &running{idle: make(chan struct{})} }

// add counts one more; false after end.
func (r *running) add() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		r.n++
	}
	return !r.ended
}

// done counts one less.
func (r *running) done() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n--
	if r.ended && r.n == 0 {
		close(r.idle)
	}
}

// end lets no more requests begin.
func (r *running) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	if r.n == 0 {
		close(r.idle)
	}
}

// errStopping is the cause of the end of calls that outlast the front.
var errStopping = errors.New("mcpx is stopping; the call was cancelled")

// stdioRun is one run of the front.
type stdioRun struct {
	*Stdio
	ctx     context.Context // ends after the drain time
	client  *server.Client
	out     *jsonrpc.Writer
	running *running
	quota   *server.Quota
	backlog *backlog
}

// read handles the client's messages until the input ends, requests only until the
// front stops. No request waits for another. When too many are in flight, or the
// client does not read the answers, read pauses.
func (c *stdioRun) read() error {
	lines := jsonrpc.NewReader(c.In, c.MessageBytes)
	for {
		line, err := lines.Read()
		switch {
		case errors.Is(err, jsonrpc.ErrTooLong):
			_ = lines.Skip() // a client may write all of it before it reads; the next Read returns the error
			c.send(jsonrpc.AppendError(nil, nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "Invalid request: a message is at most %d bytes (limits.message_bytes)", c.MessageBytes)))
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		p := server.Read(line)
		if !c.running.add() {
			c.late(p)
			continue
		}
		switch {
		case !p.IsRequest():
			c.notified(p)
			c.running.done()
		case c.backlog.isEmpty() && c.quota.Enter():
			c.begin(p)
		default:
			c.backlog.add(p)
		}
		if c.client.HasExited() {
			return nil
		}
	}
}

// notified handles notifications, responses and invalid messages.
func (c *stdioRun) notified(p server.Inbound) {
	if c.unqueue(p) {
		return
	}
	c.Server.Handle(c.ctx, c.client, p, c.send)
}

// unqueue cancels a request of the backlog; false if p does not cancel one.
func (c *stdioRun) unqueue(p server.Inbound) bool {
	if p.Err != nil || p.Message.Method != "notifications/cancelled" || !c.backlog.cancel(rawjson.Get(p.Message.Params, "requestId")) {
		return false
	}
	c.running.done()
	return true
}

// dispatch begins the requests of the backlog as there is room for them.
func (c *stdioRun) dispatch() {
	for c.backlog.wait() {
		err := c.quota.Wait(c.ctx, 0)
		p, ok := c.backlog.pop()
		switch {
		case !ok && err == nil: // it was cancelled meanwhile
			c.quota.Leave()
		case ok && err == nil:
			c.begin(p)
		case ok:
			c.send(jsonrpc.AppendError(nil, p.Message.ID, server.WireError(err)))
			c.running.done()
		}
		c.backlog.started()
	}
}

// begin starts a request that is counted and has entered the quota.
func (c *stdioRun) begin(p server.Inbound) {
	ctx, cancel := c.limit()
	c.Server.Handle(ctx, c.client, p, func(answer []byte) {
		cancel()
		c.reply(answer)
	})
	if c.ctx.Err() != nil { // drain has cancelled the others meanwhile
		c.client.Conn.CancelIncoming(context.Cause(c.ctx))
	}
}

// finish ends a request.
func (c *stdioRun) finish() {
	c.quota.Leave()
	c.running.done()
}

// late handles messages that arrive during shutdown: responses and cancellations
// only.
func (c *stdioRun) late(p server.Inbound) {
	if c.unqueue(p) {
		return
	}
	if p.Err == nil && !p.Message.IsRequest() {
		c.Server.Handle(context.Background(), c.client, p, c.send)
	}
}

// limit returns the context of one request, with the front's own limit if it has
// one.
func (c *stdioRun) limit() (context.Context, context.CancelFunc) {
	if c.Timeout == 0 { // drain cancels the requests one by one
		return context.Background(), func() {}
	}
	return context.WithTimeoutCause(c.ctx, c.Timeout, fmt.Errorf("no answer within %s (cli.stdio.timeout); the call was cancelled", c.Timeout))
}

func (c *stdioRun) send(message []byte) {
	if message == nil {
		return
	}
	if err := c.out.Push(message); err != nil {
		c.Server.Log().Debug().Err(err).Msg("an answer could not be written")
	}
}

// reply sends the answer of a request and ends the request. It never waits: if the
// client does not read, a goroutine does.
func (c *stdioRun) reply(answer []byte) {
	if answer == nil || !errors.Is(c.out.Send(answer), jsonrpc.ErrFull) {
		c.finish()
		return
	}
	release := c.quota.Hold(answer)
	go func() {
		defer c.finish()
		defer release()
		c.send(answer)
	}()
}

package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"mcpx/internal/jsonrpc"
)

// Stdio is the front for one client on a pair of pipes. mcp-go's own loop is
// not used: it runs five calls at a time, reorders and drops notifications, and
// reads ids as floats.
type Stdio struct {
	Server       *Server
	In           io.Reader
	Out          io.Writer
	MessageBytes int           // the longest line it takes
	Timeout      time.Duration // of a request; 0: only the upstream's own limits
}

// What a front that ends gives: upstreams need four more seconds to stop, and all
// of it is to take ten at most.
const (
	drainTime = 5 * time.Second        // to calls in flight, to be answered
	lastTime  = 500 * time.Millisecond // to those that are then cancelled
)

// stdoutBytes is what the client may leave unread before mcpx has to wait.
const stdoutBytes = 1 << 20

// Run serves until the input ends, the client asks for the exit, or ctx ends.
// Calls in flight then have a while to finish before they are cancelled. The
// reader of a pipe that never ends is left behind: only the end of the process
// ends it.
func (f *Stdio) Run(ctx context.Context) error {
	if pipe, ok := f.Out.(*os.File); ok {
		jsonrpc.Widen(pipe, stdoutBytes)
	}
	out := jsonrpc.NewWriter(f.Out, f.MessageBytes)
	var writeErr error
	written := make(chan struct{})
	go func() {
		defer close(written)
		writeErr = out.Run()
	}()

	calls, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	running := newRunning()
	client := f.Server.NewClient("stdio", out.Send)
	f.Server.registry.Attach(client)
	ended := make(chan error, 1)
	go func() { ended <- f.read(calls, out, client, running) }()

	var err error
	select {
	case err = <-ended:
	case <-written:
	case <-ctx.Done():
	}
	client.end()
	drain(running, func(cause error) {
		cancel(cause)
		client.cancelAll(cause)
	})
	out.Close()
	select {
	case <-written:
		return errors.Join(err, writeErr)
	case <-time.After(lastTime): // the client does not read; nothing more can be told to it
		return err
	}
}

// drain waits for the calls in flight, and cancels them when time is up.
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

// running counts the requests in flight. A WaitGroup would not do: more may come
// while the end is waited for. The goroutine of a request that is over takes the
// next one: its stack has grown to what a request needs, which costs a new one a
// fifth of its time.
type running struct {
	idle chan struct{} // closed when the end has come and none is left
	next chan func()   // to a goroutine that has nothing to do

	mu    sync.Mutex
	n     int
	spare int // goroutines that have nothing to do
	ended bool
}

func newRunning() *running { return &running{idle: make(chan struct{}), next: make(chan func())} }

// add counts one more; false if the end has come.
func (r *running) add() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		r.n++
	}
	return !r.ended
}

// done takes one off.
func (r *running) done() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n--
	if r.ended && r.n == 0 {
		close(r.idle)
	}
}

// run runs a request that was counted, in a goroutine of its own.
func (r *running) run(request func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.spare == 0 {
		go r.work(request)
		return
	}
	r.spare--
	r.next <- request
}

// work runs requests for as long as it is wanted.
func (r *running) work(request func()) {
	for wanted := true; wanted; {
		request()
		r.done()
		if wanted = r.wait(); wanted {
			request = <-r.next
			wanted = request != nil
		}
	}
}

// maxSpare is how many goroutines wait for another request.
const maxSpare = 64

// wait reports whether a goroutine is to wait for another request.
func (r *running) wait() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended || r.spare == maxSpare {
		return false
	}
	r.spare++
	return true
}

// end lets no more requests begin.
func (r *running) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	for range r.spare {
		r.next <- nil
	}
	r.spare = 0
	if r.n == 0 {
		close(r.idle)
	}
}

// errStopping is the cause of the end of calls that outlast the front.
var errStopping = errors.New("mcpx is stopping; the call was cancelled")

// read takes the client's messages until they end, requests only until the front
// does. Each request is answered by a goroutine of its own, so that none waits for
// another.
func (f *Stdio) read(ctx context.Context, out *jsonrpc.Writer, client *Client, r *running) error {
	lines := jsonrpc.NewReader(f.In, f.MessageBytes)
	var reply func(answer []byte)
	if f.Timeout == 0 { // what comes by itself has no limit but the upstream's
		reply = func(answer []byte) { f.reply(out, answer, r.done) }
	}
	for {
		line, err := lines.Read()
		switch {
		case errors.Is(err, jsonrpc.ErrTooLong):
			_ = lines.Skip() // a client may write all of it before it reads; Read has the error
			f.send(out, jsonrpc.AppendError(nil, nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "Invalid request: a message is at most %d bytes (limits.message_bytes)", f.MessageBytes)))
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if !r.add() {
			f.late(client, line)
			continue
		}
		request, cancel := f.limit(ctx)
		answer, due := f.Server.acceptText(request, client, line, reply)
		switch {
		case client.exited():
			cancel()
			r.done()
			return nil
		case due == begun:
			cancel()
		case due == later:
			r.run(func() {
				defer cancel()
				f.send(out, answer())
			})
		default:
			if answer != nil {
				f.send(out, answer())
			}
			cancel()
			r.done()
		}
	}
}

// late takes what comes when no more requests begin: calls in flight may wait for
// an answer of the client, or be cancelled by it.
func (f *Stdio) late(client *Client, line []byte) {
	if m, err := jsonrpc.ParseStrict(line); err == nil && !m.IsRequest() {
		f.Server.Accept(context.Background(), client, m)
	}
}

// limit is the context of one request: within the front's own limit if it has
// one.
func (f *Stdio) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if f.Timeout == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, f.Timeout, fmt.Errorf("no answer within %s (cli.stdio.timeout); the call was cancelled", f.Timeout))
}

func (f *Stdio) send(out *jsonrpc.Writer, message []byte) {
	if message == nil {
		return
	}
	if err := out.Push(message); err != nil {
		f.Server.log.Debug().Err(err).Msg("an answer could not be written")
	}
}

// reply is send for those who must not wait: if the client does not read, it is
// waited for elsewhere.
func (f *Stdio) reply(out *jsonrpc.Writer, message []byte, done func()) {
	if message == nil || !errors.Is(out.Send(message), jsonrpc.ErrFull) {
		done()
		return
	}
	go func() {
		defer done()
		f.send(out, message)
	}()
}

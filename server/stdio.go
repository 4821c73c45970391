package server

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// drainTime is what calls in flight get to be answered when the front ends.
const drainTime = 5 * time.Second

// Run serves until the input ends, the client asks for the exit, or ctx ends.
// Calls in flight then have a while to finish before they are cancelled. The
// reader of a pipe that never ends is left behind: only the end of the process
// ends it.
func (f *Stdio) Run(ctx context.Context) error {
	out := jsonrpc.NewWriter(f.Out, f.MessageBytes)
	written := make(chan error, 1)
	go func() { written <- out.Run() }()

	calls, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	var inFlight sync.WaitGroup
	ended := make(chan error, 1)
	go func() { ended <- f.read(calls, out, &inFlight) }()

	var err error
	select {
	case err = <-ended:
	case err = <-written:
	case <-ctx.Done():
	}
	f.drain(&inFlight, cancel)
	out.Close()
	select {
	case werr := <-written:
		err = errors.Join(err, werr)
	case <-time.After(time.Second): // the client does not read; nothing more can be told to it
	}
	return err
}

// drain waits for the calls in flight, and cancels them when time is up.
func (f *Stdio) drain(inFlight *sync.WaitGroup, cancel context.CancelCauseFunc) {
	done := make(chan struct{})
	go func() {
		inFlight.Wait()
		close(done)
	}()
	select {
	case <-done:
		return
	case <-time.After(drainTime):
	}
	cancel(errStopping)
	select {
	case <-done:
	case <-time.After(time.Second):
	}
}

// errStopping is the cause of the end of calls that outlast the front.
var errStopping = errors.New("mcpx is stopping; the call was cancelled")

// read takes the client's messages until they end. Each request is answered by
// a goroutine of its own, so that none waits for another; notifications and
// initialize are handled at once, since what follows builds on them.
func (f *Stdio) read(ctx context.Context, out *jsonrpc.Writer, inFlight *sync.WaitGroup) error {
	client := f.Server.NewClient("stdio", out.Send)
	f.Server.registry.Attach(client)
	lines := jsonrpc.NewReader(f.In, f.MessageBytes)
	for {
		line, err := lines.Read()
		switch {
		case errors.Is(err, jsonrpc.ErrTooLong):
			f.send(out, jsonrpc.AppendError(nil, nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "Invalid request: a message is at most %d bytes (limits.message_bytes)", f.MessageBytes)))
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		m, err := jsonrpc.Parse(line)
		if err != nil {
			f.send(out, jsonrpc.AppendError(nil, m.ID, wireError(err)))
			continue
		}
		switch {
		case m.IsNotification() && m.Method == "notifications/exit":
			return nil
		case m.IsRequest() && m.Method != "initialize":
			inFlight.Go(func() { f.answer(ctx, out, client, m) })
		default:
			f.send(out, f.Server.Handle(ctx, client, m))
		}
	}
}

// answer answers one request, within the front's own limit if it has one.
func (f *Stdio) answer(ctx context.Context, out *jsonrpc.Writer, client *Client, m jsonrpc.Message) {
	if f.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, f.Timeout, fmt.Errorf("no answer within %s (cli.stdio.timeout); the call was cancelled", f.Timeout))
		defer cancel()
	}
	f.send(out, f.Server.Handle(ctx, client, m))
}

func (f *Stdio) send(out *jsonrpc.Writer, message []byte) {
	if message == nil {
		return
	}
	if err := out.Push(message); err != nil {
		f.Server.log.Debug().Err(err).Msg("an answer could not be written")
	}
}

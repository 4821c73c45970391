package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/registry/child"
)

// stdioLink is the Link to a child over its stdin and stdout.
type stdioLink struct {
	Options
	process *child.Process
	in      *rpc.Writer
	out     *rpc.Reader
	memory  *reservation // for the message that is being read
	stdin   *os.File
	stdout  *os.File
	stderr  *child.Stderr
	spoke   bool   // it has sent a message; only Run uses it
	stray   string // its first line that is not a message, redacted; only Run uses it
	cancel  context.CancelFunc
	closing sync.Once
}

// exitTime is how long a child that has closed its stdout may take to exit.
const exitTime = 500 * time.Millisecond

// stdoutBytes is the size of the pipe from a child. Linux allows a user 64 MiB of pipes,
// which must be enough for a hundred servers.
const stdoutBytes = 256 << 10

func dialStdio(_ context.Context, o Options) (Link, error) {
	ours, theirs, err := openPipes()
	if err != nil {
		return nil, fmt.Errorf("pipes: %w", err)
	}
	stdin, stdout, stderr := ours[0], ours[1], ours[2]
	p, err := child.Start(o.Upstream, o.Watcher, theirs)
	closeAll(theirs) // the child has its own copies
	if err != nil {
		closeAll(ours)
		return nil, startFailure(err)
	}
	if p.Warning != "" {
		o.Log.Warn().Str("reason", p.Warning).Msg("the server runs without a sandbox")
	}
	rpc.Widen(stdout, stdoutBytes)
	l := &stdioLink{
		Options: o,
		process: p,
		in:      rpc.NewWriter(stdin, o.MessageBytes),
		out:     rpc.NewReader(stdout, o.MessageBytes),
		stdin:   stdin,
		stdout:  stdout,
		stderr:  child.NewStderr(stderr, o.Upstream.Redact, o.Log),
	}
	if o.Stderr != nil {
		o.Stderr.Store(l.stderr)
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.memory, l.cancel = o.Intake.reserve(ctx), cancel
	l.out.Reserve = l.memory.grow
	go l.stderr.Drain()
	go func() {
		if err := l.in.Run(); err != nil {
			// The child closed its stdin. A server that reads nothing is useless, even if its process lives.
			_ = l.stdout.SetReadDeadline(time.Now().Add(child.DrainTime))
		}
		_ = l.stdin.Close()
	}()
	go func() {
		<-p.Exited
		_ = l.stdout.SetReadDeadline(time.Now().Add(child.DrainTime))
		l.stderr.Stop(child.DrainTime)
	}()
	return l, nil
}

// startFailure returns the Failure for a child that could not be started.
func startFailure(err error) error {
	var e *child.Error
	if !errors.As(err, &e) {
		return err
	}
	cause := CauseCommand
	if e.IsConfig {
		cause = CauseConfig
	}
	return &Failure{Reason: e.Reason, Cause: cause}
}

// Send implements Link.
func (l *stdioLink) Send(message []byte) error {
	err := l.in.Send(message)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, rpc.ErrFull):
		return &Failure{Reason: "the call was not sent: the server does not read its input", Stderr: l.stderr.Lines()}
	}
	return rpc.ErrClosed
}

// Run implements Link.
func (l *stdioLink) Run(receive func(Delivery)) error {
	for {
		line, err := l.out.Read()
		if err != nil {
			l.memory.release() // of an unfinished message
		}
		switch {
		case errors.Is(err, rpc.ErrTooLong):
			return &Failure{Reason: fmt.Sprintf("sent a message of more than %d bytes (limits.message_bytes)", l.MessageBytes)}
		case err != nil:
			return l.ended(err)
		case l.out.Partial() && rawjson.Check(line) != nil: // it died in the middle of a line
			return l.ended(io.EOF)
		case line[0] == '{':
			l.spoke = true
			receive(Delivery{Line: rpc.Line{Text: line, Room: l.memory.pass()}})
			continue
		}
		l.memory.release()
		if l.stray == "" {
			l.stray = Excerpt(l.Upstream.Redact, line)
			l.Log.Warn().Msg("the server writes text that is not a message to its stdout; such lines are skipped")
		}
		l.Log.Debug().Func(func(e *zerolog.Event) { e.Str("line", Excerpt(l.Upstream.Redact, line)) }).Msg("skipped a line")
	}
}

// ended returns why no more messages come.
func (l *stdioLink) ended(err error) error {
	select {
	case <-l.process.Exited:
	case <-time.After(exitTime):
	}
	select {
	case <-l.process.Exited: // also if both were ready
		l.stderr.Wait()
		return &Failure{Cause: CauseExit, Reason: l.process.Status() + l.instead(), Stderr: l.stderr.Lines(), Instead: l.instead()}
	default:
	}
	reason := "closed its stdout but did not exit"
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		reason = "closed its stdin but did not exit"
	case !errors.Is(err, io.EOF):
		reason = "its stdout could not be read: " + err.Error()
	}
	return &Failure{Reason: reason + l.instead(), Stderr: l.stderr.Lines(), Instead: l.instead()}
}

// instead returns the end of a reason: what a child that never sent a message wrote to
// its stdout. Often it is the error that the child ended with.
func (l *stdioLink) instead() string {
	if l.spoke || l.stray == "" {
		return ""
	}
	return `; it wrote "` + l.stray + `" to its stdout instead of a message`
}

// Close implements Link.
func (l *stdioLink) Close() { l.closing.Do(l.shut) }

// shut stops the child and everything it started.
func (l *stdioLink) shut() {
	l.process.FindDescendants()
	l.in.Close() // closes the child's stdin once everything queued is written
	l.process.Stop(func() { _ = l.stdin.Close() })
	l.cancel()
	_ = l.stdout.Close()
	l.stderr.Stop(0)
}

// openPipes returns both ends of the pipes for a child's stdin, stdout and stderr.
func openPipes() (ours, theirs [3]*os.File, err error) {
	for i := range ours {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(ours)
			closeAll(theirs)
			return ours, theirs, err
		}
		ours[i], theirs[i] = r, w
	}
	ours[0], theirs[0] = theirs[0], ours[0]
	return ours, theirs, nil
}

// closeAll closes files, some of which may be nil.
func closeAll(files [3]*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

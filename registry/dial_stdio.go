package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/jsonrpc"
	"mcpx/internal/rawjson"
)

// stdioLink talks to a child over its stdin and stdout.
type stdioLink struct {
	process *process
	in      *jsonrpc.Writer
	out     *jsonrpc.Reader
	stdin   *os.File
	stdout  *os.File
	stderr  *stderrTail
	log     zerolog.Logger
	redact  func(text string) string
	limit   int
	stray   sync.Once // warns of the first line that is no message
	cancel  context.CancelFunc
	close   func()
}

// drainTime is how long the rest of a dead child's output is waited for: a
// grandchild may hold the pipe open.
const drainTime = 500 * time.Millisecond

// exitTime is how long a child that has closed its stdout may take to exit.
const exitTime = 500 * time.Millisecond

// stdoutBytes is what a child's stdout holds unread. Users have 64 MiB for all
// their pipes, and may have a hundred servers.
const stdoutBytes = 256 << 10

func dialStdio(_ context.Context, c *config.Upstream, o Options, log zerolog.Logger) (link, error) {
	stdin, stdout, stderr, err := startPipes()
	if err != nil {
		return nil, fmt.Errorf("pipes: %w", err)
	}
	p, err := startProcess(c, o.Watcher, [3]*os.File{stdin.child, stdout.child, stderr.child})
	for _, end := range []*os.File{stdin.child, stdout.child, stderr.child} {
		_ = end.Close() // the child has its own
	}
	if err != nil {
		for _, end := range []*os.File{stdin.ours, stdout.ours, stderr.ours} {
			_ = end.Close()
		}
		return nil, err
	}
	jsonrpc.Widen(stdout.ours, stdoutBytes)
	l := &stdioLink{
		process: p,
		in:      jsonrpc.NewWriter(stdin.ours, o.MessageBytes),
		out:     jsonrpc.NewReader(stdout.ours, o.MessageBytes),
		stdin:   stdin.ours,
		stdout:  stdout.ours,
		stderr:  newStderrTail(c.Redact, log),
		log:     log,
		redact:  c.Redact,
		limit:   o.MessageBytes,
	}
	if o.stderr != nil {
		o.stderr.Store(l.stderr)
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.out.Reserve, l.cancel = o.intake.reserve(ctx).grow, cancel
	l.close = sync.OnceFunc(l.shut)
	go l.stderr.drain(stderr.ours)
	go func() {
		if err := l.in.Run(); err != nil {
			// The child closed its stdin. A server that cannot be asked anything
			// is over, even if it lives.
			_ = l.stdout.SetReadDeadline(time.Now().Add(drainTime))
		}
		_ = l.stdin.Close()
	}()
	go func() {
		<-p.exited
		_ = l.stdout.SetReadDeadline(time.Now().Add(drainTime))
		l.stderr.stop(drainTime)
	}()
	return l, nil
}

func (l *stdioLink) Send(message []byte) error {
	err := l.in.Send(message)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jsonrpc.ErrFull):
		return &failure{reason: "the call was not sent: the server does not read its input", stderr: l.stderr.lines()}
	}
	return errOver
}

func (l *stdioLink) Receive() (message, of []byte, err error) {
	for {
		line, err := l.out.Read()
		if err != nil {
			_ = l.out.Reserve(0) // of a message that broke off
		}
		switch {
		case errors.Is(err, jsonrpc.ErrTooLong):
			return nil, nil, &failure{reason: fmt.Sprintf("sent a message of more than %d bytes (limits.message_bytes)", l.limit)}
		case err != nil:
			return nil, nil, l.ended(err)
		case l.out.Partial() && rawjson.Check(line) != nil: // a server that dies in the middle of a line has not answered
			return nil, nil, l.ended(io.EOF)
		case line[0] == '{':
			return line, nil, nil
		}
		l.stray.Do(func() {
			l.log.Warn().Msg("the server writes text that is no message to its stdout; such lines are skipped")
		})
		l.log.Debug().Func(func(e *zerolog.Event) { e.Str("line", excerpt(l.redact, line)) }).Msg("skipped a line")
	}
}

// ended says why no more messages come.
func (l *stdioLink) ended(err error) error {
	select {
	case <-l.process.exited:
	case <-time.After(exitTime):
	}
	select {
	case <-l.process.exited: // perhaps in the same moment
		l.stderr.wait()
		return &failure{cause: CauseExit, reason: l.process.status(), stderr: l.stderr.lines()}
	default:
	}
	reason := "closed its stdout but did not exit"
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		reason = "closed its stdin but did not exit"
	case !errors.Is(err, io.EOF):
		reason = "its stdout could not be read: " + err.Error()
	}
	return &failure{reason: reason, stderr: l.stderr.lines()}
}

func (l *stdioLink) Close() { l.close() }

// shut stops the child and everything it started.
func (l *stdioLink) shut() {
	l.process.tree.remember() // while parents still tell whose their children are
	l.in.Close()              // and with it the child's stdin, once what is queued is written
	l.process.stop(func() { _ = l.stdin.Close() })
	l.cancel()
	_ = l.stdout.Close()
	l.stderr.stop(0)
}

// pipe has an end for us and one for the child.
type pipe struct{ ours, child *os.File }

func startPipes() (stdin, stdout, stderr pipe, err error) {
	var all []*os.File
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			for _, f := range all {
				_ = f.Close()
			}
			return stdin, stdout, stderr, err
		}
		all = append(all, r, w)
	}
	return pipe{all[1], all[0]}, pipe{all[2], all[3]}, pipe{all[4], all[5]}, nil
}

package e2e

import (
	"testing"
	"time"
)

// front is a way to have a conversation with mcpx.
type front struct {
	name string
	open func(t *testing.T, config any, o options) conversation
}

// fronts is the table of them: each transcript is run over every one.
var fronts = []front{
	{"stdio", openStdio},
}

// conversation is one client's conversation with a run of mcpx.
type conversation interface {
	// send sends one message.
	send(line string)
	// receive waits for the next message; false if none comes.
	receive() (message, bool)
	// rest ends the conversation and returns what was not received.
	rest() []message

	waitStderr(part string)
	errors() string
	waitEnd(within time.Duration) (code int)
}

// overStdio is a conversation on the pipes of a process.
type overStdio struct {
	*process
	received int
}

func openStdio(t *testing.T, config any, o options) conversation {
	t.Helper()
	return &overStdio{process: start(t, config, o)}
}

func (c *overStdio) send(line string) {
	c.t.Helper()
	c.write(line)
}

func (c *overStdio) receive() (m message, ok bool) {
	ok = c.wait(patience, func() bool { return len(c.all) > c.received })
	if ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		m = c.all[c.received]
		c.received++
	}
	return m, ok
}

func (c *overStdio) rest() []message {
	_ = c.stdin.Close()
	c.waitEnd(stopTime)
	return c.all[c.received:]
}

package e2e

import (
	"strings"
	"testing"
	"time"
)

// front is a way to talk to mcpx.
type front struct {
	name string
	open func(t *testing.T, config any, o options) conversation
}

// fronts are all of them. Each transcript runs over every one.
var fronts = []front{
	{"stdio", openStdio},
	{"http", openHTTP},
	{"sse", openSSE},
}

// conversation is one client's conversation with a run of mcpx.
type conversation interface {
	// send sends one message.
	send(line string)
	// receive waits for the next message; false if none comes.
	receive() (message, bool)
	// rest ends the conversation and returns the messages that were not received.
	rest() []message

	waitStderr(part string)
	errors() string
	waitEnd(within time.Duration) (code int)
}

// inbox hands out the messages of a process one by one.
type inbox struct {
	*process
	next int // index of the next message
}

func (c *inbox) receive() (m message, ok bool) {
	ok = c.wait(patience, func() bool { return len(c.all) > c.next })
	if ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		m = c.all[c.next]
		c.next++
	}
	return m, ok
}

func (c *inbox) rest() []message {
	c.stop()
	c.waitEnd(stopTime)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[c.next:]
}

// overStdio is a conversation on the pipes of a process.
type overStdio struct{ inbox }

func openStdio(t *testing.T, config any, o options) conversation {
	t.Helper()
	return &overStdio{inbox{process: start(t, config, o)}}
}

func (c *overStdio) send(line string) {
	c.t.Helper()
	c.write(line)
}

// overHTTP is a conversation over Streamable HTTP. Messages that belong to no call come
// on a stream that is open from initialize on.
type overHTTP struct {
	inbox
	*caller
	asked    []*exchange          // all requests
	byID     map[string]*exchange // requests of 2026-07-28, which end with their connections
	standing *exchange
}

func openHTTP(t *testing.T, config any, o options) conversation {
	t.Helper()
	s := serveHTTP(t, config, o)
	c := &overHTTP{inbox: inbox{process: s.process}, caller: s.caller("/mcp"), byID: map[string]*exchange{}}
	c.onMessage = func(m message) { s.update(func() { s.takeMessage(m) }) }
	return c
}

func (c *overHTTP) send(line string) {
	t := c.t
	t.Helper()
	m := parse(line)
	id := string(m.ID)
	x := c.byID[memberOf(m.Params, "requestId")]
	switch {
	case m.Method == "notifications/cancelled" && x != nil:
		x.drop() // the revision cancels by closing the connection
		<-x.ended
	case is2026Line(line):
		c.byID[id] = c.post(line)
		c.asked = append(c.asked, c.byID[id])
	case m.Method == "initialize":
		if c.open(line) && c.session != "" {
			c.standing = c.listen()
		}
	case (m.Method == "" || id == "") && !strings.HasPrefix(line, "["):
		c.deliver(line)
	default:
		c.asked = append(c.asked, c.post(line))
	}
}

func (c *overHTTP) rest() []message {
	c.stop()
	c.waitEnd(stopTime)
	if c.standing != nil {
		c.asked = append(c.asked, c.standing)
	}
	for _, x := range c.asked {
		x.waitEnd()
		x.check()
	}
	return c.inbox.rest()
}

// overSSE is a conversation over legacy SSE: every answer comes on one stream.
type overSSE struct {
	inbox
	*caller
	stream *exchange
}

func openSSE(t *testing.T, config any, o options) conversation {
	t.Helper()
	s := serveHTTP(t, config, o)
	c := &overSSE{inbox: inbox{process: s.process}, caller: s.caller("")}
	c.onMessage = func(m message) {
		m.stream = 0
		s.update(func() { s.takeMessage(m) })
	}
	c.stream = c.openSSE("/sse")
	return c
}

func (c *overSSE) send(line string) {
	c.t.Helper()
	c.deliver(line)
}

func (c *overSSE) rest() []message {
	c.stop()
	c.waitEnd(stopTime)
	c.stream.waitEnd()
	return c.inbox.rest()
}

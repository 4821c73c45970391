package server

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/jsonrpc"
	"mcpx/internal/rawjson"
)

// parsed is what a client wrote, and what it was read as.
type parsed struct {
	text    []byte
	message jsonrpc.Message
	err     error
}

func parse(text []byte) parsed {
	m, err := jsonrpc.ParseStrict(text)
	return parsed{text, m, err}
}

// wantsAnswer reports whether the answer to a message may take its time: it is a
// request, or an array, which may be a batch of requests.
func (p *parsed) wantsAnswer() bool {
	return p.err == nil && p.message.IsRequest() || p.err != nil && rawjson.Kind(p.text) == '['
}

// accept takes what a client wrote: one message or, in the one revision that has
// them, a batch. It never fails: what is no message is answered with an error. As
// for Accept, what it returns makes the answer, unless that comes by itself:
// through reply, which may be nil.
func (s *Server) accept(ctx context.Context, c *Client, p parsed, reply func(answer []byte)) (answer func() []byte, due due) {
	switch {
	case p.err == nil && reply != nil && p.message.IsRequest():
		if c.listens(); s.start(c, p.message, reply) {
			return nil, begun
		}
	case p.err != nil && rawjson.Kind(p.text) == '[' && c.batches() && rawjson.Check(p.text) == nil:
		return s.acceptBatch(ctx, c, p.text), later
	}
	return s.acceptOne(ctx, c, p.message, p.err)
}

// due says when the answer to a message is due.
type due int

const (
	never due = iota // nothing answers it
	now              // it takes no time: answers to what is wrong come in order, and that to initialize before all others
	later            // it may take its time
	begun            // it comes by itself
)

// acceptOne takes one message, or what is wrong with it.
func (s *Server) acceptOne(ctx context.Context, c *Client, m jsonrpc.Message, err error) (answer func() []byte, due due) {
	if err != nil {
		return func() []byte { return invalidMessage(m, err) }, now
	}
	switch answer = s.Accept(ctx, c, m); {
	case answer == nil:
		return nil, never
	case m.Method == "initialize":
		return answer, now
	}
	return answer, later
}

// invalidMessage is the answer to a message that could not be read: err says why, and m
// has its id, if it has a valid one.
func invalidMessage(m jsonrpc.Message, err error) []byte {
	e := wireError(err)
	if e.Code == jsonrpc.CodeParse {
		m.ID = nil // JSON-RPC requires a null id for text that is not JSON
	}
	return jsonrpc.AppendError(nil, m.ID, e)
}

// batches reports whether the client speaks the revision that has batches.
func (c *Client) batches() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.revision == mcp.ProtocolVersion20250326
}

// maxBatch is how many messages a batch may have: all of them are in work at once.
const maxBatch = 1000

// acceptBatch takes every message of a batch. They are answered side by side,
// and their answers are one array, in the order of the requests.
func (s *Server) acceptBatch(ctx context.Context, c *Client, batch []byte) (answer func() []byte) {
	refused := func(format string, a ...any) func() []byte {
		return func() []byte {
			return jsonrpc.AppendError(nil, nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, format, a...))
		}
	}
	switch n := count(batch); {
	case n == 0:
		return refused("Invalid request: an empty batch")
	case n > maxBatch:
		return refused("Invalid request: a batch has at most %d messages, this one has %d; send it in parts", maxBatch, n)
	}
	var parts []func() []byte
	for text := range rawjson.Elements(batch) {
		m, err := jsonrpc.ParseStrict(text)
		if err == nil && m.Method == "initialize" {
			err = jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "Invalid request: initialize must not be part of a batch")
		}
		if part, _ := s.acceptOne(ctx, c, m, err); part != nil {
			parts = append(parts, part)
		}
	}
	return func() []byte { return joined(c.runBatch(parts)) }
}

// runBatch answers the requests of a batch. The batch has entered the client's quota
// once, so that one request at a time can always run. Further ones run at the same
// time as far as the quota has room for them.
func (c *Client) runBatch(parts []func() []byte) [][]byte {
	answers := make([][]byte, len(parts))
	var next atomic.Int64
	work := func() {
		for i := int(next.Add(1)) - 1; i < len(parts); i = int(next.Add(1)) - 1 {
			answers[i] = parts[i]()
		}
	}
	var workers sync.WaitGroup
	for n := 1; n < len(parts); n++ {
		switch {
		case c.quota.enter():
			workers.Go(func() {
				defer c.quota.leave()
				work()
			})
		case c.quota == nil && n < sessionlessBatch:
			workers.Go(work)
		default:
			n = len(parts)
		}
	}
	work()
	workers.Wait()
	return answers
}

// sessionlessBatch is how many requests of a batch run at the same time for a client
// without a session, which has no quota.
const sessionlessBatch = 16

func count(array []byte) (n int) {
	for range rawjson.Elements(array) {
		n++
	}
	return n
}

// joined is an array of the answers that there are, nil if there are none.
func joined(answers [][]byte) []byte {
	var b []byte
	for _, a := range answers {
		switch {
		case a == nil:
			continue
		case b == nil:
			b = append(b, '[')
		default:
			b = append(b, ',')
		}
		b = append(b, a...)
	}
	if b == nil {
		return nil
	}
	return append(b, ']')
}

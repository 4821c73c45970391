package server

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/jsonrpc"
	"mcpx/internal/rawjson"
)

// Inbound is a text that a client sent, and the message in it.
type Inbound struct {
	Text    []byte // nil if only the message is known
	Message jsonrpc.Message
	Err     error // why the text is not a message
}

// Read reads a message of a client.
func Read(text []byte) Inbound {
	m, err := jsonrpc.ParseStrict(text)
	return Inbound{text, m, err}
}

// isRequest reports whether the answer may take time: the text is a request, or an
// array, which may be a batch of requests.
func (p *Inbound) IsRequest() bool {
	return p.Err == nil && p.Message.IsRequest() || p.Err != nil && rawjson.Kind(p.Text) == '['
}

// isAnswered reports whether Handle calls reply.
func (p *Inbound) IsAnswered() bool { return p.Err != nil || p.Message.IsRequest() }

// Handle handles what a client sent: a message or, in 2025-03-26, a batch of them.
// reply gets the answer as accept has it; invalid messages are answered at once.
func (s *Server) Handle(ctx context.Context, c *Client, p Inbound, reply func(answer []byte)) {
	switch {
	case p.Err == nil:
		s.accept(ctx, c, p.Message, reply)
	case rawjson.Kind(p.Text) == '[' && c.hasBatches() && rawjson.Check(p.Text) == nil:
		s.acceptBatch(ctx, c, p.Text, reply)
	default:
		reply(InvalidMessage(p.Message, p.Err))
	}
}

// InvalidMessage returns the answer to a message that could not be read: err says
// why, and m has its ID, if it has a valid one.
func InvalidMessage(m jsonrpc.Message, err error) []byte {
	e := WireError(err)
	if e.Code == jsonrpc.CodeParse {
		m.ID = nil // JSON-RPC requires a null ID for text that is not JSON
	}
	return jsonrpc.AppendError(nil, m.ID, e)
}

// hasBatches reports whether the client speaks the revision that has batches.
func (c *Client) hasBatches() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.revision == mcp.ProtocolVersion20250326
}

// maxBatch bounds the messages of a batch.
const maxBatch = 1000

// acceptBatch handles a batch. reply gets the answers as one array, in the order of
// the requests; nil if there are none.
func (s *Server) acceptBatch(ctx context.Context, c *Client, batch []byte, reply func(answer []byte)) {
	refuse := func(format string, a ...any) {
		reply(jsonrpc.AppendError(nil, nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, format, a...)))
	}
	switch n := count(batch); {
	case n == 0:
		refuse("Invalid request: an empty batch")
		return
	case n > maxBatch:
		refuse("Invalid request: a batch has at most %d messages, this one has %d; send it in parts", maxBatch, n)
		return
	}
	var starts []func(reply func(answer []byte))
	for text := range rawjson.Elements(batch) {
		p := Read(text)
		if p.Err == nil && p.Message.Method == "initialize" {
			p.Err = jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "Invalid request: initialize must not be part of a batch")
		}
		if p.Err != nil {
			answer := InvalidMessage(p.Message, p.Err)
			starts = append(starts, func(reply func(answer []byte)) { reply(answer) })
		} else if start := s.begin(ctx, c, p.Message); start != nil {
			starts = append(starts, start)
		}
	}
	go func() { reply(joined(c.runBatch(starts))) }()
}

// runBatch answers the requests of a batch. The batch has entered the client's quota
// once, so one request at a time can always run. More run at the same time as far as
// the quota has room.
func (c *Client) runBatch(starts []func(reply func(answer []byte))) [][]byte {
	answers := make([][]byte, len(starts))
	var next atomic.Int64
	work := func() {
		for i := int(next.Add(1)) - 1; i < len(starts); i = int(next.Add(1)) - 1 {
			answered := make(chan struct{})
			starts[i](func(answer []byte) {
				answers[i] = answer
				close(answered)
			})
			<-answered
		}
	}
	var workers sync.WaitGroup
	for n := 1; n < len(starts); n++ {
		switch {
		case c.Quota.Enter():
			workers.Go(func() {
				defer c.Quota.Leave()
				work()
			})
		case c.Quota == nil && n < sessionlessBatch:
			workers.Go(work)
		default:
			n = len(starts)
		}
	}
	work()
	workers.Wait()
	return answers
}

// sessionlessBatch bounds the requests of a batch that run at the same time for a
// client without a session, which has no quota.
const sessionlessBatch = 16

func count(array []byte) (n int) {
	for range rawjson.Elements(array) {
		n++
	}
	return n
}

// joined returns an array of the answers, without those that are nil; nil if there
// are none.
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

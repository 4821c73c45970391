package server

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
)

// Inbound is a text from a client, parsed as a message.
type Inbound struct {
	Text    []byte // nil if only the message is known
	Message rpc.Message
	Err     error // why the text is not a message
}

// Read reads a message of a client.
func Read(text []byte) Inbound {
	m, err := rpc.ParseStrict(text)
	return Inbound{text, m, err}
}

// IsRequest reports whether the text is a request, or an array, which may be a batch of
// requests.
func (p *Inbound) IsRequest() bool {
	return p.Err == nil && p.Message.IsRequest() || p.Err != nil && rawjson.Kind(p.Text) == '['
}

// Size is about how much memory the message needs while it waits. Each message of a batch needs
// some, however short it is.
func (p *Inbound) Size() int {
	size := len(p.Text)
	if rawjson.Kind(p.Text) == '[' {
		size += min(BatchSize(p.Text), MaxBatch) * maxQueuedBytes / maxQueued
	}
	return size
}

// IsAnswered reports whether Handle calls respond.
func (p *Inbound) IsAnswered() bool { return p.Err != nil || p.Message.IsRequest() }

// Handle handles a text from a client: a message or, in 2025-03-26, a batch. When it
// returns, a request can be canceled and initialize is done, since later messages depend on
// these. For a request, respond is called once, perhaps before Handle returns: with the
// response, or nil if the client has canceled the request. For an invalid message it gets
// the error at once. respond must not wait, and neither does Handle.
func (s *Server) Handle(ctx context.Context, c *Client, p Inbound, respond func(response []byte)) {
	if _, start := s.Accept(ctx, c, p); start != nil {
		start(respond)
	}
}

// Accept is the first part of Handle: it handles notifications and responses, and registers
// requests, so that the client can cancel them. start does the rest; it is nil if there is no
// response. The context ends when the request does, or when all messages of a batch were
// requests and have ended.
func (s *Server) Accept(ctx context.Context, c *Client, p Inbound) (request context.Context, start func(respond func(response []byte))) {
	if p.Err == nil {
		return s.begin(ctx, c, p.Message)
	}
	if c.AcceptsBatch(p) {
		return s.acceptBatch(ctx, c, p.Text)
	}
	return ctx, answerWith(InvalidMessage(p.Message, p.Err))
}

// answerWith returns a start function for a message whose response is known.
func answerWith(response []byte) (start func(respond func(response []byte))) {
	return func(respond func(response []byte)) { respond(response) }
}

// InvalidMessage returns the error response to a message that failed to parse with err.
// m has the ID, if a valid one was read.
func InvalidMessage(m rpc.Message, err error) []byte {
	e := WireError(err)
	if e.Code == rpc.CodeParse {
		m.ID = nil // JSON-RPC requires a null ID for text that is not JSON
	}
	return rpc.AppendError(nil, m.ID, e)
}

// AcceptsBatch reports whether a text is a batch that the client may send.
func (c *Client) AcceptsBatch(p Inbound) bool {
	return p.Err != nil && rawjson.Kind(p.Text) == '[' && c.Revision() == mcp.ProtocolVersion20250326 && rawjson.Check(p.Text) == nil
}

// MaxBatch bounds the messages of a batch. Longer ones are refused.
const MaxBatch = 1000

// acceptBatch is Accept for a batch. The response is an array, in the order of the requests;
// nil if there are none.
func (s *Server) acceptBatch(ctx context.Context, c *Client, batch []byte) (requests context.Context, start func(respond func(response []byte))) {
	n := BatchSize(batch)
	if n == 0 || n > MaxBatch {
		err := rpc.Errorf(rpc.CodeInvalidRequest, "Invalid request: a batch has at most %d messages, this one has %d; send it in parts", MaxBatch, n)
		if n == 0 {
			err = rpc.Errorf(rpc.CodeInvalidRequest, "Invalid request: an empty batch")
		}
		return ctx, answerWith(rpc.AppendError(nil, nil, err))
	}
	var starts []func(respond func(response []byte))
	var unfinished sync.WaitGroup
	isValid := true
	for text := range rawjson.Elements(batch) {
		p := Read(text)
		if p.Err == nil && p.Message.Method == "initialize" {
			p.Err = rpc.Errorf(rpc.CodeInvalidRequest, "Invalid request: initialize must not be part of a batch")
		}
		if p.Err != nil {
			starts = append(starts, answerWith(InvalidMessage(p.Message, p.Err)))
			isValid = false
		} else if request, start := s.begin(ctx, c, p.Message); start != nil {
			starts = append(starts, start)
			unfinished.Add(1)
			context.AfterFunc(request, unfinished.Done)
		}
	}
	requests = ctx
	if isValid { // otherwise there are responses to write, even if all requests are canceled
		var end context.CancelFunc
		requests, end = context.WithCancel(ctx)
		go func() {
			unfinished.Wait()
			end()
		}()
	}
	return requests, func(respond func(response []byte)) {
		go func() {
			responses, free := c.runBatch(starts)
			response := join(responses)
			free()
			respond(response)
		}()
	}
}

// runBatch runs the requests of a batch and returns their responses. These count in batchMemory
// until free is called. The batch counts once in the client's quota, so one
// request at a time can always run. More run at the same time if the quota has room.
func (c *Client) runBatch(starts []func(respond func(response []byte))) (responses [][]byte, free func()) {
	responses = make([][]byte, len(starts))
	memory := batchMemory{total: new(atomic.Int64)}
	if c.Quota != nil {
		memory.total = &c.Quota.batchBytes
	}
	var next atomic.Int64
	work := func() {
		for i := int(next.Add(1)) - 1; i < len(starts); i = int(next.Add(1)) - 1 {
			done := make(chan struct{})
			starts[i](func(response []byte) {
				responses[i] = memory.keep(response)
				close(done)
			})
			<-done
		}
	}
	var workers sync.WaitGroup
	for n := 1; n < len(starts); n++ {
		switch {
		case c.Quota.TryAcquire():
			workers.Go(func() {
				defer c.Quota.Release()
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
	return responses, memory.free
}

// maxBatchBytes bounds the responses of the batches of one client that are not complete.
const maxBatchBytes = 64 << 20

// batchMemory counts the responses of a batch that is not complete.
type batchMemory struct {
	total *atomic.Int64 // of all batches of the client
	own   atomic.Int64
}

// keep returns a response, or an error if there is no room for it. It counts only what it
// keeps, so that a response that is too long costs no other one.
func (m *batchMemory) keep(response []byte) []byte {
	size := int64(len(response))
	total := m.total.Load()
	for total+size <= maxBatchBytes && !m.total.CompareAndSwap(total, total+size) {
		total = m.total.Load()
	}
	if total+size > maxBatchBytes {
		return rpc.AppendError(nil, rawjson.Get(response, "id"), rpc.Errorf(rpc.CodeInternal, "The call was made, but its response of %d bytes was dropped: the responses of a batch have at most %d bytes together. Send the call outside a batch.", size, maxBatchBytes))
	}
	m.own.Add(size)
	return response
}

func (m *batchMemory) free() { m.total.Add(-m.own.Load()) }

// sessionlessBatch bounds how many requests of a batch run at the same time for a client
// without a client session, which has no quota.
const sessionlessBatch = 16

// BatchSize returns the number of messages in a batch. It allocates nothing, since a short
// text may have millions of them.
func BatchSize(batch []byte) (n int) {
	for range rawjson.Elements(batch) {
		n++
	}
	return n
}

// join returns an array of the responses that are not nil; nil if there are none.
func join(responses [][]byte) []byte {
	size := len("[]")
	for _, r := range responses {
		size += len(r) + len(",")
	}
	b := append(make([]byte, 0, size), '[')
	for _, r := range responses {
		if r != nil {
			b = rawjson.AppendElement(b, r)
		}
	}
	if len(b) == len("[") {
		return nil
	}
	return append(b, ']')
}

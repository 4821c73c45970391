package server

import (
	"context"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/jsonrpc"
	"mcpx/internal/rawjson"
)

// AcceptText takes what a client wrote: one message or, in the one revision that
// has them, a batch. It never fails: what is no message is answered with an
// error. As for Accept, what it returns makes the answer; now is true if that
// takes no time, so that answers to what is wrong come in order, and the one to
// initialize before all others.
func (s *Server) AcceptText(ctx context.Context, c *Client, text []byte) (answer func() []byte, now bool) {
	if rawjson.Kind(text) == '[' && c.batches() && rawjson.Check(text) == nil {
		return s.acceptBatch(ctx, c, text), false
	}
	return s.acceptOne(ctx, c, text)
}

// acceptOne takes one message.
func (s *Server) acceptOne(ctx context.Context, c *Client, text []byte) (answer func() []byte, now bool) {
	m, err := jsonrpc.Parse(text)
	if err == nil {
		return s.Accept(ctx, c, m), m.Method == "initialize"
	}
	e := wireError(err)
	if e.Code == jsonrpc.CodeParse {
		m.ID = nil // JSON-RPC has it that the id of what cannot be read is not known
	}
	return func() []byte { return jsonrpc.AppendError(nil, m.ID, e) }, true
}

// batches reports whether the client speaks the revision that has batches.
func (c *Client) batches() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.revision == mcp.ProtocolVersion20250326
}

// acceptBatch takes every message of a batch. They are answered side by side,
// and their answers are one array, in the order of the requests.
func (s *Server) acceptBatch(ctx context.Context, c *Client, batch []byte) (answer func() []byte) {
	var parts []func() []byte
	for text := range rawjson.Elements(batch) {
		if part, _ := s.acceptOne(ctx, c, text); part != nil {
			parts = append(parts, part)
		}
	}
	if isEmptyArray(batch) {
		return func() []byte {
			return jsonrpc.AppendError(nil, nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "Invalid request: an empty batch"))
		}
	}
	return func() []byte {
		answers := make([][]byte, len(parts))
		var wg sync.WaitGroup
		for i, part := range parts {
			wg.Go(func() { answers[i] = part() })
		}
		wg.Wait()
		return joined(answers)
	}
}

func isEmptyArray(array []byte) bool {
	for range rawjson.Elements(array) {
		return false
	}
	return true
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

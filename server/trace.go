package server

import (
	"context"
	"strconv"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
)

// Tracer is the hook for spans of clients' requests. It may be used concurrently.
type Tracer interface {
	// Receive starts the span of a request, and returns the context for handling it. A nil
	// Span means that the request is not recorded.
	Receive(ctx context.Context, r TracedRequest) (context.Context, Span)
}

// Span is the record of one request.
type Span interface {
	// End ends the span. failure is the code of a JSON-RPC error or a word; "" if there is
	// none. The result may have isError.
	End(result []byte, failure string)
}

// TracedRequest describes a client's request to a Tracer. Its bytes are valid until Receive
// returns.
type TracedRequest struct {
	Method   string // a method of MCP, not any text of a client
	Params   []byte
	Meta     []byte // the request's _meta
	ID       []byte // of the JSON-RPC request
	Revision string // the revision of MCP
	Profile  string // the profile's name
}

// startSpan starts the span of a request, and returns the context for handling it. The
// span is nil if spans are off, and for subscriptions/listen, which lasts as long as its
// client.
func (s *Server) startSpan(ctx context.Context, c *Client, m rpc.Message) (context.Context, Span) {
	if s.Tracer == nil || m.Method == "subscriptions/listen" {
		return ctx, nil
	}
	method := "_OTHER" // OpenTelemetry's word for a method that the server does not know
	if _, ok := Methods[m.Method]; ok {
		method = strings.Clone(m.Method)
	}
	meta := rawjson.Get(m.Params, "_meta")
	revision := c.Revision()
	if Is2026(m.Params) {
		revision, _ = rawjson.String(rawjson.Get(meta, mcp.MetaKeyProtocolVersion))
	}
	return s.Tracer.Receive(ctx, TracedRequest{
		Method: method, Params: m.Params, Meta: meta, ID: m.ID, Revision: revision, Profile: s.profile.Name,
	})
}

// endSpan ends the span of a request.
func endSpan(span Span, isCanceled bool, result []byte, err error) {
	switch {
	case span == nil:
	case isCanceled:
		span.End(nil, "cancelled")
	case err != nil:
		span.End(nil, strconv.Itoa(WireError(err).Code))
	default:
		span.End(result, "")
	}
}

package server

import (
	"context"
	"strconv"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/internal/telemetry"
)

// startSpan starts the span of a request, and returns the context for handling it. The
// span is nil if spans are off, and for subscriptions/listen, which lasts as long as its
// client.
func (s *Server) startSpan(ctx context.Context, c *Client, m rpc.Message) (context.Context, *telemetry.Span) {
	if s.Tracer == nil || m.Method == "subscriptions/listen" {
		return ctx, nil
	}
	method := "_OTHER" // OpenTelemetry's word for a method that the server does not know
	if Methods[m.Method] != nil || modernMethods[m.Method] != nil {
		method = strings.Clone(m.Method)
	}
	meta := rawjson.Get(m.Params, "_meta")
	revision := c.Revision()
	if IsModern(m.Params) {
		revision, _ = rawjson.String(rawjson.Get(meta, mcp.MetaKeyProtocolVersion))
	}
	return s.Tracer.Receive(ctx, telemetry.Request{
		Method: method, Params: m.Params, Meta: meta, ID: m.ID, Revision: revision, Schema: s.profile.Name,
	})
}

// endSpan ends the span of a request.
func endSpan(span *telemetry.Span, isCancelled bool, result []byte, err error) {
	switch {
	case span == nil:
	case isCancelled:
		span.End(nil, "cancelled")
	case err != nil:
		span.End(nil, strconv.Itoa(WireError(err).Code))
	default:
		span.End(result, "")
	}
}

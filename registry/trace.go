package registry

import (
	"context"
	"errors"
	"strconv"

	"mcpx/internal/rpc"
	"mcpx/internal/telemetry"
	"mcpx/internal/upstream"
	"mcpx/registry/live"
)

// startSpan starts the span of a request to an upstream, and returns the request with the
// _meta that names the span. The span is nil if spans are off.
func (r *Registry) startSpan(ctx context.Context, server string, q upstream.Request) (upstream.Request, *telemetry.Span) {
	if r.tracer == nil {
		return q, nil
	}
	transport := "tcp"
	if u := r.Catalog().Upstream(server); u != nil && u.Config.Command != "" {
		transport = "pipe"
	}
	meta, span := r.tracer.Send(ctx, telemetry.Request{
		Method: q.Method, Params: q.Params, Meta: q.Meta, Schema: r.schema, Server: server, Transport: transport,
	})
	q.Meta = meta
	return q, span
}

// endSpan ends the span of a request.
func endSpan(ctx context.Context, span *telemetry.Span, result []byte, err error) {
	if span != nil {
		span.End(result, failureKind(ctx, err))
	}
}

// failureKind returns the kind of an error for a span: the code of a JSON-RPC error, or a word;
// "" for nil.
func failureKind(ctx context.Context, err error) string {
	var (
		own         *rpc.Error
		timeout     *upstream.Timeout
		lost        *upstream.Lost
		unanswered  *upstream.Unanswered
		unavailable *live.Unavailable
	)
	switch {
	case err == nil:
		return ""
	case errors.As(err, &own):
		return strconv.Itoa(own.Code)
	case errors.As(err, &timeout):
		return "timeout"
	case ctx.Err() != nil:
		return "cancelled"
	case errors.As(err, &lost):
		return "lost"
	case errors.As(err, &unanswered):
		return "unanswered"
	case errors.As(err, &unavailable):
		return "unavailable"
	}
	return "_OTHER"
}

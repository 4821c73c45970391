package registry

import (
	"context"
	"errors"
	"strconv"

	"mcpx/internal/rpc"
	"mcpx/registry/live"
	"mcpx/registry/upstream"
)

// Tracer is the hook for spans of requests to upstreams. It may be used concurrently.
type Tracer interface {
	// Send starts the span of a request, and returns the _meta to send, which names the
	// span. A nil Span means that the request is not recorded.
	Send(ctx context.Context, r TracedRequest) (meta []byte, s Span)
}

// Span is the record of one request.
type Span interface {
	// End ends the span. failure is the code of a JSON-RPC error or a word; "" if there is
	// none. The result may have isError.
	End(result []byte, failure string)
}

// TracedRequest describes a request to an upstream to a Tracer.
type TracedRequest struct {
	Method    string
	Params    []byte
	Meta      []byte // the request's _meta; nil if the upstream gets none
	Profile   string // the profile's name
	Server    string // the upstream
	Transport string // "pipe" or "tcp"
}

// startSpan starts the span of a request to an upstream, and returns the request with the
// _meta that names the span. The span is nil if spans are off.
func (r *Registry) startSpan(ctx context.Context, server string, q upstream.Request) (upstream.Request, Span) {
	if r.Tracer == nil {
		return q, nil
	}
	transport := "tcp"
	if u := r.Catalog().Upstream(server); u != nil && u.Config.Command != "" {
		transport = "pipe"
	}
	meta, span := r.Tracer.Send(ctx, TracedRequest{
		Method: q.Method, Params: q.Params, Meta: q.Meta, Profile: r.profile, Server: server, Transport: transport,
	})
	q.Meta = meta
	return q, span
}

// endSpan ends the span of a request.
func endSpan(ctx context.Context, span Span, result []byte, err error) {
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

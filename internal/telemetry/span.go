package telemetry

import (
	"context"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"mcpx/internal/rawjson"
)

// Span is the record of one request. A nil *Span records nothing.
type Span struct{ span trace.Span }

// Request describes the request of a span. Empty members are not recorded.
type Request struct {
	Method string // a method of MCP, not any text of a client
	Params []byte // the name of a tool or prompt is read from them, and nothing else
	Meta   []byte // the request's _meta

	ID        []byte // of the JSON-RPC request
	Revision  string // the revision of MCP
	Schema    string // the config's schema
	Server    string // the upstream
	Transport string // "pipe" or "tcp"
}

// Receive starts the span of a client's request. Its parent is the span that _meta names.
// The context that Receive returns has the span, for Send.
func (t *Tracer) Receive(ctx context.Context, r Request) (context.Context, *Span) {
	if t.tracer == nil {
		return ctx, nil
	}
	remote := propagation.MapCarrier{}
	for _, name := range traceContext.Fields() {
		remote[name], _ = rawjson.String(rawjson.Get(r.Meta, name))
	}
	return t.begin(traceContext.Extract(ctx, remote), r, trace.SpanKindServer)
}

// Send starts the span of a request to an upstream, below the span in ctx. It returns the
// _meta to send, which names the span. If ctx has no span, the request is
// mcpx's own, and Send starts none.
func (t *Tracer) Send(ctx context.Context, r Request) (meta []byte, span *Span) {
	if t.tracer == nil || !trace.SpanContextFromContext(ctx).IsValid() {
		return r.Meta, nil
	}
	ctx, span = t.begin(ctx, r, trace.SpanKindClient)
	if r.Meta == nil { // the upstream gets none
		return nil, span
	}
	own := propagation.MapCarrier{}
	traceContext.Inject(ctx, own)
	meta = r.Meta
	for _, name := range traceContext.Fields() {
		var value []byte
		if own[name] != "" {
			value = rawjson.AppendString(nil, own[name])
		}
		meta = rawjson.With(meta, name, value)
	}
	return meta, span
}

// traceContext reads and writes traceparent and tracestate.
var traceContext propagation.TraceContext

func (t *Tracer) begin(ctx context.Context, r Request, kind trace.SpanKind) (context.Context, *Span) {
	key, name := r.target()
	attributes := []attribute.KeyValue{attribute.String("mcp.method.name", r.Method)}
	for _, a := range [][2]string{
		{key, name}, {"jsonrpc.request.id", text(r.ID)}, {"mcp.protocol.version", r.Revision},
		{"mcpx.schema", r.Schema}, {"mcpx.server", r.Server}, {"network.transport", r.Transport},
	} {
		if a[1] != "" {
			attributes = append(attributes, attribute.String(a[0], a[1]))
		}
	}
	if r.Method == "tools/call" {
		attributes = append(attributes, attribute.String("gen_ai.operation.name", "execute_tool"))
	}
	ctx, span := t.tracer.Start(ctx, strings.TrimSpace(r.Method+" "+name), trace.WithSpanKind(kind), trace.WithAttributes(attributes...))
	return ctx, &Span{span}
}

// targets has the methods whose params name something, and the attribute for the name.
var targets = map[string]string{"tools/call": "gen_ai.tool.name", "prompts/get": "gen_ai.prompt.name"}

// target returns the name of the tool or prompt that the request is for.
func (r *Request) target() (key, name string) {
	if key = targets[r.Method]; key != "" {
		name = text(rawjson.Get(r.Params, "name"))
	}
	return key, name
}

// maxText bounds a client's text in a span.
const maxText = 128

// text returns a client's string or number, "" if it is too long.
func text(value []byte) string {
	if len(value) > maxText || rawjson.IsNull(value) {
		return ""
	}
	s, ok := rawjson.String(value)
	if !ok {
		s = string(value)
	}
	return strings.ToValidUTF8(s, "\ufffd")
}

// End ends the span. failure is the kind of failure, or the code of a JSON-RPC error; "" if
// there is none. A tool's result with isError counts as a failure, too.
func (s *Span) End(result []byte, failure string) {
	if failure == "" && string(rawjson.Get(result, "isError")) == "true" {
		failure = "tool_error"
	}
	if failure != "" {
		s.span.SetStatus(codes.Error, "")
		s.span.SetAttributes(attribute.String("error.type", failure))
	}
	if _, err := strconv.Atoi(failure); err == nil {
		s.span.SetAttributes(attribute.String("rpc.response.status_code", failure))
	}
	s.span.End()
}

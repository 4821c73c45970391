package traces

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"mcpx/internal/rawjson"
	"mcpx/registry"
	"mcpx/server"
)

// Receive implements server.Tracer. The parent of the span is the span that _meta names. The
// context that Receive returns has the span, for Send.
func (t *Tracer) Receive(ctx context.Context, r server.TracedRequest) (context.Context, server.Span) {
	if t.tracer == nil {
		return ctx, nil
	}
	remote := propagation.MapCarrier{}
	for _, name := range traceContext.Fields() {
		remote[name], _ = rawjson.String(rawjson.Get(r.Meta, name))
	}
	return t.begin(traceContext.Extract(ctx, remote), trace.SpanKindServer, request{r.Method, r.Params, []attribute.KeyValue{
		attribute.String("jsonrpc.request.id", text(r.ID)), attribute.String("mcp.protocol.version", r.Revision), attribute.String("mcpx.schema", r.Profile),
	}})
}

// Send implements registry.Tracer. The parent of the span is the span in ctx. If ctx has
// none, the request is mcpx's own, and Send starts none.
func (t *Tracer) Send(ctx context.Context, r registry.TracedRequest) (meta []byte, s registry.Span) {
	if t.tracer == nil || !trace.SpanContextFromContext(ctx).IsValid() {
		return r.Meta, nil
	}
	ctx, s = t.begin(ctx, trace.SpanKindClient, request{r.Method, r.Params, []attribute.KeyValue{
		attribute.String("mcpx.schema", r.Profile), attribute.String("mcpx.server", r.Server), attribute.String("network.transport", r.Transport),
	}})
	if r.Meta == nil { // the upstream gets none
		return nil, s
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
	return meta, s
}

// traceContext reads and writes traceparent and tracestate.
var traceContext propagation.TraceContext

// request is what the spans of both kinds say about a request. Empty attributes are not
// recorded.
type request struct {
	method     string
	params     []byte // the name of a tool or prompt is read from them, and nothing else
	attributes []attribute.KeyValue
}

func (t *Tracer) begin(ctx context.Context, kind trace.SpanKind, r request) (context.Context, span) {
	key, name := r.target()
	all := []attribute.KeyValue{attribute.String("mcp.method.name", r.method), attribute.String(key, name)}
	all = slices.DeleteFunc(append(all, r.attributes...), func(a attribute.KeyValue) bool { return a.Value.AsString() == "" })
	if r.method == "tools/call" {
		all = append(all, attribute.String("gen_ai.operation.name", "execute_tool"))
	}
	ctx, s := t.tracer.Start(ctx, strings.TrimSpace(r.method+" "+name), trace.WithSpanKind(kind), trace.WithAttributes(all...))
	return ctx, span{s}
}

// targets has the methods whose params name something, and the attribute for the name.
var targets = map[string]string{"tools/call": "gen_ai.tool.name", "prompts/get": "gen_ai.prompt.name"}

// target returns the name of the tool or prompt that the request is for.
func (r request) target() (key, name string) {
	if key = targets[r.method]; key != "" {
		name = text(rawjson.Get(r.params, "name"))
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

// span implements server.Span and registry.Span.
type span struct{ span trace.Span }

// End ends the span. failure is the kind of failure, or the code of a JSON-RPC error; "" if
// there is none. A tool's result with isError counts as a failure, too.
func (s span) End(result []byte, failure string) {
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

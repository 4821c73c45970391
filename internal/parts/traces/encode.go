package traces

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/encoding/protowire"
)

// encode returns an ExportTraceServiceRequest of OTLP, in protobuf. All spans have the same
// resource and scope. They have no events and no links, and their attributes are texts:
// mcpx records nothing else.
//
// The numbers are those of the fields in opentelemetry/proto/trace/v1/trace.proto.
func encode(spans []sdk.ReadOnlySpan) []byte {
	if len(spans) == 0 {
		return nil
	}
	var resource, scope, scopeSpans, resourceSpans, request message
	resource.attributes(1, spans[0].Resource().Attributes())
	scope.text(1, spans[0].InstrumentationScope().Name)
	scope.text(2, spans[0].InstrumentationScope().Version)
	scopeSpans.bytes(1, scope)
	for _, s := range spans {
		scopeSpans.bytes(2, encodeSpan(s))
	}
	resourceSpans.bytes(1, resource)
	resourceSpans.bytes(2, scopeSpans)
	resourceSpans.text(3, spans[0].Resource().SchemaURL())
	request.bytes(1, resourceSpans)
	return request
}

func encodeSpan(s sdk.ReadOnlySpan) (m message) {
	traceID, id, parent := s.SpanContext().TraceID(), s.SpanContext().SpanID(), s.Parent().SpanID()
	m.bytes(1, traceID[:])
	m.bytes(2, id[:])
	m.text(3, s.SpanContext().TraceState().String())
	if parent.IsValid() {
		m.bytes(4, parent[:])
	}
	m.text(5, s.Name())
	m.number(6, kinds[s.SpanKind()])
	m.fixed64(7, uint64(s.StartTime().UnixNano()))
	m.fixed64(8, uint64(s.EndTime().UnixNano()))
	m.attributes(9, s.Attributes())
	var status message
	status.text(2, s.Status().Description)
	status.number(3, statusCodes[s.Status().Code])
	m.bytes(15, status)
	m.fixed32(16, flags(s))
	return m
}

// kinds are the values of Span.SpanKind.
var kinds = map[trace.SpanKind]uint64{trace.SpanKindInternal: 1, trace.SpanKindServer: 2, trace.SpanKindClient: 3}

// statusCodes are the values of Status.StatusCode.
var statusCodes = map[codes.Code]uint64{codes.Ok: 1, codes.Error: 2}

// flags returns the W3C trace flags, and whether the parent is in another process.
func flags(s sdk.ReadOnlySpan) uint32 {
	const hasIsRemote, isRemote = 0x100, 0x200
	f := uint32(s.SpanContext().TraceFlags()) | hasIsRemote
	if s.Parent().IsRemote() {
		f |= isRemote
	}
	return f
}

// rejected returns how many spans an ExportTraceServiceResponse rejects.
func rejected(response []byte) int64 {
	partial, _ := protowire.ConsumeBytes(field(response, 1, protowire.BytesType))
	n, _ := protowire.ConsumeVarint(field(partial, 1, protowire.VarintType))
	return int64(n)
}

// field returns a message from the value of a field on, nil if it has none.
func field(m []byte, number protowire.Number, kind protowire.Type) []byte {
	for len(m) > 0 {
		found, is, n := protowire.ConsumeTag(m)
		if n < 0 {
			return nil
		}
		if m = m[n:]; found == number && is == kind {
			return m
		}
		if n = protowire.ConsumeFieldValue(found, is, m); n < 0 {
			return nil
		}
		m = m[n:]
	}
	return nil
}

// message is a message of protobuf.
type message []byte

func (m *message) bytes(field protowire.Number, value []byte) {
	*m = protowire.AppendBytes(protowire.AppendTag(*m, field, protowire.BytesType), value)
}

// text leaves out an empty text, as protobuf does.
func (m *message) text(field protowire.Number, value string) {
	if value != "" {
		m.bytes(field, []byte(value))
	}
}

// number leaves out 0, as protobuf does.
func (m *message) number(field protowire.Number, value uint64) {
	if value != 0 {
		*m = protowire.AppendVarint(protowire.AppendTag(*m, field, protowire.VarintType), value)
	}
}

func (m *message) fixed32(field protowire.Number, value uint32) {
	*m = protowire.AppendFixed32(protowire.AppendTag(*m, field, protowire.Fixed32Type), value)
}

func (m *message) fixed64(field protowire.Number, value uint64) {
	*m = protowire.AppendFixed64(protowire.AppendTag(*m, field, protowire.Fixed64Type), value)
}

// attributes appends a KeyValue for each attribute. Its AnyValue has a text, which may be empty.
func (m *message) attributes(field protowire.Number, list []attribute.KeyValue) {
	for _, a := range list {
		var value, pair message
		value.bytes(1, []byte(a.Value.String()))
		pair.text(1, string(a.Key))
		pair.bytes(2, value)
		m.bytes(field, pair)
	}
}

package traces

import (
	"bytes"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"mcpx/internal/mcptest"
	"mcpx/internal/parts/traces/tracestest"
	"mcpx/internal/rawjson"
	"mcpx/registry"
	"mcpx/server"
)

const (
	traceID  = "0af7651916cd43dd8448eb211c80319c"
	parentID = "b7ad6b7169203331"
	parent   = "00-" + traceID + "-" + parentID + "-01"
)

// started returns a Tracer that sends its spans to a collector.
func started(t *testing.T, url string, log zerolog.Logger) *Tracer {
	t.Helper()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
	tracer := New("1.2.3", log)
	tracer.Start()
	t.Cleanup(tracer.Close)
	return tracer
}

func TestOnlyWithACollector(t *testing.T) {
	mcptest.NothingLeft(t)
	for _, row := range []struct {
		name  string
		env   map[string]string
		isOn  bool
		wrong string // in the log
	}{
		{name: "nothing is set"},
		{name: "a collector", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, isOn: true},
		{name: "a collector of traces", env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1/v1/traces"}, isOn: true},
		{name: "disabled", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "True"}},
		{name: "no exporter of traces", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"}},
		{name: "no URL", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "localhost:4318"}, wrong: "is not an http or https URL"},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER"} {
				t.Setenv(name, row.env[name])
			}
			var log bytes.Buffer
			tracer := New("1.2.3", zerolog.New(&log))
			tracer.Start()
			defer tracer.Close()
			if isOn := tracer != nil && tracer.tracer != nil; isOn != row.isOn || row.wrong != "" && !strings.Contains(log.String(), row.wrong) {
				t.Errorf("on: %v; log %s", isOn, log.String())
			}
			if tracer == nil {
				return
			}
			ctx, span := tracer.Receive(t.Context(), server.TracedRequest{Method: "ping"})
			if meta, sent := tracer.Send(ctx, registry.TracedRequest{Method: "ping", Meta: []byte("{}")}); (span != nil) != row.isOn || (sent != nil) != row.isOn || (string(meta) != "{}") != row.isOn {
				t.Errorf("spans %v and %v, _meta %s", span, sent, meta)
			}
		})
	}
}

// traced is a client's request and the request to the upstream for it.
type traced struct {
	Params, Meta, ID                     []byte
	Revision, Profile, Server, Transport string
}

// attributesOf returns the attributes that a span of one kind must have: those of the other
// kind alone are left out.
func attributesOf(isClient bool, all map[string]string) map[string]string {
	others := []string{"mcpx.server", "network.transport"}
	if isClient {
		others = []string{"jsonrpc.request.id", "mcp.protocol.version"}
	}
	all = maps.Clone(all)
	maps.DeleteFunc(all, func(key, _ string) bool { return slices.Contains(others, key) })
	return all
}

// TestSpans: the parents of the spans, and what they say about requests.
func TestSpans(t *testing.T) {
	const secret = "s3cret"
	method := map[string]string{"mcp.method.name": "tools/call", "gen_ai.operation.name": "execute_tool"}
	for _, row := range []struct {
		name    string
		request traced
		result  string
		failure string
		span    string
		want    map[string]string // besides those of method
		isRoot  bool
	}{
		{
			name: "a call", request: traced{Params: []byte(`{"name":"add","arguments":{"key":"` + secret + `"}}`), ID: []byte(`"a"`), Revision: "2025-06-18", Profile: "default"},
			result: `{"content":[{"type":"text","text":"` + secret + `"}]}`, span: "tools/call add",
			want: map[string]string{"gen_ai.tool.name": "add", "jsonrpc.request.id": "a", "mcp.protocol.version": "2025-06-18", "mcpx.schema": "default"},
		},
		{
			name: "an error of the tool", request: traced{Params: []byte(`{"name":"add"}`), ID: []byte("7"), Server: "math", Transport: "pipe"}, result: `{"isError":true}`, span: "tools/call add",
			want: map[string]string{"gen_ai.tool.name": "add", "jsonrpc.request.id": "7", "mcpx.server": "math", "network.transport": "pipe", "error.type": "tool_error"},
		},
		{
			name: "an error of JSON-RPC", failure: "-32602", span: "tools/call",
			want: map[string]string{"error.type": "-32602", "rpc.response.status_code": "-32602"},
		},
		{
			name: "another failure", failure: "timeout", span: "tools/call",
			want: map[string]string{"error.type": "timeout"},
		},
		{
			name: "a name that is too long or no string", request: traced{Params: []byte(`{"name":"` + strings.Repeat("x", 200) + `"}`), ID: []byte("null")}, span: "tools/call",
			want: map[string]string{},
		},
		{
			name: "a name that is not UTF-8", request: traced{Params: []byte("{\"name\":\"a\xff\"}")}, span: "tools/call a\ufffd",
			want: map[string]string{"gen_ai.tool.name": "a\ufffd"},
		},
		{name: "no parent", request: traced{Meta: []byte("{}")}, span: "tools/call", want: map[string]string{}, isRoot: true},
		{name: "an invalid parent", request: traced{Meta: []byte(`{"traceparent":"00-1","tracestate":"a=1"}`)}, span: "tools/call", want: map[string]string{}, isRoot: true},
	} {
		t.Run(row.name, func(t *testing.T) {
			collector := tracestest.New(t)
			tracer := started(t, collector.URL, zerolog.Nop())
			if row.request.Meta == nil {
				row.request.Meta = []byte(`{"traceparent":"` + parent + `","tracestate":"a=1","baggage":"b=2"}`)
			}
			r := row.request
			ctx, received := tracer.Receive(t.Context(), server.TracedRequest{Method: "tools/call", Params: r.Params, Meta: r.Meta, ID: r.ID, Revision: r.Revision, Profile: r.Profile})
			meta, sent := tracer.Send(ctx, registry.TracedRequest{Method: "tools/call", Params: r.Params, Meta: r.Meta, Profile: r.Profile, Server: r.Server, Transport: r.Transport})
			sent.End([]byte(row.result), row.failure)
			received.End([]byte(row.result), row.failure)
			tracer.Close()

			maps.Copy(row.want, method)
			spans := collector.Spans(row.span)
			if len(spans) != 2 || !spans[0].IsClient || spans[1].IsClient {
				t.Fatalf("spans %+v of %q, want one of a client, then one of a server", spans, collector.Names())
			}
			inner, outer := spans[0], spans[1]
			for _, s := range spans {
				if want := attributesOf(s.IsClient, row.want); !maps.Equal(s.Attributes, want) || s.IsError != (row.want["error.type"] != "") || s.Text != "" {
					t.Errorf("span %+v, want %v", s, want)
				}
			}
			isRoot := outer.Parent == ""
			if isRoot != row.isRoot || !isRoot && (outer.Trace != traceID || outer.Parent != parentID) || inner.Parent != outer.ID || inner.Trace != outer.Trace {
				t.Errorf("%+v is the parent of %+v", outer, inner)
			}
			if got, _ := rawjson.String(rawjson.Get(meta, "traceparent")); got != "00-"+inner.Trace+"-"+inner.ID+"-01" {
				t.Errorf("the upstream gets %s", meta)
			}
			if hasState := rawjson.Get(meta, "tracestate") != nil; hasState == row.isRoot {
				t.Errorf("the upstream gets %s", meta)
			}
			if rawjson.Get(row.request.Meta, "baggage") != nil && rawjson.Get(meta, "baggage") == nil {
				t.Errorf("the upstream gets no baggage: %s", meta)
			}
			if sender := collector.Sender(); sender["service.name"] != "mcpx" || sender["service.version"] != "1.2.3" {
				t.Errorf("the sender is %v", sender)
			}
		})
	}
}

// TestRequestsOfMcpxItself: they have no span, and their _meta stays as it is.
func TestRequestsOfMcpxItself(t *testing.T) {
	tracer := started(t, tracestest.New(t).URL, zerolog.Nop())
	if meta, span := tracer.Send(t.Context(), registry.TracedRequest{Method: "tools/list"}); span != nil || meta != nil {
		t.Errorf("span %v, _meta %s", span, meta)
	}
}

// TestNoMeta: a request without _meta gets none.
func TestNoMeta(t *testing.T) {
	tracer := started(t, tracestest.New(t).URL, zerolog.Nop())
	ctx, received := tracer.Receive(t.Context(), server.TracedRequest{Method: "prompts/get"})
	meta, sent := tracer.Send(ctx, registry.TracedRequest{Method: "prompts/get"})
	if sent == nil || meta != nil {
		t.Errorf("span %v, _meta %s", sent, meta)
	}
	sent.End(nil, "")
	received.End(nil, "")
}

// TestACollectorThatFails: it is logged once, without its own words.
func TestACollectorThatFails(t *testing.T) {
	const secret = "s3cret"
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key="+secret)
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte("wrong key " + r.Header.Get("X-Key")))
	}))
	t.Cleanup(refusing.Close)
	for _, row := range []struct{ name, url, want string }{
		{"refuses", refusing.URL, "401 Unauthorized"},
		{"is not there", "http://127.0.0.1:1", "nothing listens on 127.0.0.1:1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var log bytes.Buffer
			tracer := started(t, row.url, zerolog.New(&log))
			for range 5 {
				_, span := tracer.Receive(t.Context(), server.TracedRequest{Method: "ping"})
				span.End(nil, "")
			}
			tracer.Close()
			if got := log.String(); strings.Count(got, "the collector did not accept the spans") != 1 || !strings.Contains(got, row.want) || strings.Contains(got, secret) {
				t.Errorf("log %s", got)
			}
		})
	}
}

// TestCloseDoesNotWaitForever: a collector that never answers does not keep Close, and
// the request to it ends.
func TestCloseDoesNotWaitForever(t *testing.T) {
	mcptest.NothingLeft(t)
	ended := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = http.MaxBytesReader(nil, r.Body, 1<<20).Read(make([]byte, 1<<20))
		<-r.Context().Done() // the client has gone
		close(ended)
	}))
	t.Cleanup(hanging.Close)
	tracer := started(t, hanging.URL, zerolog.Nop())
	_, span := tracer.Receive(t.Context(), server.TracedRequest{Method: "ping"})
	span.End(nil, "")
	tracer.Close()
	<-ended
}

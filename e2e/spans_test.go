package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
	"mcpx/internal/parts/traces/tracestest"
)

// The span of the client in these tests.
const (
	clientTrace = "0af7651916cd43dd8448eb211c80319c"
	clientSpan  = "b7ad6b7169203331"
	traceMeta   = `"_meta":{"traceparent":"00-` + clientTrace + `-` + clientSpan + `-01","baggage":"user=1"}`
)

// traced adds the client's span to params.
func traced(params string) string { return strings.Replace(params, "{", "{"+traceMeta+",", 1) }

// collectorAt returns the environment that names a collector.
func collectorAt(url string) []string { return []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + url} }

// spanPair returns the only server span and the only client span with these names.
func spanPair(t *testing.T, c *tracestest.Collector, server, client string) (outer, inner tracestest.Span) {
	t.Helper()
	is := func(isClient bool) func(s tracestest.Span) bool {
		return func(s tracestest.Span) bool { return s.IsClient != isClient }
	}
	outers, inners := slices.DeleteFunc(c.Spans(server), is(false)), slices.DeleteFunc(c.Spans(client), is(true))
	if len(outers) != 1 || len(inners) != 1 {
		t.Fatalf("the collector has %q, want one server span %q and one client span %q", c.Names(), server, client)
	}
	outer, inner = outers[0], inners[0]
	if outer.Trace != clientTrace || outer.Parent != clientSpan || inner.Trace != clientTrace || inner.Parent != outer.ID {
		t.Errorf("the client's span > %+v > %+v is not one trace", outer, inner)
	}
	return outer, inner
}

// wantAbsent fails the test if a span has one of these secrets.
func wantAbsent(t *testing.T, c *tracestest.Collector, secrets ...string) {
	t.Helper()
	for _, span := range c.Spans("") {
		for _, secret := range secrets {
			if text := fmt.Sprint(span); strings.Contains(text, secret) {
				t.Errorf("a span has %q: %s", secret, text)
			}
		}
	}
}

// TestSpansAreOneTrace: client, mcpx and upstream see one trace, whatever the front, the
// mode, and the upstream's transport and revision are.
func TestSpansAreOneTrace(t *testing.T) {
	t.Parallel()
	stdio := func(flags ...string) func(t *testing.T) map[string]any {
		return func(t *testing.T) map[string]any { return mcptest.Upstream(t, flags...) }
	}
	for _, row := range []struct {
		name, expose, transport string
		upstream                func(t *testing.T) map[string]any
	}{
		{"exec, stdio", "lazy", "pipe", stdio()},
		{"flat, stdio", "flat", "pipe", stdio()},
		{"exec, 2026-07-28", "lazy", "pipe", stdio("-only-2026")},
		{"exec, HTTP", "lazy", "tcp", func(t *testing.T) map[string]any { return remoteChild(t) }},
		{"flat, HTTP", "flat", "tcp", func(t *testing.T) map[string]any { return remoteChild(t) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			collector := tracestest.New(t)
			config := map[string]any{"expose": row.expose, "mcpServers": map[string]any{"a": row.upstream(t)}}
			p := start(t, config, options{env: collectorAt(collector.URL)})
			p.initialize()
			params, name := execParams("a", "params", `{"key":"s3cret"}`), "exec"
			if row.expose == "flat" {
				params, name = `{"name":"a__params","arguments":{"key":"s3cret"}}`, "a__params"
				p.listUntil("tools", name)
			}
			received := p.text(traced(params), false)
			p.stop()
			p.waitEnd(stopTime)

			outer, inner := spanPair(t, collector, "tools/call "+name, "tools/call params")
			meta := memberOf([]byte(received), "_meta")
			if got, want := memberOf([]byte(meta), "traceparent"), `"00-`+clientTrace+`-`+inner.ID+`-01"`; got != want || memberOf([]byte(meta), "baggage") != `"user=1"` {
				t.Errorf("the upstream got %s, want traceparent %s", meta, want)
			}
			if a := inner.Attributes; a["mcpx.server"] != "a" || a["network.transport"] != row.transport || a["gen_ai.tool.name"] != "params" || inner.IsError || outer.IsError {
				t.Errorf("server span %+v, client span %+v", outer, inner)
			}
			wantAbsent(t, collector, "s3cret")
		})
	}
}

// TestSpansOfOtherRequests: prompts and resources have spans, too; so do calls that fail.
func TestSpansOfOtherRequests(t *testing.T) {
	t.Parallel()
	collector := tracestest.New(t)
	s := serveHTTP(t, one(t, "-full"), options{env: collectorAt(collector.URL)})
	c := s.client("/mcp")
	c.result("tools/call", execParams("a", "echo", `{"text":"a"}`)) // the lists are known then
	c.result("prompts/get", traced(`{"name":"a__plain"}`))
	c.result("resources/read", traced(`{"uri":"item://s3cret"}`))
	c.sendRequest("resources/read", traced(`{"uri":"item://missing"}`)).answer()
	c.result("tools/call", traced(`{"name":"inspect","arguments":{"server_name":"nobody"}}`))
	c.headers = []string{"Traceparent", "00-" + clientTrace + "-" + clientSpan + "-01"}
	c.result("tools/call", execParams("a", "arguments", "{}"))
	c.result("tools/call", params2026(execParams("a", "arguments", "{}"), "{}"))
	s.stop()
	s.waitEnd(stopTime)
	if runtime.GOOS == "windows" {
		t.Skip("mcpx was killed, because there are no signals")
	}
	wantAbsent(t, collector, c.session, "s3cret")
	spanPair(t, collector, "prompts/get a__plain", "prompts/get plain")
	var kinds []string
	for _, span := range collector.Spans("resources/read") {
		kinds = append(kinds, span.Attributes["error.type"])
	}
	if slices.Sort(kinds); !slices.Equal(kinds, []string{"", "", "-32002", "-32002"}) {
		t.Errorf("reads ended with %q", kinds)
	}
	if failed := collector.Spans("tools/call inspect"); len(failed) != 1 || failed[0].Attributes["error.type"] != "tool_error" || failed[0].Attributes["mcp.protocol.version"] != "2025-11-25" {
		t.Errorf("inspect of an unknown server: %+v", failed)
	}
	if calls := collector.Spans("tools/call arguments"); len(calls) != 2 || calls[0].Trace != clientTrace || calls[1].Trace != clientTrace {
		t.Errorf("calls with the trace in their headers: %+v", calls)
	}
}

// TestSpansWithoutACollector: a collector that is gone, or never answers, neither fails a
// call nor keeps mcpx from stopping.
func TestSpansWithoutACollector(t *testing.T) {
	t.Parallel()
	const gone = "http://127.0.0.1:1" // nothing listens there
	silent := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-silent }))
	t.Cleanup(func() {
		close(silent)
		hanging.Close()
	})
	for name, url := range map[string]string{"gone": gone, "never answers": hanging.URL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, one(t), options{env: append(collectorAt(url), "OTEL_BSP_SCHEDULE_DELAY=1")})
			p.initialize()
			for range 20 {
				if got := p.exec("a", "echo", `{"text":"hello"}`); got != "hello" {
					t.Errorf("got %q", got)
				}
			}
			p.stop()
			p.waitEnd(stopTime)
			if n := p.stderrCount("the collector did not accept the spans"); n > 1 || n == 0 && url == gone {
				t.Errorf("%d lines about the collector:\n%s", n, p.errors())
			}
		})
	}
}

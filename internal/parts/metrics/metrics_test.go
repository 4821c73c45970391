package metrics

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpx/config"
	"mcpx/executor"
	"mcpx/registry"
)

// start returns Metrics of a profile with the server a, which does not run, and an executor of
// its calls.
func start(t *testing.T) (*Metrics, *executor.Executor) {
	t.Helper()
	c, err := config.Parse(filepath.Join(t.TempDir(), "mcpx.json"), []byte(`{"mcpServers":{"a":{"command":"true"}}}`), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	p := &c.Profiles[0]
	r := registry.New(p, registry.Options{})
	m := New(func() []Profile { return []Profile{{p.Name, p.Expose, r.Catalog()}} }, func() int { return 7 })
	return m, executor.New(r, c, p, executor.Options{Observers: executor.Observers{m.Observe}})
}

func TestMetrics(t *testing.T) {
	m, _ := start(t)
	m.Add(Number{"mcpx_up", "1.", func() float64 { return 1 }}, Number{"mcpx_more_total", "2.", func() float64 { return 2 }})
	m.Observe(executor.Event{Profile: "default", Server: "a", Outcome: "ok", Took: 20 * time.Millisecond, BytesIn: 5, BytesOut: 9})
	m.Observe(executor.Event{Profile: "default", Server: "made up by a client", Outcome: "not_found"})
	m.Observe(executor.Event{Profile: "default", Server: "a", Outcome: "not_found"})
	w := httptest.NewRecorder()
	m.handler(func() {
		m.Observe(executor.Event{Profile: "default", Server: "a", Outcome: "timeout"})
	}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	for _, want := range []string{
		`mcpx_calls_total{outcome="ok",schema="default",server="a"} 1`,
		`mcpx_calls_total{outcome="not_found",schema="default",server="unknown"} 1`,
		`mcpx_calls_total{outcome="not_found",schema="default",server="a"} 1`, // it has no such tool
		`mcpx_call_seconds_count{outcome="ok",schema="default",server="a"} 1`,
		`mcpx_call_bytes_total{direction="in",outcome="ok",schema="default",server="a"} 5`,
		`mcpx_call_bytes_total{direction="out",outcome="ok",schema="default",server="a"} 9`,
		`mcpx_calls_total{outcome="timeout",schema="default",server="a"} 1`, // counted by flush
		`mcpx_sessions 7`,
		"# TYPE mcpx_up gauge\nmcpx_up 1",
		"# TYPE mcpx_more_total counter\nmcpx_more_total 2",
		`mcpx_upstream_state{schema="default",server="a",state="starting"} 1`,
		`mcpx_upstream_state{schema="default",server="a",state="ready"} 0`,
		`mcpx_upstream_tools{schema="default",server="a"} 0`,
		`mcpx_tokens_saved{schema="default"} 0`,
	} {
		if !strings.Contains(w.Body.String(), want+"\n") {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(w.Body.String(), "made up") {
		t.Error("a client's words are a label")
	}
}

// TestMetricLabels: label values come from the config and from mcpx itself. Names
// that clients invent must not become time series, however their calls end.
func TestMetricLabels(t *testing.T) {
	m, e := start(t)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	late, stop := context.WithTimeout(t.Context(), -1)
	defer stop()
	for _, ctx := range []context.Context{t.Context(), canceled, late} {
		_, _ = e.Call(ctx, executor.Call{Server: "invented", Tool: "invented"})
		_, _ = e.Call(ctx, executor.Call{Tool: "invented__invented"})
		_, _ = e.Call(ctx, executor.Call{Server: executor.Builtin, Tool: "invented"})
		_, _ = e.Call(ctx, executor.Call{Server: executor.Builtin, Tool: "servers"})
	}
	for _, outcome := range []string{"ok", "error", "failed", "invalid", "lost", "timeout", "cancelled", "unavailable"} {
		m.Observe(executor.Event{Profile: "default", Server: "invented", Outcome: outcome})
	}
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string][]string{"schema": {"default"}, "server": {"a", "mcpx", "unknown"}, "direction": {"in", "out"}}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if values := known[label.GetName()]; values != nil && !slices.Contains(values, label.GetValue()) {
					t.Errorf("%s has the label %s=%q", family.GetName(), label.GetName(), label.GetValue())
				}
			}
		}
	}
}

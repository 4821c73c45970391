package app

import (
	"context"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpx/config"
	"mcpx/executor"
)

func TestMetrics(t *testing.T) {
	c, err := config.Parse(filepath.Join(t.TempDir(), "mcpx.json"), []byte(`{"mcpServers":{"a":{"command":"true"}}}`), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(c, "default", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	m := newMetrics(a.Profiles, func() int { return 7 })
	a.metrics = m
	a.logCall(executor.Event{Schema: "default", Server: "a", Outcome: "ok", Took: 20 * time.Millisecond, BytesIn: 5, BytesOut: 9})
	a.logCall(executor.Event{Schema: "default", Server: "made up by a client", Outcome: "not_found"})
	a.logCall(executor.Event{Schema: "default", Server: "a", Outcome: "not_found"})
	w := httptest.NewRecorder()
	m.handler(a.log.Flush).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	for _, want := range []string{
		`mcpx_calls_total{outcome="ok",schema="default",server="a"} 1`,
		`mcpx_calls_total{outcome="not_found",schema="default",server="unknown"} 1`,
		`mcpx_calls_total{outcome="not_found",schema="default",server="a"} 1`, // it has no such tool
		`mcpx_call_seconds_count{outcome="ok",schema="default",server="a"} 1`,
		`mcpx_call_bytes_total{direction="in",outcome="ok",schema="default",server="a"} 5`,
		`mcpx_call_bytes_total{direction="out",outcome="ok",schema="default",server="a"} 9`,
		`mcpx_sessions 7`,
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
	c, err := config.Parse(filepath.Join(t.TempDir(), "mcpx.json"), []byte(`{"mcpServers":{"a":{"command":"true"}}}`), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(c, "default", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	m := newMetrics(a.Profiles, func() int { return 0 })
	a.metrics = m
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, stop := context.WithTimeout(t.Context(), -1)
	defer stop()
	for _, ctx := range []context.Context{t.Context(), cancelled, late} {
		_, _ = a.Profiles()[0].Executor.Do(ctx, executor.Call{Server: "invented", Tool: "invented"})
		_, _ = a.Profiles()[0].Executor.Do(ctx, executor.Call{Tool: "invented__invented"})
		_, _ = a.Profiles()[0].Executor.Do(ctx, executor.Call{Server: executor.Builtin, Tool: "invented"})
		_, _ = a.Profiles()[0].Executor.Do(ctx, executor.Call{Server: executor.Builtin, Tool: "servers"})
	}
	for _, outcome := range []string{"ok", "error", "failed", "invalid", "lost", "timeout", "cancelled", "unavailable"} {
		a.logCall(executor.Event{Schema: "default", Server: "invented", Outcome: outcome})
	}
	a.log.Flush()
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

func TestNew(t *testing.T) {
	parse := func(text string) *config.Config {
		c, err := config.Parse(filepath.Join(t.TempDir(), "mcpx.json"), []byte(text), os.LookupEnv)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	two := `{"schemas":{"default":{"mcpServers":{}},"work":{"mcpServers":{}},"off":{"enabled":false,"mcpServers":{}}}}`
	for _, row := range []struct {
		name, config, schema, want string
	}{
		{"all that are enabled", two, "", "default work"},
		{"one", two, "work", "work"},
		{"none of that name", two, "nope", "no such schema"},
		{"one that is off", two, "off", "not enabled"},
		{"none enabled", `{"schemas":{"off":{"enabled":false,"mcpServers":{}}}}`, "", "no schema is enabled"},
	} {
		a, err := New(parse(row.config), row.schema, io.Discard)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			for _, p := range a.Profiles() {
				got = strings.TrimSpace(got + " " + p.Name)
			}
		}
		if !strings.Contains(got, row.want) {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
}

// TestOpenToAll: without a token, mcpx does not listen for other machines.
func TestOpenToAll(t *testing.T) {
	c, err := config.Parse(filepath.Join(t.TempDir(), "mcpx.json"), []byte(`{"server":{"host":"0.0.0.0"},"mcpServers":{}}`), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(c, "", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.ListenHTTP(t.Context()); err == nil || !strings.Contains(err.Error(), "a token is needed") {
		t.Error(err)
	}
}

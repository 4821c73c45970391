package e2e

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// metrics returns the samples of /metrics by name and labels, as written.
func (s *site) metrics(t *testing.T, token string) map[string]float64 {
	t.Helper()
	c := s.caller("")
	c.token = token
	x := c.try(http.MethodGet, "/metrics", "")
	x.want(t, "/metrics", http.StatusOK, "mcpx_")
	samples := map[string]float64{}
	for line := range strings.Lines(x.body) {
		at := strings.LastIndexByte(line, ' ')
		if strings.HasPrefix(line, "#") || at < 0 {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(line[at:]), 64)
		if err != nil {
			t.Fatalf("a sample that is none: %s", line)
		}
		samples[line[:at]] = value
	}
	return samples
}

// TestHTTPMetrics: /metrics needs the token, and counts calls, sessions and the state of
// upstreams. Names that a client invents are no labels.
func TestHTTPMetrics(t *testing.T) {
	t.Parallel()
	config := map[string]any{
		"mcpServers": map[string]any{"a": mcptest.Upstream(t, "-full"), "dead": mcptest.Upstream(t, "-exit", "3")},
		"server":     map[string]any{"token": "s3cret-token"},
	}
	s := serveHTTP(t, config, options{})
	s.caller("/mcp").try(http.MethodGet, "/metrics", "").want(t, "without the token", http.StatusUnauthorized, "Bearer")
	c := s.caller("/mcp")
	c.token = "s3cret-token"
	c.initialize()
	const text = "twelve bytes"
	for range 3 {
		c.exec("a", "echo", fmt.Sprintf(`{"text":%q}`, text))
	}
	for _, v := range []struct{ server, tool string }{{"a", "echo"}, {"a", "crash"}, {"dead", "echo"}, {"made up by a client", "echo"}} {
		textOf(t, c.result("tools/call", execParams(v.server, v.tool, "")), true)
	}
	c.exec("a", "sleep", `{"ms":300,"text":"x"}`)
	got := s.metrics(t, c.token)
	for sample, want := range map[string]float64{
		`mcpx_calls_total{outcome="ok",schema="default",server="a"}`:                   4,
		`mcpx_calls_total{outcome="invalid",schema="default",server="a"}`:              1,
		`mcpx_calls_total{outcome="lost",schema="default",server="a"}`:                 1,
		`mcpx_calls_total{outcome="unavailable",schema="default",server="dead"}`:       1,
		`mcpx_calls_total{outcome="not_found",schema="default",server="unknown"}`:      1,
		`mcpx_call_seconds_bucket{outcome="ok",schema="default",server="a",le="+Inf"}`: 4,
		`mcpx_sessions`: 1,
		`mcpx_upstream_state{schema="default",server="a",state="ready"}`:    1,
		`mcpx_upstream_state{schema="default",server="dead",state="ready"}`: 0,
	} {
		if value, ok := got[sample]; !ok || value != want {
			t.Errorf("%s is %v (%t), want %v", sample, value, ok, want)
		}
	}
	for sample, least := range map[string]float64{
		`mcpx_call_seconds_sum{outcome="ok",schema="default",server="a"}`:                0.3,
		`mcpx_call_bytes_total{direction="in",outcome="ok",schema="default",server="a"}`: float64(3 * len(text)),
		`mcpx_upstream_tools{schema="default",server="a"}`:                               5,
		`mcpx_tokens_saved{schema="default"}`:                                            200,
		`process_resident_memory_bytes`:                                                  1 << 20,
	} {
		if got[sample] < least {
			t.Errorf("%s is %v, want at least %v", sample, got[sample], least)
		}
	}
	for sample := range got {
		if strings.Contains(sample, "made up") {
			t.Errorf("a client's words are a label: %s", sample)
		}
	}
	eventually(t, "the dead upstream is not waiting", func() (string, bool) {
		return "", s.metrics(t, c.token)[`mcpx_upstream_state{schema="default",server="dead",state="waiting"}`] == 1
	})
	c.try(http.MethodDelete, "/mcp", "").want(t, "DELETE", http.StatusNoContent, "")
	if got := s.metrics(t, c.token)["mcpx_sessions"]; got != 0 {
		t.Errorf("%v sessions after the end of the only one", got)
	}
}

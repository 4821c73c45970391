package registry

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// stderrLines is how many lines of a child's stderr are kept.
const stderrLines = 10

// TestStderrOfAReadyUpstream: the last lines are there while it runs, redacted,
// and change as it writes more. Lines that are all secret are kept as one.
func TestStderrOfAReadyUpstream(t *testing.T) {
	a := mcptest.Upstream(t, "-full", "-token", "the-token-1")
	a["env"].(map[string]string)["API_KEY"] = key
	r, l := run(t, map[string]any{"a": a})
	u, err := r.Ready(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	l.wait(t, `"line":"bad token ***, bad key ***"`)
	l.waitFor(t, `"line":"***"`, 2)
	if got, want := u.LatestStderr(), []string{"bad token ***, bad key ***", "***"}; !slices.Equal(got, want) || u.Stderr != nil {
		t.Errorf("kept %q and %q, want %q", got, u.Stderr, want)
	}
	for range stderrLines + 2 {
		if _, err := r.Call(t.Context(), "a", Request{Method: "logging/setLevel", Params: []byte(`{"level":"info"}`)}); err != nil {
			t.Fatal(err)
		}
	}
	l.waitFor(t, `"line":"logging/setLevel info"`, stderrLines+2)
	if got := u.LatestStderr(); len(got) != stderrLines || got[0] != "logging/setLevel info" {
		t.Errorf("kept %q", got)
	}
	_, err = callTool(t.Context(), r, "a", "crash", `{"status":7,"stderr":"out of memory"}`)
	if got := u.LatestStderr(); err == nil || got[len(got)-1] != "out of memory" {
		t.Errorf("kept %q after %v", got, err)
	}
}

// TestStderrOfAServerThatStarts: a call that has waited for as long as it may shows
// what the server has written so far, and does not wait until the server is stopped.
func TestStderrOfAServerThatStarts(t *testing.T) {
	a := mcptest.Upstream(t, "-start-delay", "1h", "-stderr", "loading the model", "-ignore-eof", "-ignore-term")
	a["startup_timeout"] = "1s"
	r, _ := run(t, map[string]any{"a": a})
	begin := time.Now()
	_, err := callTool(t.Context(), r, "a", "echo", `{"text":"x"}`)
	var unavailable *Unavailable
	if !errors.As(err, &unavailable) || !strings.Contains(err.Error(), "startup_timeout") || !strings.Contains(err.Error(), "loading the model") {
		t.Errorf("error %v", err)
	}
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("the call waited for %s", took)
	}
}

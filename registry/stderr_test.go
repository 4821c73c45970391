package registry

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/mcptest"
)

// TestLongLinesOfStderr: a line is redacted before it is cut, also if it is much
// longer than what is kept.
func TestLongLinesOfStderr(t *testing.T) {
	secret := strings.Repeat("abc123", 5000)
	c, err := config.Parse("x.json", []byte(`{"mcpServers":{"a":{"command":"x","env":{"API_KEY":"`+secret+`"}}}}`), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	tail := newStderrTail(c.Profiles[0].Upstreams[0].Redact, zerolog.Nop())
	go tail.drain(r)
	for _, text := range []string{"bad key: ", secret, ".\nnext\n", strings.Repeat("x", 1<<20), "\nlast"} {
		if _, err := w.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	<-tail.drained
	want := []string{"bad key: ***.", "next", strings.Repeat("x", stderrLineBytes-len("…")) + "…", "last"}
	if got := tail.lines(); !slices.Equal(got, want) {
		t.Errorf("kept %q, want %q", got, want)
	}
	if got := excerpt(tail.redact, []byte("a stray "+secret+" line")); got != "a stray *** line" {
		t.Errorf("an excerpt is %q", got)
	}
}

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
	if took := time.Since(begin); took > stopByStdin+time.Second {
		t.Errorf("the call waited for %s", took)
	}
}

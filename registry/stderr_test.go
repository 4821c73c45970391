package registry

import (
	"os"
	"slices"
	"strings"
	"testing"

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

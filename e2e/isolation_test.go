package e2e

import (
	"strconv"
	"testing"

	"mcpx/internal/mcptest"
)

// TestIsolation: with "isolation": "client" a client has an upstream session of its own.
// It starts with the first call, is replaced when it dies, receives the notifications that
// the client sends to upstreams, and ends with the client.
func TestIsolation(t *testing.T) {
	t.Parallel()
	own := mcptest.Upstream(t, "-full", "-report")
	own["isolation"] = "client"
	p := start(t, map[string]any{"mcpServers": map[string]any{"own": own}}, options{flags: []string{"--log-level", "debug"}})
	p.initializeAs("2025-11-25", `{"roots":{"listChanged":true}}`)
	p.inspect("own", "") // lists come from the shared session
	const started = `line="got initialize"`
	p.waitStderrCount(started, 1)
	if n := p.stderrCount(started); n != 1 {
		t.Errorf("%d sessions before the first call, want 1", n)
	}
	first := p.exec("own", "pid", "")
	p.waitStderrCount(started, 2)
	if again := p.exec("own", "pid", ""); again != first {
		t.Errorf("the second call found process %s, the first %s", again, first)
	}
	p.notify("notifications/roots/list_changed", "{}")
	if got := p.exec("own", "heard", `{"method":"notifications/roots/list_changed"}`); got != "1" {
		t.Errorf("the client's own session was notified %s times, want once", got)
	}
	p.result("logging/setLevel", `{"level":"debug"}`)
	p.waitStderrCount(`line="logging/setLevel debug"`, 2) // both sessions
	p.result("resources/subscribe", `{"uri":"test://one"}`)
	p.execError("own", "crash", `{"status":1}`)
	second := p.exec("own", "pid", "")
	if second == first {
		t.Error("the next call found the dead process")
	}
	p.waitStderrCount(`line="resources/subscribe test://one"`, 2)
	p.exec("own", "say", `{"method":"notifications/resources/updated","params":[{"uri":"test://one"}]}`)
	p.waitReceived("notifications/resources/updated", 1)
	if n := p.stderrCount(started); n != 3 {
		t.Errorf("%d sessions in all, want 3", n)
	}
	_ = p.stdin.Close()
	p.waitEnd(stopTime)
	for _, pid := range []string{first, second} {
		if n, err := strconv.Atoi(pid); err != nil || mcptest.Alive(n) {
			t.Errorf("process %s is left (%v)", pid, err)
		}
	}
}

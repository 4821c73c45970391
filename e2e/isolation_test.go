package e2e

import (
	"strconv"
	"testing"

	"mcpx/internal/mcptest"
)

// TestIsolation: with "isolation": "client" a client has a session of its own,
// which starts with its first call, takes the place of one that died, and ends
// with the client.
func TestIsolation(t *testing.T) {
	t.Parallel()
	own := mcptest.Upstream(t, "-full", "-report")
	own["isolation"] = "client"
	p := start(t, map[string]any{"mcpServers": map[string]any{"own": own}}, options{flags: []string{"--log-level", "debug"}})
	p.initializeAs("2025-11-25", `{"roots":{}}`)
	p.inspect("own", "") // lists come from the session that all share
	const greeted = `line="got initialize"`
	p.waitStderrCount(greeted, 1)
	if n := p.stderrCount(greeted); n != 1 {
		t.Errorf("%d sessions before the first call, want 1", n)
	}
	first := p.exec("own", "pid", "")
	p.waitStderrCount(greeted, 2)
	if again := p.exec("own", "pid", ""); again != first {
		t.Errorf("the second call found process %s, the first %s", again, first)
	}
	p.result("resources/subscribe", `{"uri":"test://one"}`)
	p.execError("own", "crash", `{"status":1}`)
	second := p.exec("own", "pid", "")
	if second == first {
		t.Error("the next call found the dead process")
	}
	p.waitStderrCount(`line="resources/subscribe test://one"`, 2)
	p.exec("own", "say", `{"method":"notifications/resources/updated","params":[{"uri":"test://one"}]}`)
	p.waitTold("notifications/resources/updated", 1)
	if n := p.stderrCount(greeted); n != 3 {
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

// TestListsNeedNoSessionOfTheirOwn: what is listed is the same in both ways.
func TestListsNeedNoSessionOfTheirOwn(t *testing.T) {
	t.Parallel()
	own, shared := mcptest.Upstream(t, "-full"), mcptest.Upstream(t, "-full")
	own["isolation"] = "client"
	for _, method := range []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list"} {
		var lists []string
		for _, upstream := range []map[string]any{own, shared} {
			p := start(t, flat(map[string]any{"one": upstream}), options{})
			p.initialize()
			p.waitStderr("upstream ready")
			lists = append(lists, p.result(method, ""))
		}
		if lists[0] != lists[1] {
			t.Errorf("%s: isolated\n%s\nshared\n%s", method, lists[0], lists[1])
		}
	}
}

// TestIsolatedSessionsAreTold: what a client tells upstreams reaches the session
// that is its own.
func TestIsolatedSessionsAreTold(t *testing.T) {
	t.Parallel()
	open := func(t *testing.T) *process {
		own := mcptest.Upstream(t, "-full")
		own["isolation"] = "client"
		p := start(t, map[string]any{"mcpServers": map[string]any{"own": own}}, options{flags: []string{"--log-level", "debug"}})
		p.initializeAs("2025-11-25", `{"roots":{"listChanged":true}}`)
		p.exec("own", "pid", "") // from here on it has a session
		return p
	}
	t.Run("roots/list_changed", func(t *testing.T) {
		t.Parallel()
		p := open(t)
		p.notify("notifications/roots/list_changed", "{}")
		if got := p.exec("own", "heard", `{"method":"notifications/roots/list_changed"}`); got != "1" {
			t.Errorf("the client's own session heard of it %s times, want 1", got)
		}
	})
	t.Run("logging/setLevel", func(t *testing.T) {
		t.Parallel()
		p := open(t)
		p.waitStderr("upstream ready")
		p.result("logging/setLevel", `{"level":"debug"}`)
		settled(t, "sessions that were told the level, want 2", func() (string, bool) {
			n := p.stderrCount(`line="logging/setLevel debug"`)
			return strconv.Itoa(n), n == 2
		})
	})
}

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// fourUpstreams returns one that does not exist, one that exits at once, one that takes
// 5 s to start, and a good one.
func fourUpstreams(t *testing.T) map[string]any {
	return map[string]any{
		"exits": mcptest.Upstream(t, "-exit", "3", "-stderr", "no API key\nset API_KEY"),
		"gone":  map[string]any{"command": "mcpx-no-such-program"},
		"good":  mcptest.Upstream(t),
		"slow":  mcptest.Upstream(t, "-start-delay", "5s"),
	}
}

// TestGoodUpstreamServesAtOnce: upstreams that fail or start slowly do not delay a good
// one. The test runs alone and takes the best of several runs, to measure mcpx and not
// the load of the machine.
func TestGoodUpstreamServesAtOnce(t *testing.T) {
	limit := 300 * time.Millisecond
	if race {
		limit = 3 * time.Second
	}
	best := time.Hour
	for range 20 {
		p := serve(t, fourUpstreams(t))
		p.initialize()
		if got := p.exec("good", "echo", `{"text":"hello"}`); got != "hello" {
			t.Fatalf("got %q", got)
		}
		best = min(best, time.Since(p.begin))
		if best <= limit {
			return
		}
	}
	within(t, "the first exec after the start", best, limit)
}

// TestUnavailableUpstreamsGiveTheirReason: inspect and exec say why an upstream is not
// available, with its last lines of stderr, and wait for one that is starting.
func TestUnavailableUpstreamsGiveTheirReason(t *testing.T) {
	t.Parallel()
	upstreams := fourUpstreams(t)
	never := mcptest.Upstream(t, "-start-delay", "1h", "-stderr", "thinking")
	never["startup_timeout"] = "5s" // enough to write to stderr
	upstreams["never"] = never
	p := serve(t, upstreams)
	p.initialize()
	if got := p.inspect("slow", ""); !strings.HasPrefix(got, "slow: ") || !strings.Contains(got, " tools\necho(text: string") {
		t.Errorf("the slow one, once it is up:\n%s", got)
	}
	within(t, "waiting for the slow one", time.Since(p.begin), 5*time.Second+patience/2)
	for server, want := range map[string]struct{ before, after string }{
		"exits": {`server "exits" is unavailable: exited with status 3; next try in `, "\nlast lines of its stderr:\n  no API key\n  set API_KEY"},
		"gone":  {`server "gone" is unavailable: command "mcpx-no-such-program" was not found in PATH; install it, or give its full path; next try in `, "s"},
		"never": {`server "never" is unavailable: not ready within 5s (its "startup_timeout"); next try in `, "\nlast lines of its stderr:\n  thinking"},
	} {
		for what, ask := range map[string]func() string{
			"inspect":        func() string { return p.inspectError(server, "") },
			"inspect a tool": func() string { return p.inspectError(server, "echo") },
			"exec":           func() string { return p.execError(server, "echo", `{"text":"x"}`) },
		} {
			eventually(t, what+" of "+server, func() (string, bool) { // it may be starting again
				got := ask()
				return got, strings.HasPrefix(got, want.before) && strings.HasSuffix(got, want.after) && strings.Count(got, "\n") == strings.Count(want.after, "\n")
			})
		}
	}
}

// TestFrontAnswersWhileUpstreamsStart: no request for mcpx itself waits for upstreams.
// The test runs alone, too.
func TestFrontAnswersWhileUpstreamsStart(t *testing.T) {
	upstreams := map[string]any{}
	for i := range 20 { // more than connect at once
		upstreams[fmt.Sprintf("slow%d", i)] = mcptest.Upstream(t, "-start-delay", "1h")
	}
	limit := 2 * time.Second
	if race {
		limit = 10 * time.Second
	}
	best := time.Hour
	for try := 0; try < 5 && best > limit; try++ {
		p := serve(t, upstreams)
		p.initialize()
		p.result("tools/list", "")
		p.result("ping", "")
		p.exec("mcpx", "servers", "{}")
		best = min(best, time.Since(p.begin))
	}
	within(t, "initialize, tools/list, ping and servers", best, limit)
}

// TestToolsListNeverChanges: in lazy mode tools/list returns the same bytes while
// upstreams start, change and die, and in another run, and no change is announced.
func TestToolsListNeverChanges(t *testing.T) {
	t.Parallel()
	late := mcptest.Upstream(t, "-start-delay", "300ms")
	late["description"] = "a late one"
	config := map[string]any{"mcpServers": map[string]any{
		"good": mcptest.Upstream(t),
		"gone": map[string]any{"command": "mcpx-no-such-program"},
		"late": late,
	}}
	var want string
	list := func(p *process, when string) {
		t.Helper()
		for _, params := range []string{"", "{}", `{"_meta":{"progressToken":1}}`} {
			got := p.result("tools/list", params)
			if want == "" {
				want = got
			}
			if got != want {
				t.Fatalf("%s, params %q:\n%s\nwant\n%s", when, params, got, want)
			}
		}
	}
	for run := range 2 {
		p := start(t, config, options{})
		list(p, fmt.Sprint("at first, run ", run))
		p.initialize()
		p.inspect("late", "")
		p.inspect("good", "")
		list(p, "when all are ready")
		p.exec("good", "change", `{"notices":1}`)
		eventually(t, "the new tool", func() (string, bool) {
			result := p.result("tools/call", inspectParams("good", "extra_0"))
			return result, !strings.Contains(result, `"isError":true`)
		})
		list(p, "when tools changed")
		p.execError("good", "crash", `{"status":1}`)
		list(p, "when one died")
		p.execError("gone", "x", "{}")
		list(p, "at last")
		if got := p.received("notifications/tools/list_changed"); len(got) > 0 {
			t.Errorf("%d changes of the two tools were announced", len(got))
		}
	}
}

// TestEveryRequestIsLogged: at level debug mcpx logs every request, lists too.
func TestEveryRequestIsLogged(t *testing.T) {
	t.Parallel()
	p := serve(t, map[string]any{"a": mcptest.Upstream(t, "-full")})
	p.initialize()
	p.result("prompts/list", "")
	if n := p.stderrCount("method=prompts/list"); n != 0 {
		t.Errorf("at level info a list is logged %d times", n)
	}
	p.result("logging/setLevel", `{"level":"debug"}`)
	for _, method := range []string{"ping", "tools/list", "prompts/list", "resources/list", "resources/templates/list"} {
		p.result(method, "")
		p.waitStderr("method=" + method)
	}
	for range 2 { // the first call takes another path than those after it
		before := p.stderrCount("method=tools/call")
		p.exec("a", "pid", "")
		p.waitStderrCount("method=tools/call", before+1)
	}
	before := p.stderrCount("method=tools/call")
	p.inspect("a", "")
	p.waitStderrCount("method=tools/call", before+1)
}

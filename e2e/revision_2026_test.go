package e2e

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"mcpx/internal/mcptest"
)

// meta2026 returns the _meta of a request of 2026-07-28.
func meta2026(capabilities string) string {
	return fmt.Sprintf(`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"e2e","version":"1"},"io.modelcontextprotocol/clientCapabilities":%s}`, capabilities)
}

// tagged returns the messages of a subscriptions/listen request.
func (p *process) tagged(id string) (lines []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.all {
		if strings.Contains(string(m.Params), `"io.modelcontextprotocol/subscriptionId":`+id) {
			lines = append(lines, m.line)
		}
	}
	return lines
}

// TestListenAcknowledgesFirst: the acknowledgement is the first message of a subscription,
// even if a list changes while an upstream is slow to subscribe.
func TestListenAcknowledgesFirst(t *testing.T) {
	t.Parallel()
	p := start(t, flat(map[string]any{"one": mcptest.Upstream(t, "-full", "-silent", "resources/subscribe", "-report")}), options{flags: []string{"--log-level", "debug"}})
	p.result("tools/list", "{"+meta2026("{}")+"}")
	listen := func(id, filter string) {
		p.send(id, "subscriptions/listen", fmt.Sprintf(`{"notifications":%s,%s}`, filter, meta2026("{}")))
	}
	listen(`"slow"`, `{"toolsListChanged":true,"resourceSubscriptions":["test://one"]}`)
	p.waitStderr(`line="got resources/subscribe"`)
	listen(`"quick"`, `{"toolsListChanged":true}`)
	p.waitReceived("notifications/subscriptions/acknowledged", 1)
	heard := len(p.tagged(`"quick"`))
	p.result("tools/call", `{"name":"one__change","arguments":{"notices":1},`+meta2026("{}")+`}`)
	eventually(t, "the other subscription gets the change", func() (string, bool) {
		lines := p.tagged(`"quick"`)
		return strings.Join(lines, "\n"), len(lines) > heard
	})
	p.result("tools/list", "{"+meta2026("{}")+"}")
	if got := p.tagged(`"slow"`); len(got) > 0 && !strings.Contains(got[0], "acknowledged") {
		t.Errorf("before it is acknowledged a subscription has\n%s", strings.Join(got, "\n"))
	}
	for _, id := range []string{`"slow"`, `"quick"`} {
		p.notify("notifications/cancelled", `{"requestId":`+id+`}`)
	}
}

// TestListenGetsItsOwnList: each of three streams gets the changes of its own list only,
// with its own ID.
func TestListenGetsItsOwnList(t *testing.T) {
	t.Parallel()
	p := start(t, flat(map[string]any{"one": mcptest.Upstream(t, "-full")}), options{})
	p.result("tools/list", "{"+meta2026("{}")+"}")
	kinds := []string{"tools", "prompts", "resources"}
	for i, kind := range kinds {
		p.send(fmt.Sprint(i+1), "subscriptions/listen", fmt.Sprintf(`{"notifications":{"%sListChanged":true},%s}`, kind, meta2026("{}")))
	}
	p.waitReceived("notifications/subscriptions/acknowledged", len(kinds))
	for i, kind := range kinds {
		before := len(p.tagged(fmt.Sprint(i + 1)))
		p.result("tools/call", fmt.Sprintf(`{"name":"one__change","arguments":{"notices":1,"list":%q},%s}`, kind, meta2026("{}")))
		eventually(t, kind, func() (string, bool) {
			lines := p.tagged(fmt.Sprint(i + 1))
			return strings.Join(lines, "\n"), len(lines) > before
		})
	}
	for i, kind := range kinds {
		lines := p.tagged(fmt.Sprint(i + 1))
		want := []string{
			fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%d},"notifications":{"%sListChanged":true}}}`, i+1, kind),
			fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/%s/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%d}}}`, kind, i+1),
		}
		for n, line := range lines {
			if line != want[min(n, 1)] {
				t.Errorf("%s: message %d is %s, want %s", kind, n, line, want[min(n, 1)])
			}
		}
		p.notify("notifications/cancelled", fmt.Sprintf(`{"requestId":%d}`, i+1))
	}
	if n := len(p.received("notifications/tools/list_changed")) - len(p.tagged("1")) + 1; n > 0 {
		t.Errorf("%d notices belong to no subscription", n)
	}
}

// TestRoundsOfConcurrentCalls: when many calls of one client need input, a round may ask
// for another of these calls, since a legacy upstream does not name the call. Every call
// still gets its own answer, and the upstream sees each once.
func TestRoundsOfConcurrentCalls(t *testing.T) {
	t.Parallel()
	p := serve(t, map[string]any{"one": mcptest.Upstream(t, "-count-calls")})
	const calls = 20
	var clients sync.WaitGroup
	for i := range calls {
		clients.Go(func() {
			want := fmt.Sprintf(`{"content":[{"type":"text","text":%s}]`, quote(fmt.Sprintf(`{"action":"accept","content":{"to":"call %d"}}`, i)))
			if got := p.rounds(fmt.Sprintf(`{"method":"elicitation/create","params":{"message":"call %d"}}`, i)); !strings.HasPrefix(got, want) {
				t.Errorf("call %d got %s, want %s…", i, got, want)
			}
		})
	}
	clients.Wait()
	if got := textOf(t, p.result("tools/call", strings.TrimSuffix(execParams("one", "calls", ""), "}")+","+meta2026("{}")+"}"), false); got != fmt.Sprint(calls+1) {
		t.Errorf("the upstream saw %s calls, want %d and this one", got, calls)
	}
}

// rounds calls the tool ask and answers each question with the question's own message,
// until the call ends. It returns the result or the error.
func (p *process) rounds(arguments string) string {
	params := strings.TrimSuffix(execParams("one", "ask", arguments), "}") + "," + meta2026(`{"elicitation":{}}`)
	next := params
	for {
		id := p.nextID()
		p.send(id, "tools/call", next+"}")
		var m message
		if !p.wait(patience, func() bool {
			if len(p.answers[id]) > 0 {
				m = p.answers[id][0]
			}
			return m.line != ""
		}) {
			return "no answer"
		}
		b := bindings{}
		if b.match(`{"resultType":"input_required","inputRequests":{"input":{"method":"elicitation/create","params":{"message":"$message"}}},"requestState":"$state","_meta":"$any"}`, string(m.Result)) != nil {
			return string(m.Result) + string(m.Error)
		}
		next = b.fill(params + `,"requestState":"$state","inputResponses":{"input":{"action":"accept","content":{"to":"$message"}}}`)
	}
}

// TestParkedCallsEndWithTheFront: a call whose client never sends the next round does not
// keep mcpx from stopping.
func TestParkedCallsEndWithTheFront(t *testing.T) {
	t.Parallel()
	p := serve(t, map[string]any{"one": mcptest.Upstream(t)})
	ask := strings.TrimSuffix(execParams("one", "ask", `{"method":"roots/list"}`), "}")
	if got := p.result("tools/call", ask+","+meta2026(`{"roots":{}}`)+"}"); !strings.Contains(got, `"input_required"`) {
		t.Fatal(got)
	}
	_ = p.stdin.Close()
	p.waitEnd(stopTime)
}

// TestMetaOfExtensions: keys of extensions in _meta reach upstreams of each revision, from clients
// of each revision. The core keys of 2026-07-28 have mcpx's own values.
func TestMetaOfExtensions(t *testing.T) {
	t.Parallel()
	p := serve(t, map[string]any{"earlier": mcptest.Upstream(t), "newest": mcptest.Upstream(t, "-only-2026")})
	p.initialize()
	const extension = `"io.modelcontextprotocol/related-task":{"taskId":"1"}`
	const core = `"io.modelcontextprotocol/clientInfo":`
	for client, meta := range map[string]string{"earlier": `"_meta":{`, "newest": strings.TrimSuffix(meta2026("{}"), "}") + ","} {
		for _, server := range []string{"earlier", "newest"} {
			params := strings.TrimSuffix(execParams(server, "params", "{}"), "}") + "," + meta + extension + "}}"
			got := textOf(t, p.result("tools/call", params), false)
			if !strings.Contains(got, extension) {
				t.Errorf("%s client: the %s upstream got %s, want %s in it", client, server, got, extension)
			}
			if strings.Contains(got, core+`{"name":"e2e"`) || strings.Contains(got, core) != (server == "newest") {
				t.Errorf("%s client: the %s upstream got %s", client, server, got)
			}
		}
	}
}

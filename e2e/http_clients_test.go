package e2e

import (
	"fmt"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// asks are the requests that an upstream may send to a client, with an answer.
var asks = []struct{ method, answer string }{
	{"sampling/createMessage", `{"role":"assistant","content":{"type":"text","text":"%s"},"model":"m"}`},
	{"elicitation/create", `{"action":"accept","content":{"a":"%s"}}`},
	{"roots/list", `{"roots":[{"uri":"file:///%s"}]}`},
}

// TestSharedSessionRefusesRequests: when two clients have calls in flight on a shared
// session, nobody knows for which one an upstream asks, so neither is asked.
func TestSharedSessionRefusesRequests(t *testing.T) {
	t.Parallel()
	s := serveHTTP(t, one(t, "-full"), options{})
	c, other := s.client("/mcp"), s.client("/mcp")
	standing := other.listen()
	beside := other.sendRequest("tools/call", execParams("a", "ask", `{"method":"roots/list"}`))
	asked := beside.next(0) // answered at the end
	for _, a := range asks {
		got := c.exec("a", "ask", fmt.Sprintf(`{"method":%q}`, a.method))
		if !strings.HasPrefix(got, "error ") || !strings.Contains(got, "isolation") {
			t.Errorf("%s: %s, want an error that names isolation", a.method, got)
		}
	}
	other.deliver(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"roots":[]}}`, asked.ID))
	if got := textOf(t, string(beside.answer().Result), false); got != `{"roots":[]}` || len(beside.lines()) != 2 || len(standing.lines()) > 0 {
		t.Errorf("the other client got %q and %q", beside.lines(), standing.lines())
	}
}

// TestIsolatedSessionAsksItsClient: with a session per client, each client is asked on
// the stream of its own call.
func TestIsolatedSessionAsksItsClient(t *testing.T) {
	t.Parallel()
	own := mcptest.Upstream(t, "-full")
	own["isolation"] = "client"
	s := serveHTTP(t, map[string]any{"mcpServers": map[string]any{"a": own}}, options{})
	clients := []*caller{s.client("/mcp"), s.client("/mcp"), s.client("/mcp")}
	pids := map[string]bool{}
	for _, c := range clients {
		pids[c.exec("a", "pid", "")] = true
	}
	if len(pids) != len(clients) {
		t.Errorf("%d clients have %d processes", len(clients), len(pids))
	}
	for _, a := range asks {
		calls := make([]*exchange, len(clients))
		for i, c := range clients {
			calls[i] = c.sendRequest("tools/call", execParams("a", "ask", fmt.Sprintf(`{"method":%q}`, a.method)))
		}
		for i, c := range clients { // all are asked at once
			answer := fmt.Sprintf(a.answer, fmt.Sprint("client-", i))
			c.deliver(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, calls[i].next(0).ID, answer))
		}
		for i := range clients {
			if got, want := textOf(t, string(calls[i].answer().Result), false), fmt.Sprintf(a.answer, fmt.Sprint("client-", i)); got != want {
				t.Errorf("%s: client %d got %s, want %s", a.method, i, got, want)
			}
		}
	}
}

// TestStrangersCannotAnswerOrCancel: only the client that was asked can answer, and a
// client can cancel only its own calls, though the IDs are no secrets.
func TestStrangersCannotAnswerOrCancel(t *testing.T) {
	t.Parallel()
	s := serveHTTP(t, one(t, "-full"), options{})
	c, stranger := s.client("/mcp"), s.client("/mcp")
	call := c.sendRequest("tools/call", execParams("a", "ask", `{"method":"roots/list"}`))
	asked := call.next(0)
	stranger.deliver(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"roots":[{"uri":"file:///stranger"}]}}`, asked.ID))
	stranger.deliver(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, call.request.ID))
	c.deliver(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"roots":[]}}`, asked.ID))
	if got := textOf(t, string(call.answer().Result), false); got != `{"roots":[]}` {
		t.Errorf("got %s", got)
	}
}

// TestHTTPLogLevels: the log messages of a call come on its stream, and each client has
// its own level.
func TestHTTPLogLevels(t *testing.T) {
	t.Parallel()
	s := serveHTTP(t, one(t, "-full"), options{})
	quiet, chatty := s.client("/mcp"), s.client("/mcp")
	quiet.result("logging/setLevel", `{"level":"error"}`)
	chatty.result("logging/setLevel", `{"level":"debug"}`)
	streams := []*exchange{quiet.listen(), chatty.listen()}
	const say = `{"method":"notifications/message","params":[{"level":"debug","data":1},{"level":"warning","data":2},{"level":"error","data":3}]}`
	line := func(level string, data int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":%q,"data":%d,"logger":"a"}}`, level, data)
	}
	for _, v := range []struct {
		name string
		c    *caller
		want []string
	}{
		{"quiet", quiet, []string{line("error", 3)}},
		{"chatty", chatty, []string{line("debug", 1), line("warning", 2), line("error", 3)}},
	} {
		x := v.c.sendRequest("tools/call", execParams("a", "say", say))
		x.answer()
		if got := x.lines(); strings.Join(got[:len(got)-1], "\n") != strings.Join(v.want, "\n") {
			t.Errorf("%s got\n%s\nwant\n%s", v.name, strings.Join(got, "\n"), strings.Join(v.want, "\n"))
		}
	}
	for i, x := range streams {
		if got := x.lines(); len(got) > 0 {
			t.Errorf("standing stream %d has messages of a call: %q", i, got)
		}
	}
}

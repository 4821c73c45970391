package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"mcpx/internal/mcptest"
)

// TestHTTPManyClients: 64 clients that use the same IDs in 100 calls each get exactly
// their own answers. The test runs alone, since it would slow others down.
func TestHTTPManyClients(t *testing.T) {
	s := serveHTTP(t, map[string]any{"mcpServers": map[string]any{"a": mcptest.Upstream(t), "b": mcptest.Upstream(t)}}, options{})
	var clients sync.WaitGroup
	for n := range 64 {
		clients.Go(func() {
			c := s.caller("/mcp")
			c.initialize()
			calls := make([]*exchange, manyCalls)
			for i := range calls {
				server := []string{"a", "b"}[i%2]
				calls[i] = c.sendRequest("tools/call", execParams(server, "echo", fmt.Sprintf(`{"text":"client %d call %d"}`, n, i)))
			}
			for i, x := range calls {
				if got, want := textOf(t, string(x.answer().Result), false), fmt.Sprintf("client %d call %d", n, i); got != want || len(x.lines()) != 1 {
					t.Errorf("got %q in %d messages, want %q", got, len(x.lines()), want)
				}
			}
		})
	}
	clients.Wait()
}

// TestHTTPProgress: the progress of a call comes in order on the call's own stream,
// before the result, with several calls in each of several sessions.
func TestHTTPProgress(t *testing.T) {
	t.Parallel()
	s := serveHTTP(t, one(t), options{})
	const sessions, calls, steps = 5, 10, 50
	var standing, asked []*exchange
	for range sessions {
		c := s.client("/mcp")
		standing = append(standing, c.listen())
		for i := range calls / sessions { // the same tokens in every session
			params := execParams("a", "progress", fmt.Sprintf(`{"steps":%d,"every_ms":1}`, steps))
			asked = append(asked, c.sendRequest("tools/call", withToken(params, fmt.Sprintf(`"call %d"`, i))))
		}
	}
	for i, x := range asked {
		x.answer()
		token := memberOf([]byte(memberOf(x.request.Params, "_meta")), "progressToken")
		var want []string
		for n := range steps {
			want = append(want, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"total":%d}}`, token, n+1, steps))
		}
		want = append(want, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%d steps"}]}}`, x.request.ID, steps))
		if got := x.lines(); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("call %d: %d messages, want %d; they are\n%s", i, len(got), len(want), clip(strings.Join(got, "\n")))
		}
	}
	for _, x := range standing {
		if got := x.lines(); len(got) > 0 {
			t.Errorf("a standing stream has %q", got)
		}
	}
}

// TestHTTPBrokenConnections: a call outlives its connection before 2026-07-28, and is
// canceled with it from then on. Other calls go on.
func TestHTTPBrokenConnections(t *testing.T) {
	t.Parallel()
	for _, v := range []struct {
		name   string
		params func(params string) string
		ms     int // duration of the call
		cancel int // number of canceled calls
	}{
		{"2025-11-25", func(params string) string { return params }, 1000, 0},
		{"2026-07-28", func(params string) string { return params2026(params, "{}") }, 3_600_000, 1},
	} {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			s := serveHTTP(t, one(t, "-count-calls"), options{flags: []string{"--log-level", "debug"}})
			c, other := s.client("/mcp"), s.client("/mcp")
			dropped := c.sendRequest("tools/call", v.params(execParams("a", "sleep", fmt.Sprintf(`{"ms":%d,"text":"x"}`, v.ms))))
			beside := c.sendRequest("tools/call", v.params(execParams("a", "sleep", `{"ms":1500,"text":"unharmed"}`)))
			s.underWay(other, 2)
			dropped.drop()
			s.waitStderrCount(`line="canceled`, v.cancel)
			if got := textOf(t, string(beside.answer().Result), false); got != "unharmed" {
				t.Errorf("got %q", got)
			}
			s.waitStderrCount("tool=sleep outcome=ok", 2-v.cancel)
			if n := s.stderrCount(`line="canceled`); n != v.cancel {
				t.Errorf("%d calls were canceled, want %d", n, v.cancel)
			}
			c.exec("a", "echo", `{"text":"the session lives"}`)
		})
	}
}

// underWay waits until the upstream has received n calls, its own not counted.
func (s *site) underWay(c *caller, n int) {
	s.t.Helper()
	own := 0
	eventually(s.t, fmt.Sprintf("calls that the upstream has got, want %d", n), func() (string, bool) {
		own++
		got := c.exec("a", "calls", "")
		return got, got == fmt.Sprint(n+own)
	})
}

// params2026 makes the params of a request of 2026-07-28.
func params2026(params, capabilities string) string {
	return strings.TrimSuffix(params, "}") + "," + meta2026(capabilities) + "}"
}

// TestHTTPStateless: with --stateless nothing is kept between requests, so any replica
// can answer.
func TestHTTPStateless(t *testing.T) {
	t.Parallel()
	config := one(t)
	for replica := range 2 {
		s := serveHTTP(t, config, options{flags: []string{"--stateless"}})
		c := s.caller("/mcp")
		if !c.open(initializeLine("2025-06-18", allCapabilities)) || c.session != "" {
			t.Errorf("replica %d: initialize opens the session %q", replica, c.session)
		}
		c.deliver(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		c.session = "of another replica"
		x := c.sendRequest("tools/call", withToken(execParams("a", "progress", `{"steps":3}`), "7"))
		x.answer()
		if got := x.lines(); len(got) != 4 {
			t.Errorf("replica %d: %q, want progress and the result", replica, got)
		}
		if got := c.exec("a", "ask", `{"method":"sampling/createMessage"}`); !strings.HasPrefix(got, "error ") {
			t.Errorf("replica %d: a client that cannot be asked answers %s", replica, got)
		}
		for _, method := range []string{"GET", "DELETE"} {
			c.try(method, "/mcp", "").want(t, method, 405, "--stateless")
		}
		if n := s.sessions(t, ""); n != 0 {
			t.Errorf("replica %d: %d sessions", replica, n)
		}
	}
}

// TestSSEAnswersTheFirstMessage: a client may post as soon as the stream of /sse names
// the endpoint. One processor makes it likely that another goroutine runs in between.
func TestSSEAnswersTheFirstMessage(t *testing.T) {
	t.Parallel()
	s := serveHTTP(t, one(t, "-full"), options{env: []string{"GOMAXPROCS=1"}})
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for range 100 {
				c := s.caller("")
				stream := c.openSSE("/sse")
				c.deliver(pingLine)
				if got := stream.next(0).line; got != `{"jsonrpc":"2.0","id":1,"result":{}}` {
					t.Errorf("got %s", got)
				}
				stream.drop()
			}
		})
	}
	clients.Wait()
}

// TestTraceReachesTheUpstream: the trace that a client sends, in its headers or in _meta, is
// in the call that the upstream gets.
func TestTraceReachesTheUpstream(t *testing.T) {
	t.Parallel()
	const trace = "0af7651916cd43dd8448eb211c80319c"
	const parent = "00-" + trace + "-b7ad6b7169203331-01"
	c := serveHTTP(t, one(t), options{}).client("/mcp")
	line := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":` + execParams("a", "params", "{}") + `}`
	c.try(http.MethodPost, "/mcp", line, "Traceparent", parent, "Tracestate", "a=1").want(t, "headers", 200, `\"traceparent\":\"`+parent+`\",\"tracestate\":\"a=1\"`)
	own := strings.Replace(line, `"params":{`, `"params":{"_meta":{"traceparent":"`+parent+`"},`, 1)
	other := strings.ReplaceAll(parent, trace, strings.Repeat("1", len(trace)))
	c.try(http.MethodPost, "/mcp", own, "Traceparent", other).want(t, "_meta", 200, `\"traceparent\":\"`+parent+`\"`)
}

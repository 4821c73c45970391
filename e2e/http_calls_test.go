package e2e

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"mcpx/internal/mcptest"
)

// TestHTTPManyClients: 64 clients with 100 calls each, all with the same ids, get
// exactly their own answers. It runs alone: others would have to wait.
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
				calls[i] = c.ask("tools/call", execParams(server, "echo", fmt.Sprintf(`{"text":"client %d call %d"}`, n, i)))
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

// TestHTTPProgress: the progress of a call comes on its own stream before its
// result, in order, none lost; with calls at once in one session and in several.
func TestHTTPProgress(t *testing.T) {
	t.Parallel()
	for _, v := range []struct {
		name     string
		sessions int
	}{{"one session", 1}, {"ten sessions", 10}} {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			s := serveHTTP(t, one(t), options{})
			var standing []*exchange
			clients := make([]*caller, v.sessions)
			for i := range clients {
				clients[i] = s.client("/mcp")
				standing = append(standing, clients[i].listen())
			}
			const calls, steps = 10, 50
			var asked []*exchange
			for i := range calls {
				token := fmt.Sprintf(`"call %d"`, i)
				if v.sessions > 1 {
					token = `"the same"`
				}
				params := strings.TrimSuffix(execParams("a", "progress", fmt.Sprintf(`{"steps":%d,"every_ms":1}`, steps)), "}") + `,"_meta":{"progressToken":` + token + `}}`
				asked = append(asked, clients[i%len(clients)].ask("tools/call", params))
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
		})
	}
}

// TestHTTPBrokenConnections: a legacy call outlives its connection, one of
// 2026-07-28 is cancelled with it; the others are unharmed.
func TestHTTPBrokenConnections(t *testing.T) {
	t.Parallel()
	t.Run("legacy", func(t *testing.T) {
		t.Parallel()
		s := serveHTTP(t, one(t, "-count-calls"), options{flags: []string{"--log-level", "debug"}})
		c, other := s.client("/mcp"), s.client("/mcp")
		call := c.ask("tools/call", execParams("a", "sleep", `{"ms":1000,"text":"x"}`))
		beside := other.ask("tools/call", execParams("a", "sleep", `{"ms":1500,"text":"unharmed"}`))
		s.underWay(other, 2)
		call.drop()
		if got := textOf(t, string(beside.answer().Result), false); got != "unharmed" {
			t.Errorf("got %q", got)
		}
		s.waitStderrCount("tool=sleep outcome=ok", 2)
		if log := s.errors(); strings.Contains(log, `line="cancelled`) {
			t.Errorf("the call was cancelled:\n%s", log)
		}
		if got := c.exec("a", "echo", `{"text":"the session lives"}`); got != "the session lives" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("2026-07-28", func(t *testing.T) {
		t.Parallel()
		s := serveHTTP(t, one(t, "-count-calls"), options{flags: []string{"--log-level", "debug"}})
		c, other := s.caller("/mcp"), s.client("/mcp")
		call := c.ask("tools/call", modernParams(execParams("a", "sleep", `{"ms":3600000}`), "{}"))
		beside := c.ask("tools/call", modernParams(execParams("a", "sleep", `{"ms":1500,"text":"unharmed"}`), "{}"))
		s.underWay(other, 2)
		call.drop()
		s.waitStderr(`line="cancelled`)
		if got := textOf(t, string(beside.answer().Result), false); got != "unharmed" {
			t.Errorf("got %q", got)
		}
		if n := s.stderrCount(`line="cancelled`); n != 1 {
			t.Errorf("%d calls were cancelled, want 1", n)
		}
	})
}

// underWay waits until the upstream has got n calls besides those that ask.
func (s *site) underWay(c *caller, n int) {
	s.t.Helper()
	own := 0
	settled(s.t, fmt.Sprintf("calls that the upstream has got, want %d", n), func() (string, bool) {
		own++
		got := c.exec("a", "calls", "")
		return got, got == fmt.Sprint(n+own)
	})
}

// modernParams are params of a request of 2026-07-28.
func modernParams(params, capabilities string) string {
	return strings.TrimSuffix(params, "}") + "," + modernMeta(capabilities) + "}"
}

// TestHTTPStateless: nothing is kept, so that any replica can answer.
func TestHTTPStateless(t *testing.T) {
	t.Parallel()
	config := one(t)
	replicas := []*site{serveHTTP(t, config, options{flags: []string{"--stateless"}}), serveHTTP(t, config, options{flags: []string{"--stateless"}})}
	for i, s := range replicas {
		c := s.caller("/mcp")
		if !c.open(initializeLine("2025-06-18", allCapabilities)) || c.session != "" {
			t.Errorf("replica %d: initialize gives the session %q", i, c.session)
		}
		c.tell(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		if got := c.exec("a", "echo", `{"text":"x"}`); got != "x" {
			t.Errorf("replica %d: got %q", i, got)
		}
		c.session = "of another replica"
		params := strings.TrimSuffix(execParams("a", "progress", `{"steps":3}`), "}") + `,"_meta":{"progressToken":7}}`
		x := c.ask("tools/call", params)
		x.answer()
		if got := x.lines(); len(got) != 4 {
			t.Errorf("replica %d: %q, want progress and the result", i, got)
		}
		got := c.exec("a", "ask", `{"method":"sampling/createMessage"}`)
		if !strings.HasPrefix(got, "error ") {
			t.Errorf("replica %d: who cannot be asked answers %s", i, got)
		}
		c.try("GET", "/mcp", "").want(t, "GET", 405, "--stateless")
		c.try("DELETE", "/mcp", "").want(t, "DELETE", 405, "--stateless")
		if n := s.sessions(t, ""); n != 0 {
			t.Errorf("replica %d: %d sessions", i, n)
		}
	}
}

// TestHTTPFirstMessages: who posts as soon as the stream of SSE says where to is
// answered. One processor makes it likely that others run in between.
func TestHTTPFirstMessages(t *testing.T) {
	t.Parallel()
	s := serveHTTP(t, one(t, "-full"), options{env: []string{"GOMAXPROCS=1"}})
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for range 100 {
				c := s.caller("")
				stream := c.openSSE("/sse")
				c.tell(pingLine)
				if got := stream.next(0).line; got != `{"jsonrpc":"2.0","id":1,"result":{}}` {
					t.Errorf("got %s", got)
				}
				stream.drop()
			}
		})
	}
	clients.Wait()
}

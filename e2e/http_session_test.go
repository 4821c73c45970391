package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

const pingLine = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// try makes a request with those headers and returns the answer. What does not
// end by itself is ended.
func (c *caller) try(method, path, body string, headers ...string) *exchange {
	c.site.t.Helper()
	r := c.request(method, path, body)
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	return c.site.finish(r, body)
}

// finish makes a request and waits for the answer, but not for the end of a stream.
func (s *site) finish(r *http.Request, body string) *exchange {
	s.t.Helper()
	x := s.send(r, body, nil)
	x.waitBegun()
	if x.header.Get("Content-Type") == "text/event-stream" {
		x.drop()
	}
	x.waitEnd()
	return x
}

// want fails the test if an answer has another status, 0 for any, or has not that
// text.
func (x *exchange) want(t *testing.T, what string, status int, part string) {
	t.Helper()
	if status != 0 && x.status != status || !strings.Contains(x.body, part) {
		t.Errorf("%s: %d %s, want %d with %q", what, x.status, clip(x.body), status, part)
	}
}

func one(t *testing.T, flags ...string) map[string]any {
	return map[string]any{"mcpServers": map[string]any{"a": mcptest.Upstream(t, flags...)}}
}

// with is a config with one more key.
func with(config map[string]any, key string, value any) map[string]any {
	config[key] = value
	return config
}

func TestHTTPSessionLife(t *testing.T) {
	t.Parallel()
	config := map[string]any{"schemas": map[string]any{
		"default": map[string]any{"mcpServers": map[string]any{"a": mcptest.Upstream(t)}},
		"other":   map[string]any{"mcpServers": map[string]any{"a": mcptest.Upstream(t)}},
	}}
	s := serveHTTP(t, config, options{})
	c := s.client("/mcp")
	if len(c.session) < 26 {
		t.Errorf("the session's id %q can be guessed", c.session)
	}
	live := *s.caller("/mcp")
	for _, v := range []struct {
		name, method, path, session string
		status                      int
	}{
		{"no id", "POST", "/mcp", "", 400},
		{"no id", "GET", "/mcp", "", 400},
		{"no id", "DELETE", "/mcp", "", 400},
		{"an invented id", "POST", "/mcp", "AAAAAAAAAAAAAAAAAAAAAAAAAA", 404},
		{"an invented id", "GET", "/mcp", "AAAAAAAAAAAAAAAAAAAAAAAAAA", 404},
		{"an invented id", "DELETE", "/mcp", "AAAAAAAAAAAAAAAAAAAAAAAAAA", 404},
		{"the id of another schema", "POST", "/mcp/other", c.session, 404},
		{"the id of another schema", "GET", "/mcp/other", c.session, 404},
		{"the id of another schema", "DELETE", "/mcp/other", c.session, 404},
		{"its schema by name", "POST", "/mcp/default", c.session, 200},
		{"its schema by name", "GET", "/mcp/default", c.session, 200},
		{"another credential", "POST", "/mcp", c.session, 404},
		{"another credential", "GET", "/mcp", c.session, 404},
		{"another credential", "DELETE", "/mcp", c.session, 404},
		{"no id", "POST", "/message", "", 404},
	} {
		live.session, live.token = v.session, ""
		if v.name == "another credential" {
			live.token = "someone else"
		}
		live.try(v.method, v.path, pingLine).want(t, v.name+": "+v.method+" "+v.path, v.status, "")
	}
	if got := c.exec("a", "echo", `{"text":"alive"}`); got != "alive" {
		t.Errorf("got %q", got)
	}
	standing, call := c.listen(), c.ask("tools/call", execParams("a", "sleep", `{"ms":3600000}`))
	if n := s.sessions(t, ""); n != 1 {
		t.Errorf("%d sessions are open, want 1", n)
	}
	if got := c.status("DELETE", "/mcp"); got != 200 && got != 202 && got != 204 {
		t.Errorf("DELETE: %d", got)
	}
	standing.waitEnd()
	call.waitEnd()
	for _, method := range []string{"POST", "GET", "DELETE"} {
		c.try(method, "/mcp", pingLine).want(t, method+" after DELETE", 404, "initialize")
	}
	if n := s.sessions(t, ""); n != 0 {
		t.Errorf("%d sessions are open, want 0", n)
	}
	if log := s.errors(); strings.Contains(log, c.session) {
		t.Errorf("the log has the session's id:\n%s", clip(log))
	}
}

// TestHTTPBadRequests: what is refused before it is read as a message.
func TestHTTPBadRequests(t *testing.T) {
	t.Parallel()
	s := serveHTTP(t, with(one(t), "limits", map[string]any{"body_bytes": 2000}), options{})
	c := s.client("/mcp")
	long := `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"pad":"` + strings.Repeat("x", 2000) + `"}}`
	fits := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	fits += strings.Repeat(" ", 2000-len(fits))
	for _, v := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		part                     string
	}{
		{"a body of the limit", "POST", "/mcp", fits, nil, 200, `"result":{}`},
		{"a body over the limit", "POST", "/mcp", long, nil, 413, "limits.body_bytes"},
		{"a text", "POST", "/mcp", fits, []string{"Content-Type", "text/plain"}, 415, "application/json"},
		{"a form", "POST", "/mcp", fits, []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, ""},
		{"no JSON by name", "POST", "/mcp", fits, []string{"Content-Type", "application/json5"}, 415, ""},
		{"JSON with a charset", "POST", "/mcp", fits, []string{"Content-Type", "application/json; charset=utf-8"}, 200, ""},
		{"PUT", "PUT", "/mcp", fits, nil, 405, ""},
		{"PATCH", "PATCH", "/mcp/default", fits, nil, 405, ""},
		{"POST to /sse", "POST", "/sse", fits, nil, 405, ""},
		{"DELETE of /sse", "DELETE", "/sse", "", nil, 405, ""},
		{"GET of /message", "GET", "/message", "", nil, 405, ""},
		{"POST to /health", "POST", "/health", "", nil, 405, ""},
		{"POST to /status", "POST", "/status", "", nil, 405, ""},
		{"another path", "GET", "/mcp/default/more", "", nil, 404, ""},
		{"an unknown version", "POST", "/mcp", fits, []string{"Mcp-Protocol-Version", "1999-01-01"}, 400, "1999-01-01"},
		{"an unknown version", "GET", "/mcp", "", []string{"Mcp-Protocol-Version", "1999-01-01"}, 400, "1999-01-01"},
		{"a known version", "POST", "/mcp", fits, []string{"Mcp-Protocol-Version", "2025-06-18"}, 200, ""},
		{"not JSON", "POST", "/mcp", "hello", nil, 400, "-32700"},
		{"not JSON, no session", "POST", "/mcp", "hello", []string{"Mcp-Session-Id", ""}, 400, "-32700"},
		{"nothing", "POST", "/mcp", "", nil, 400, "-32700"},
		{"no version", "POST", "/mcp", `{"id":7,"method":"ping"}`, nil, 400, `"id":7,"error":{"code":-32600`},
	} {
		t.Run(v.name+" "+v.method, func(t *testing.T) {
			c.try(v.method, v.path, v.body, v.headers...).want(t, v.name, v.status, v.part)
		})
	}
	t.Run("a body over the limit, of unknown length", func(t *testing.T) {
		r := c.request("POST", "/mcp", "")
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(long)), -1
		s.finish(r, long).want(t, "chunked", 413, "limits.body_bytes")
	})
	if got := c.exec("a", "echo", `{"text":"alive"}`); got != "alive" {
		t.Errorf("got %q", got)
	}
	c.try("DELETE", "/mcp", "", "Mcp-Protocol-Version", "1999-01-01").want(t, "DELETE with an unknown version", 400, "1999-01-01")
	if n := s.sessions(t, ""); n != 1 {
		t.Errorf("%d sessions are open, want 1", n)
	}
}

// TestHTTPSessionIdle: a session that nobody uses ends, but not while a stream or
// a call is open, be its connection broken.
func TestHTTPSessionIdle(t *testing.T) {
	t.Parallel()
	s := serveHTTP(t, with(one(t), "limits", map[string]any{"session_idle": "6s"}), options{flags: []string{"--log-level", "debug"}})
	older := s.caller("")
	stream := older.openSSE("/sse")
	listening := s.client("/mcp")
	standing := listening.listen()
	const slow = `{"ms":13000,"text":"slept"}`
	lost := s.client("/mcp")
	gone := lost.ask("tools/call", execParams("a", "sleep", slow))
	lost.exec("a", "pid", "")
	idle, calling := s.client("/mcp"), s.client("/mcp")
	call := calling.ask("tools/call", execParams("a", "sleep", slow))
	gone.drop()
	if got := textOf(t, string(call.answer().Result), false); got != "slept" {
		t.Errorf("the call got %q", got)
	}
	idle.try("POST", "/mcp", pingLine).want(t, "idle", 404, "initialize")
	calling.try("POST", "/mcp", pingLine).want(t, "after a call", 200, "")
	listening.try("POST", "/mcp", pingLine).want(t, "with a stream", 200, "")
	older.try("POST", older.path, pingLine).want(t, "with the stream of SSE", 202, "")
	if log := s.errors(); strings.Contains(log, `line="cancelled`) {
		t.Errorf("a call was cancelled with the idle session of its client, whose connection broke:\n%s", clip(log))
	}
	standing.drop()
	stream.drop()
	settled(t, "sessions, want 0", func() (string, bool) {
		n := s.sessions(t, "")
		return fmt.Sprint(n), n == 0
	})
}

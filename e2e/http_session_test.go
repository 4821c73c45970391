package e2e

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

// TestHTTPSessionBelongsToItsClient: a session works only with its ID, profile and
// credential. DELETE ends it with its streams and calls, and the log never shows the ID.
func TestHTTPSessionBelongsToItsClient(t *testing.T) {
	t.Parallel()
	config := map[string]any{"schemas": map[string]any{"default": one(t), "other": one(t)}}
	s := serveHTTP(t, config, options{})
	c := s.client("/mcp")
	if len(c.session) < 26 {
		t.Errorf("the session's ID %q can be guessed", c.session)
	}
	for _, v := range []struct {
		name, path, session, token string
		status                     int
	}{
		{"no ID", "/mcp", "", "", 400},
		{"an invented ID", "/mcp", "AAAAAAAAAAAAAAAAAAAAAAAAAA", "", 404},
		{"another profile", "/mcp/other", c.session, "", 404},
		{"another credential", "/mcp", c.session, "someone else", 404},
	} {
		stranger := s.caller("")
		stranger.session, stranger.token = v.session, v.token
		for _, method := range []string{"POST", "GET", "DELETE"} {
			stranger.try(method, v.path, pingLine).want(t, v.name+": "+method, v.status, "")
		}
	}
	for _, method := range []string{"POST", "GET"} {
		c.try(method, "/mcp/default", pingLine).want(t, "its profile by name: "+method, 200, "")
	}
	standing, call := c.listen(), c.sendRequest("tools/call", execParams("a", "sleep", `{"ms":3600000}`))
	if n := s.sessions(t, ""); n != 1 {
		t.Errorf("%d sessions are open, want 1", n)
	}
	c.try("DELETE", "/mcp", "").want(t, "DELETE", 204, "")
	standing.waitEnd()
	call.waitEnd()
	for _, method := range []string{"POST", "GET", "DELETE"} {
		c.try(method, "/mcp", pingLine).want(t, method+" after DELETE", 404, "initialize")
	}
	if n := s.sessions(t, ""); n != 0 {
		t.Errorf("%d sessions are open, want 0", n)
	}
	if log := s.errors(); strings.Contains(log, c.session) {
		t.Errorf("the log has the session's ID:\n%s", clip(log))
	}
}

// TestHTTPBadRequests: requests that cannot be messages are refused, and the session
// stays open. TestHTTPSession and TestHTTPInvalidMessages in the server have more rows.
func TestHTTPBadRequests(t *testing.T) {
	t.Parallel()
	s := serveHTTP(t, with(one(t), "limits", map[string]any{"body_bytes": 2000}), options{})
	c := s.client("/mcp")
	fits := pingLine + strings.Repeat(" ", 2000-len(pingLine))
	for _, v := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		part                     string
	}{
		{"a body of the limit", "POST", "/mcp", fits, nil, 200, `"result":{}`},
		{"a body over the limit", "POST", "/mcp", fits + " ", nil, 413, "limits.body_bytes"},
		{"a form", "POST", "/mcp", fits, []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, "application/json"},
		{"a type like JSON", "POST", "/mcp", fits, []string{"Content-Type", "application/json5"}, 415, ""},
		{"JSON with a charset", "POST", "/mcp", fits, []string{"Content-Type", "application/json; charset=utf-8"}, 200, ""},
		{"PUT", "PUT", "/mcp", fits, nil, 405, ""},
		{"PATCH", "PATCH", "/mcp/default", fits, nil, 405, ""},
		{"POST to /sse", "POST", "/sse", fits, nil, 405, ""},
		{"DELETE of /sse", "DELETE", "/sse", "", nil, 405, ""},
		{"GET of /message", "GET", "/message", "", nil, 405, ""},
		{"POST to /health", "POST", "/health", "", nil, 405, ""},
		{"POST to /status", "POST", "/status", "", nil, 405, ""},
		{"another path", "GET", "/mcp/default/more", "", nil, 404, ""},
		{"unknown version, GET", "GET", "/mcp", "", []string{"Mcp-Protocol-Version", "1999-01-01"}, 400, "1999-01-01"},
		{"unknown version, DELETE", "DELETE", "/mcp", "", []string{"Mcp-Protocol-Version", "1999-01-01"}, 400, "1999-01-01"},
		{"known version", "POST", "/mcp", fits, []string{"Mcp-Protocol-Version", "2025-06-18"}, 200, ""},
		{"not JSON", "POST", "/mcp", "hello", nil, 400, "-32700"},
	} {
		c.try(v.method, v.path, v.body, v.headers...).want(t, v.name, v.status, v.part)
	}
	r := c.request("POST", "/mcp", "")
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(fits+" ")), -1
	s.finish(r, fits).want(t, "a body over the limit, of unknown length", 413, "limits.body_bytes")
	c.exec("a", "echo", `{"text":"alive"}`)
}

// TestHTTPSessionIdle: a session that nobody uses ends, but not while it has a stream
// or a call, even if the call's connection broke.
func TestHTTPSessionIdle(t *testing.T) {
	t.Parallel()
	s := serveHTTP(t, with(one(t), "limits", map[string]any{"session_idle": "6s"}), options{flags: []string{"--log-level", "debug"}})
	legacy := s.caller("")
	stream := legacy.openSSE("/sse")
	listening := s.client("/mcp")
	standing := listening.listen()
	const slow = `{"ms":13000,"text":"slept"}`
	lost := s.client("/mcp")
	gone := lost.sendRequest("tools/call", execParams("a", "sleep", slow))
	lost.exec("a", "pid", "")
	idle, calling := s.client("/mcp"), s.client("/mcp")
	call := calling.sendRequest("tools/call", execParams("a", "sleep", slow))
	gone.drop()
	if got := textOf(t, string(call.answer().Result), false); got != "slept" {
		t.Errorf("the call got %q", got)
	}
	idle.try("POST", "/mcp", pingLine).want(t, "idle", 404, "initialize")
	calling.try("POST", "/mcp", pingLine).want(t, "after a call", 200, "")
	listening.try("POST", "/mcp", pingLine).want(t, "with a stream", 200, "")
	legacy.try("POST", legacy.path, pingLine).want(t, "with the stream of SSE", 202, "")
	if log := s.errors(); strings.Contains(log, `line="canceled`) {
		t.Errorf("a call was canceled when its client's session was idle and its connection broke:\n%s", clip(log))
	}
	standing.drop()
	stream.drop()
	eventually(t, "sessions, want 0", func() (string, bool) {
		n := s.sessions(t, "")
		return fmt.Sprint(n), n == 0
	})
}

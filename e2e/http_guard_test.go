package e2e

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
)

// routes are all routes with the methods that they serve.
var routes = []struct{ method, path, body string }{
	{"POST", "/mcp", `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"e","version":"1"}}}`},
	{"POST", "/mcp/default", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"exec","arguments":{"server_name":"a","tool_name":"pid"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"e","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`},
	{"GET", "/mcp", ""},
	{"DELETE", "/mcp", ""},
	{"OPTIONS", "/mcp", ""},
	{"GET", "/sse", ""},
	{"GET", "/sse/default", ""},
	{"POST", "/message", pingLine},
	{"GET", "/status", ""},
	{"GET", "/metrics", ""},
	{"GET", "/", ""},
	{"GET", "/assets/main.js", ""},
	{"GET", "/no/such/path", ""},
}

// TestForeignHostsAndOriginsAreRefused: a wrong Host or Origin gets 403 on every route
// and has no effect. The values are tested in the server (TestGuardHosts, TestGuardOrigins).
func TestForeignHostsAndOriginsAreRefused(t *testing.T) {
	t.Parallel()
	config := with(one(t, "-count-calls"), "server", map[string]any{"allowed_origins": []string{"https://app.example.com"}, "allowed_hosts": []string{"mcpx.example.com"}})
	s := serveHTTP(t, config, options{})
	c := s.client("/mcp")
	c.exec("a", "calls", "")
	for _, bad := range [][]string{{"Host", "localhost.evil.example.com:8000"}, {"Origin", "https://app.example.com.evil.com"}, {"Origin", "null"}} {
		for _, r := range append(routes, struct{ method, path, body string }{"GET", "/health", ""}) {
			x := c.try(r.method, r.path, r.body, bad...)
			x.want(t, strings.Join(bad, ": ")+" "+r.method+" "+r.path, http.StatusForbidden, "Forbidden")
			if got := x.header.Get("Access-Control-Allow-Origin"); got != "" {
				t.Errorf("%s %s: Access-Control-Allow-Origin: %s", r.method, r.path, got)
			}
		}
	}
	for _, good := range [][]string{{"Host", "localhost:1"}, {"Host", "mcpx.example.com"}, {"Origin", "http://127.0.0.1"}, {"Origin", "https://app.example.com"}} {
		c.try("POST", "/mcp", pingLine, good...).want(t, strings.Join(good, ": "), http.StatusOK, `"result":{}`)
	}
	if n := s.sessions(t, ""); n != 1 {
		t.Errorf("%d sessions are open, want 1", n)
	}
	if got := c.exec("a", "calls", ""); got != "2" {
		t.Errorf("the upstream has got %s calls, want the 2 of this test", got)
	}
}

// TestPagesOfOtherOrigins: the browser adds a person's password to requests of pages on other
// ports. mcpx runs no tool for them, and changes nothing. Clients in such pages send a token.
func TestPagesOfOtherOrigins(t *testing.T) {
	t.Parallel()
	config := with(one(t, "-count-calls"), "server", map[string]any{"token": "s3cret-token", "console": "edit"})
	s := serveHTTP(t, config, options{flags: []string{"--stateless"}})
	c := s.caller("/mcp")
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"exec","arguments":{"server_name":"a","tool_name":"calls"}}}`
	const entry = `{"command":"mcpx-no-such-program"}`
	password := "Basic " + base64.StdEncoding.EncodeToString([]byte("me:s3cret-token"))
	page := []string{"Origin", "http://127.0.0.1:1", "Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors", "Authorization", password}
	own := []string{"Origin", s.url, "Sec-Fetch-Site", "same-origin", "Authorization", password}
	for _, r := range []struct{ path, body string }{{"/mcp", call}, {"/console/default/add?server=evil", entry}, {"/console/default/stop?server=a", "{}"}, {"/reload", ""}} {
		for _, kind := range []string{"", "text/plain", "application/json"} {
			c.try("POST", r.path, r.body, append(page[:len(page):len(page)], "Content-Type", kind)...).want(t, "a page, "+r.path+" "+kind, http.StatusForbidden, "Forbidden")
		}
		c.try("POST", r.path, r.body, append(own, "Content-Type", "")...).want(t, "no type, "+r.path, http.StatusUnsupportedMediaType, "application/json")
	}
	c.try("POST", "/mcp", call, "Origin", "http://127.0.0.1:1", "Sec-Fetch-Site", "same-site", "Authorization", "Bearer s3cret-token").want(t, "a client in a page", http.StatusOK, `"text":"1"`)
	c.try("POST", "/mcp", call, own...).want(t, "the console", http.StatusOK, `"text":"2"`)
	c.try("POST", "/reload", "", own...).want(t, "the console", http.StatusNoContent, "")
	if text, err := os.ReadFile(s.cmd.Args[1]); err != nil || strings.Contains(string(text), "evil") {
		t.Errorf("%v: the config is %s", err, text)
	}
}

// TestTokenIsRequired: wherever the token is configured, every route except /health
// requires it, and it is shown nowhere. The values are tested in TestGuardTokens.
func TestTokenIsRequired(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "token", "s3cret-token\n")
	for _, v := range []struct {
		name   string
		server map[string]any
		o      options
	}{
		{"config", map[string]any{"token": "s3cret-token"}, options{}},
		{"environment", map[string]any{"token": "not this"}, options{env: []string{"MCPX_TOKEN=s3cret-token"}}},
		{"file", nil, options{flags: []string{"--token-file", file}}},
		{"all addresses", map[string]any{"host": "0.0.0.0", "token": "s3cret-token"}, options{}},
	} {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			config := one(t, "-count-calls")
			if v.server != nil {
				config["server"] = v.server
			}
			s := serveHTTP(t, config, v.o)
			c := s.caller("/mcp")
			for _, given := range [][]string{nil, {"Authorization", "Bearer s3cret-token2"}} {
				for _, r := range routes {
					x := c.try(r.method, r.path, r.body, given...)
					x.want(t, fmt.Sprint(given, " ", r.method, " ", r.path), http.StatusUnauthorized, "Bearer")
					if x.header.Get("WWW-Authenticate") == "" {
						t.Errorf("%s %s: no WWW-Authenticate", r.method, r.path)
					}
				}
			}
			c.try("GET", "/health", "").want(t, "/health", http.StatusOK, "ok")
			c.token = "s3cret-token"
			if n := s.sessions(t, c.token); n != 0 {
				t.Errorf("%d sessions are open, want 0", n)
			}
			c.initialize()
			if got := c.exec("a", "calls", ""); got != "1" {
				t.Errorf("the upstream has got %s calls, want 1", got)
			}
			if env := c.exec("a", "env", ""); strings.Contains(env, "s3cret") {
				t.Error("the upstream has the token in its environment")
			}
			if got := c.exec("mcpx", "show_config", ""); strings.Contains(got, "s3cret") {
				t.Errorf("the config shows the token: %s", got)
			}
			if strings.Contains(s.errors(), "s3cret") {
				t.Error("the log has the token")
			}
		})
	}
}

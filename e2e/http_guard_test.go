package e2e

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// routes are every route with the methods that do something there.
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

// TestHTTPForeigners: a wrong Host or Origin is 403 on every route and method,
// with nothing done for it.
func TestHTTPForeigners(t *testing.T) {
	t.Parallel()
	config := with(one(t, "-count-calls"), "server", map[string]any{"allowed_origins": []string{"https://app.example.com"}, "allowed_hosts": []string{"mcpx.example.com"}})
	s := serveHTTP(t, config, options{})
	c := s.client("/mcp")
	c.exec("a", "calls", "")
	for _, bad := range [][]string{
		{"Host", "evil.example.com"}, {"Host", "127.0.0.1.evil.example.com"}, {"Host", "localhost.evil.example.com:8000"}, {"Host", "192.168.0.1"},
		{"Origin", "https://evil.example.com"}, {"Origin", "null"}, {"Origin", "http://localhost.evil.example.com"}, {"Origin", "https://app.example.com.evil.com"}, {"Origin", "http://app.example.com"},
	} {
		for _, r := range append(routes, struct{ method, path, body string }{"GET", "/health", ""}) {
			x := c.try(r.method, r.path, r.body, bad...)
			x.want(t, strings.Join(bad, ": ")+" "+r.method+" "+r.path, http.StatusForbidden, "Forbidden")
			if got := x.header.Get("Access-Control-Allow-Origin"); got != "" {
				t.Errorf("%s %s: Access-Control-Allow-Origin: %s", r.method, r.path, got)
			}
		}
	}
	for _, good := range [][]string{
		{"Host", "localhost:1"}, {"Host", "mcpx.example.com"}, {"Host", "[::1]:80"}, {"Origin", "http://localhost:3000"}, {"Origin", "http://127.0.0.1"}, {"Origin", "https://app.example.com"},
	} {
		c.try("POST", "/mcp", pingLine, good...).want(t, strings.Join(good, ": "), http.StatusOK, `"result":{}`)
	}
	if n := s.sessions(t, ""); n != 1 {
		t.Errorf("%d sessions are open, want 1", n)
	}
	if got := c.exec("a", "calls", ""); got != "2" {
		t.Errorf("the upstream has got %s calls, want the 2 of this test", got)
	}
}

// TestHTTPToken: however the token is given, it is asked for on every route but
// /health.
func TestHTTPToken(t *testing.T) {
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
			for _, given := range []string{"", "Bearer", "Bearer ", "Bearer wrong", "Bearer s3cret", "Bearer s3cret-token2", "Basic s3cret-token", "s3cret-token"} {
				for _, r := range routes {
					var headers []string
					if given != "" {
						headers = []string{"Authorization", given}
					}
					x := c.try(r.method, r.path, r.body, headers...)
					x.want(t, given+": "+r.method+" "+r.path, http.StatusUnauthorized, "Bearer")
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

// fails runs a program that must end by itself, and returns its exit code and what
// it wrote to stderr.
func fails(t *testing.T, program string, args ...string) (code int, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = environment(t)
	cmd.WaitDelay = 10 * time.Second
	var text bytes.Buffer
	cmd.Stderr = &text
	if out, err := cmd.Output(); err == nil || len(out) > 0 {
		t.Errorf("%v: stdout %q, %v", args, out, err)
	} else if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("%v: %v, %v; stderr:\n%s", args, err, ctx.Err(), text.String())
	}
	return cmd.ProcessState.ExitCode(), text.String()
}

// TestHTTPRefusedStarts: what must not be served ends with a reason.
func TestHTTPRefusedStarts(t *testing.T) {
	t.Parallel()
	config := writeConfig(t, map[string]any{"schemas": map[string]any{"default": one(t), "work": one(t)}})
	empty := writeFile(t, "empty", "")
	for _, v := range []struct {
		name, program string
		args          []string
		code          int // 0: any but 0
		parts         []string
	}{
		{"all addresses without a token", binaryHTTP, []string{config, "--port", "0", "--host", "0.0.0.0"}, 0, []string{"token", "MCPX_TOKEN", "127.0.0.1"}},
		{"all addresses of IPv6", binaryHTTP, []string{config, "--port", "0", "--host", "::"}, 0, []string{"MCPX_TOKEN"}},
		{"an address of the network", binaryHTTP, []string{config, "--port", "0", "--host", "192.0.2.1"}, 0, []string{"MCPX_TOKEN"}},
		{"both fronts", binary, []string{config, "--stdio", "--http"}, 2, []string{"--stdio", "--http"}},
		{"both fronts of mcpx-sse", binaryHTTP, []string{config, "--stdio", "--http"}, 2, []string{"--stdio", "--http"}},
		{"an unknown schema", binaryHTTP, []string{config, "--port", "0", "--schema", "wrok"}, 2, []string{"wrok", "default", "work"}},
		{"an unknown schema on stdio", binary, []string{config, "--schema", "wrok"}, 2, []string{"wrok", "default", "work"}},
		{"an empty token file", binaryHTTP, []string{config, "--port", "0", "--token-file", empty}, 2, []string{"empty"}},
		{"a missing token file", binaryHTTP, []string{config, "--port", "0", "--token-file", empty + "2"}, 2, []string{"empty2"}},
		{"a port that is none", binaryHTTP, []string{config, "--port", "70000"}, 0, []string{"port"}},
	} {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			code, stderr := fails(t, v.program, v.args...)
			if code == 0 || v.code != 0 && code != v.code {
				t.Errorf("exit code %d, want %d", code, v.code)
			}
			for _, part := range v.parts {
				if !strings.Contains(stderr, part) {
					t.Errorf("stderr does not name %q:\n%s", part, stderr)
				}
			}
		})
	}
}

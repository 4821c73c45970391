package access

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"mcpx/config"
)

// TestGuardPages has requests as browsers and programs send them to localhost:8000. Each has a
// valid token. It checks whether they reach mcpx: on a route that changes something, and on /mcp.
func TestGuardPages(t *testing.T) {
	const (
		own   = "http://localhost:8000"
		other = "http://localhost:3000" // another port
	)
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("me:"+guardToken))
	bearer := "Bearer " + guardToken
	b := guard(Guard{Bind: "127.0.0.1:8000", Server: config.Server{
		Token: guardToken, AllowedOrigins: []string{"https://app.example.com"}, PublicURL: "https://mcpx.example.com",
	}})
	for _, row := range []struct {
		name, token, origin, site, cookie string
		console, mcp                      bool
	}{
		{"the console", basic, own, "same-origin", "", true, true},
		{"the console with cookies of another program", basic, own, "same-origin", "theme=dark", true, true},
		{"the console over plain HTTP in a network", basic, own, "", "", true, true},
		{"the console behind a proxy", basic, "https://mcpx.example.com", "same-origin", "", true, true},
		{"the console behind a proxy that changes the host", basic, "https://app.example.com", "same-origin", "", true, true},
		{"a program", bearer, "", "", "", true, true},
		{"a program with cookies", bearer, "", "", "route=a", false, true},
		{"a program with a password", basic, "", "", "", false, true},
		{"a client in a page of another port", bearer, other, "same-site", "", false, true},
		{"a client in a page of an allowed origin", bearer, "https://app.example.com", "cross-site", "", false, true},

		{"a page of another port", basic, other, "same-site", "", false, false},
		{"a page of another port, in a browser without Sec-Fetch-Site", basic, other, "", "", false, false},
		{"a page of another port that claims to be our own", basic, other, "same-origin", "", false, false},
		{"a page of another loopback name", basic, "http://127.0.0.1:8000", "cross-site", "", false, false},
		{"a page of an allowed origin", basic, "https://app.example.com", "cross-site", "", false, false},
		{"a page of the same host with another scheme", basic, "https://localhost:8000", "cross-site", "", false, false},
		{"a proxy that checks cookies", bearer, other, "same-site", "session=1", false, false},
		{"a browser without an Origin", basic, "", "same-site", "", false, false},
		{"a browser that says it was the person", basic, "", "none", "", false, false},
		{"a page without an origin", basic, "null", "cross-site", "", false, false},
	} {
		h := headersOf("Authorization", row.token)
		for name, value := range map[string]string{"Origin": row.origin, "Sec-Fetch-Site": row.site, "Cookie": row.cookie} {
			if value != "" {
				h.Set(name, value)
			}
		}
		for path, want := range map[string]bool{"/console/default/add": row.console, "/reload": row.console, "/mcp": row.mcp, "/message": row.mcp} {
			if got := b.ask("POST", path, "localhost:8000", h); got.reached != want || !want && got.status != http.StatusForbidden {
				t.Errorf("%s, %s: %d, reached %t: %s", row.name, path, got.status, got.reached, got.body)
			}
		}
	}
}

// TestGuardPagesWithoutAToken: without a token, a page on another port of this machine may be an
// MCP client. It may not use the console, and not read what the console shows.
func TestGuardPagesWithoutAToken(t *testing.T) {
	b := guard(Guard{})
	for _, row := range []struct {
		method, path string
		want         bool
	}{
		{"POST", "/mcp", true}, {"GET", "/sse", true}, {"POST", "/message", true}, {"DELETE", "/mcp/work", true}, {"GET", "/status", true},
		{"POST", "/console/default/stop", false}, {"GET", "/console/default/messages", false}, {"OPTIONS", "/console/default/stop", false},
		{"POST", "/reload", false}, {"POST", "/signout/default/a", false}, {"GET", "/signin/default/a", false}, {"GET", "/", false},
	} {
		h := headersOf("Origin", "http://localhost:3000", "Sec-Fetch-Site", "same-site", "Access-Control-Request-Method", "POST")
		if got := b.ask(row.method, row.path, "localhost:8000", h); got.reached != row.want {
			t.Errorf("%s %s: %d, reached %t", row.method, row.path, got.status, got.reached)
		}
	}
}

// TestGuardContentType: a page of another origin can send a body without a preflight request if
// its type is not JSON, or if it has no type. mcpx refuses such requests.
func TestGuardContentType(t *testing.T) {
	b := guard(Guard{})
	for kind, want := range map[string]bool{
		"application/json": true, "application/json; charset=utf-8": true, "Application/JSON": true,
		"": false, "text/plain": false, "application/x-www-form-urlencoded": false, "multipart/form-data; boundary=x": false,
		"application/json5": false, "text/plain; a=application/json": false, "application/json, text/plain": false, "application/json;": true,
	} {
		for _, path := range []string{"/mcp", "/message", "/reload", "/console/default/stop"} {
			got := b.ask("POST", path, "localhost", http.Header{"Content-Type": {kind}})
			if got.reached != want || !want && (got.status != http.StatusUnsupportedMediaType || !strings.Contains(got.body, "Content-Type must be application/json")) {
				t.Errorf("%s, Content-Type %q: %d, reached %t", path, kind, got.status, got.reached)
			}
		}
	}
	if got := b.ask("POST", "/mcp", "localhost", http.Header{"Content-Type": nil}); got.reached {
		t.Error("a body without a type passed")
	}
	if got := b.ask("DELETE", "/mcp", "localhost", nil); !got.reached {
		t.Error("DELETE has no body and needs no type")
	}
}

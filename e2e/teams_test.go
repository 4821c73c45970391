package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"mcpx/internal/parts/callers/callerstest"
	"mcpx/internal/parts/signin/signintest"
)

// team is a config with two profiles, three named tokens and an issuer, whose audience is
// mcpx.
func team(t *testing.T, issuer *callerstest.Issuer) map[string]any {
	config := threeProfiles(t)
	config["server"] = map[string]any{
		"public_url": "https://mcpx.example.com",
		"auth": map[string]any{
			"tokens": []any{
				map[string]any{"name": "admin", "token": "token-of-admin", "allow": []string{"*"}},
				map[string]any{"name": "ci", "token": "token-of-ci", "allow": []string{"work/a/pid", "work/a/echo"}},
				map[string]any{"name": "old", "token": "token-of-old", "allow": []string{"*"}, "expires": "2020-01-01"},
			},
			"oidc": map[string]any{
				"issuer": issuer.URL,
				"scopes": map[string]any{"mcp": []string{"default"}, "mcp:work": []string{"work"}},
			},
		},
	}
	return config
}

// as returns a client of a profile with a token.
func (s *site) as(token, path string) *caller {
	s.t.Helper()
	c := s.caller(path)
	c.token = token
	c.initialize()
	return c
}

const mcpAudience = "https://mcpx.example.com/mcp"

// TestTeamTokens: every route asks for a token, says where to get one, and refuses a bad
// one. The whole matrix is TestTokenMatrix in internal/parts/callers.
func TestTeamTokens(t *testing.T) {
	t.Parallel()
	issuer := callerstest.NewIssuer(t)
	s := serveHTTP(t, team(t, issuer), options{})
	metadata := `resource_metadata="https://mcpx.example.com/.well-known/oauth-protected-resource`
	for _, r := range routes {
		for token, want := range map[string]string{
			"":             "Bearer " + metadata,
			"wrong":        `error="invalid_token"`,
			"token-of-old": "has expired",
			issuer.Token(callerstest.Claims{"aud": "https://other.example.com"}): "another audience",
			issuer.Token(callerstest.Claims{"aud": mcpAudience, "exp": 1}):       "expired",
			issuer.Token(callerstest.Claims{"aud": mcpAudience, "typ": "ID"}):    "not an access token",
		} {
			c := s.caller(r.path)
			c.token = token
			x := c.try(r.method, r.path, r.body)
			challenge := x.header.Get("WWW-Authenticate")
			if x.status != http.StatusUnauthorized || !strings.Contains(challenge, want) || (token == "") == strings.Contains(challenge, "error=") {
				t.Errorf("%s %s with %q: %d %s", r.method, r.path, token, x.status, challenge)
			}
		}
	}
	for path, resource := range map[string]string{"": "", "/mcp": "/mcp", "/mcp/work": "/mcp/work"} {
		s.caller("").try("GET", "/.well-known/oauth-protected-resource"+path, "").want(t, path, http.StatusOK, `"resource":"https://mcpx.example.com`+resource+`"`)
	}
	c := s.caller("/mcp/work")
	c.token = issuer.Token(callerstest.Claims{"aud": mcpAudience, "scope": "mcp"})
	x := c.try("POST", "/mcp/work", initializeLine("2025-11-25", "{}"))
	if want := `error="insufficient_scope", scope="mcp:work"`; x.status != http.StatusForbidden || !strings.Contains(x.header.Get("WWW-Authenticate"), want) {
		t.Errorf("without the scope: %d %v", x.status, x.header)
	}
	c.token = "token-of-ci"
	c.try("POST", "/mcp/default", initializeLine("2025-11-25", "{}")).want(t, "ci on default", http.StatusNotFound, `profiles: work`)
}

// TestTeamSees: callers see and reach only what their rules grant, on every route.
func TestTeamSees(t *testing.T) {
	t.Parallel()
	s := serveHTTP(t, team(t, callerstest.NewIssuer(t)), options{})
	admin, ci := s.as("token-of-admin", "/mcp/work"), s.as("token-of-ci", "/mcp/work")
	if got := admin.exec("a", "echo", `{"text":"x"}`); got != ci.exec("a", "echo", `{"text":"x"}`) {
		t.Errorf("a granted tool: %s", got)
	}
	first := ci.result("tools/list", "")
	for _, hidden := range []string{"crash", "sleep"} {
		if got := textOf(t, ci.result("tools/call", execParams("a", hidden, "{}")), true); !strings.Contains(got, `has no tool "`+hidden+`"`) || !strings.Contains(got, "its tools: echo, pid") {
			t.Errorf("%s: %s", hidden, got)
		}
	}
	if got := textOf(t, ci.result("tools/call", inspectParams("a", "")), false); !strings.HasPrefix(got, "a: 2 tools\n") {
		t.Errorf("inspect: %s", got)
	}
	if got := ci.result("prompts/list", ""); got != `{"prompts":[]}` {
		t.Errorf("prompts: %s", got)
	}
	if m := ci.sendRequest("resources/read", `{"uri":"own://work"}`).answer(); m.Error == nil {
		t.Errorf("a resource was read: %s", m.line)
	}
	if got := ci.exec("mcpx", "show_config", ""); strings.Contains(got, "default") || strings.Contains(got, "token") || strings.Contains(got, "command") {
		t.Errorf("show_config: %s", got)
	}
	status := ci.try("GET", "/status", "").body
	if strings.Contains(status, `"default"`) || !strings.Contains(status, `"tools":2,"prompts":0,"resources":0`) || !strings.Contains(status, `"sessions":1`) {
		t.Errorf("/status: %s", status)
	}
	if all := admin.try("GET", "/status", "").body; !strings.Contains(all, `"default"`) || !strings.Contains(all, `"sessions":2`) {
		t.Errorf("/status of admin: %s", all)
	}
	if got := ci.try("GET", "/metrics", "").body; strings.Contains(got, "mcpx_") || strings.Contains(got, "process_") {
		t.Errorf("/metrics: %s", got)
	}
	if got := ci.try("GET", "/console/work/search?q=crash+sleep", "").body; strings.Contains(got, `"crash"`) || strings.Contains(got, `"sleep"`) {
		t.Errorf("the console finds: %s", got)
	}
	ci.try("GET", "/console/work/tool?server=a&tool=echo", "").want(t, "a granted tool in the console", http.StatusOK, "echo")
	ci.try("GET", "/console/work/tool?server=a&tool=crash", "").want(t, "a hidden tool in the console", http.StatusNotFound, "no such tool")
	ci.try("GET", "/console/default/server?server=a", "").want(t, "a hidden profile in the console", http.StatusNotFound, "profiles: work")
	if got := ci.try("GET", "/console/work/server?server=a", "").body; strings.Contains(got, "-full") {
		t.Errorf("the console shows the config: %s", got)
	}
	ci.try("POST", "/console/work/restart?server=a", "").want(t, "a restart", http.StatusForbidden, "may use everything")
	ci.try("POST", "/reload", "").want(t, "/reload", http.StatusForbidden, "not allowed")
	if again := ci.result("tools/list", ""); again != first {
		t.Errorf("tools/list has changed: %s", again)
	}
	stranger := s.caller("/mcp/work")
	stranger.token, stranger.session = "token-of-admin", ci.session
	stranger.try("POST", "/mcp/work", pingLine).want(t, "the session of another", http.StatusNotFound, "no such session")
}

// TestTokenRefresh: a client session belongs to the caller. With a new token it keeps its
// subscriptions and handles, and has the rights of the new token.
func TestTokenRefresh(t *testing.T) {
	t.Parallel()
	issuer := callerstest.NewIssuer(t)
	s := serveHTTP(t, team(t, issuer), options{})
	token := func(claims callerstest.Claims) string {
		claims["aud"] = mcpAudience
		return issuer.Token(claims)
	}
	c := s.as(token(callerstest.Claims{"scope": "mcp"}), "/mcp")
	stream := c.listen()
	c.result("resources/subscribe", `{"uri":"test://one"}`)
	kept := c.exec("a", "large", `{"bytes":400000}`)
	if !strings.Contains(kept, "r1") {
		t.Fatalf("no handle: %s", clip(kept))
	}
	issuer.Rotate() // the old key is known; the new one is fetched
	c.token = token(callerstest.Claims{"scope": "mcp openid", "jti": "2"})
	eventually(t, "the new key is not fetched", func() (string, bool) {
		x := c.try("POST", "/mcp", pingLine)
		return fmt.Sprint(x.status), x.status == http.StatusOK
	})
	if got := c.exec("mcpx", "read_result", `{"id":"r1","limit":10}`); got == "" {
		t.Error("the handle is lost")
	}
	c.exec("a", "say", `{"method":"notifications/resources/updated","params":[{"uri":"test://one"}]}`)
	stream.wait("update", func() bool { return strings.Contains(fmt.Sprint(stream.messages), "notifications/resources/updated") })
	c.token = token(callerstest.Claims{"scope": "mcp", "sub": "bob"})
	c.try("POST", "/mcp", pingLine).want(t, "bob in the session of alice", http.StatusNotFound, "no such session")
	c.token = token(callerstest.Claims{"scope": "mcp:work"})
	if x := c.try("POST", "/mcp", pingLine); x.status != http.StatusForbidden {
		t.Errorf("a token without the scope: %d", x.status)
	}
}

// headerServer is an MCP server over HTTP whose only tool returns the header Authorization
// of the request. It fails the test if one session has two of them.
func headerServer(t *testing.T) (url string, opened *atomic.Int32) {
	t.Helper()
	opened = &atomic.Int32{}
	var mu sync.Mutex
	owners := map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var m struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.Unmarshal(body, &m)
		seen := r.Header.Get("Authorization")
		session := r.Header.Get(sessionHeader)
		mu.Lock()
		if m.Method == "initialize" {
			session = fmt.Sprint("s", opened.Add(1))
			owners[session] = seen
		}
		if m.Method != "server/discover" && owners[session] != seen {
			t.Errorf("%s with %q in the session of %q", m.Method, seen, owners[session])
		}
		mu.Unlock()
		w.Header().Set(sessionHeader, session)
		results := map[string]string{
			"initialize": `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"headers","version":"1"}}`,
			"tools/list": fmt.Sprintf(`{"tools":[{"name":"who","description":"Who is %s","inputSchema":{"type":"object"}}]}`, seen),
			"tools/call": fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, fmt.Sprint(seen, " ", r.Header.Get("X-Token"))),
			"ping":       "{}",
		}
		switch {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case m.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		case results[m.Method] == "":
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, m.ID)
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, results[m.Method])
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, opened
}

// TestUserIsolation: two callers share mcpx, but neither an upstream session nor a header.
// They make 10,000 calls at the same time.
func TestUserIsolation(t *testing.T) {
	t.Parallel()
	address, opened := headerServer(t)
	s := serveHTTP(t, map[string]any{
		"mcpServers": map[string]any{"own": map[string]any{
			"url": address, "type": "http", "isolation": "user", "forward_headers": map[string]any{"X-Token": "Authorization: Bearer {}"},
		}},
		"server": map[string]any{"auth": map[string]any{"tokens": []any{
			map[string]any{"name": "ann", "token": "token-of-ann", "allow": []string{"*"}},
			map[string]any{"name": "bob", "token": "token-of-bob", "allow": []string{"*"}},
		}}},
	}, options{})
	if opened.Load() != 0 {
		t.Error("a session was opened before anybody used it")
	}
	const clients, calls = 4, 1250 // for each of two callers
	var running sync.WaitGroup
	for _, name := range []string{"ann", "bob"} {
		for range clients {
			running.Go(func() {
				c := s.caller("/mcp")
				c.token, c.headers = "token-of-"+name, []string{"X-Token", "key-of-" + name}
				c.initialize()
				for range calls {
					if got := c.exec("own", "who", "{}"); got != "Bearer key-of-"+name+" " {
						t.Errorf("%s is %q", name, got)
						return
					}
				}
				if got := textOf(t, c.result("tools/call", inspectParams("own", "who")), false); !strings.Contains(got, "key-of-"+name) && !strings.Contains(got, "***") {
					t.Errorf("the list of %s: %s", name, got)
				}
			})
		}
	}
	running.Wait()
	if n := opened.Load(); n != 2 {
		t.Errorf("%d upstream sessions, want one for each caller", n)
	}
	c := s.as("token-of-ann", "/mcp")
	if got := textOf(t, c.result("tools/call", execParams("own", "who", "{}")), true); !strings.Contains(got, "needs the header X-Token") {
		t.Errorf("without the header: %s", got)
	}
	if errors := s.errors(); strings.Contains(errors, "key-of-") {
		t.Errorf("a forwarded header is in the log: %s", clip(errors))
	}
}

// TestAudit: one line for each call, without values, in a file that SIGHUP opens again.
func TestAudit(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	s := serveHTTP(t, with(team(t, callerstest.NewIssuer(t)), "logging", map[string]any{"audit": file}), options{})
	c := s.as("token-of-ci", "/mcp/work")
	c.exec("a", "echo", `{"text":"a very secret value"}`)
	lines := func(file string, n int) string {
		var text []byte
		eventually(t, "the audit is not written", func() (string, bool) {
			text, _ = os.ReadFile(file)
			return string(text), strings.Count(string(text), "\n") >= n
		})
		return string(text)
	}
	var l struct {
		Time, Caller, Client, Schema, Server, Tool, HMAC, Outcome string
		Name                                                      string `json:"client_name"`
		Version                                                   string `json:"client_version"`
		Arguments                                                 map[string]int
	}
	text := lines(file, 1)
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		t.Fatal(err)
	}
	if l.Caller != "ci" || l.Schema != "work" || l.Server != "a" || l.Tool != "echo" || l.Outcome != "ok" || l.Arguments["text"] != 21 || len(l.HMAC) != 64 || l.Time == "" || l.Client == "" || strings.Contains(text, "secret value") {
		t.Errorf("audit: %s", text)
	}
	if l.Name != "e2e" || l.Version != "1" {
		t.Errorf("the client's name and version: %s", text)
	}
	if err := os.Rename(file, file+".1"); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the audit is not opened again", func() (string, bool) {
		_, err := os.Stat(file)
		return fmt.Sprint(err), err == nil
	})
	textOf(t, c.result("tools/call", execParams("a", "crash", "{}")), true)
	if got := lines(file, 1); !strings.Contains(got, `"outcome":"not_found"`) || strings.Count(lines(file+".1", 1), "\n") != 1 {
		t.Errorf("after SIGHUP: %s", got)
	}
	info, err := os.Stat(file + ".key")
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key: %v %v", info, err)
	}
}

// TestAuditWithoutInitialize: a client of 2026-07-28 names its program with each request.
func TestAuditWithoutInitialize(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	p := start(t, with(one(t), "logging", map[string]any{"audit": file}), options{})
	p.result("tools/call", strings.TrimSuffix(execParams("a", "pid", "{}"), "}")+","+meta2026("{}")+"}")
	eventually(t, "the audit has the client's name", func() (string, bool) {
		text, _ := os.ReadFile(file)
		return string(text), strings.Contains(string(text), `"client_name":"e2e","client_version":"1"`)
	})
}

// TestUserSignIn: with isolation user, each caller signs in to an upstream for itself. A
// caller with rules cannot sign in for everybody, nor complete the sign-in of another.
func TestUserSignIn(t *testing.T) {
	t.Parallel()
	locked := signintest.New(t)
	s := serveHTTP(t, map[string]any{
		"auth": map[string]string{"store": "file"},
		"mcpServers": map[string]any{
			"own": map[string]any{"url": locked.URL, "isolation": "user"}, "shared": map[string]any{"url": locked.URL},
		},
		"server": map[string]any{"auth": map[string]any{"tokens": []any{
			map[string]any{"name": "ann", "token": "token-of-ann", "allow": []string{"default"}, "read_only": true},
			map[string]any{"name": "bob", "token": "token-of-bob", "allow": []string{"*"}},
		}}},
	}, options{env: []string{stateFolder(t)}})
	// open follows redirects like a browser that sends the token to mcpx, until follow returns
	// false.
	open := func(name, address string, follow func(address string) bool) (status int, last string) {
		t.Helper()
		client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		for range 10 {
			r, err := http.NewRequest(http.MethodGet, address, nil)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(address, s.url) {
				r.SetBasicAuth("any", "token-of-"+name)
			}
			response, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			status, last = response.StatusCode, address
			if address = response.Header.Get("Location"); address == "" || !follow(address) {
				return status, address
			}
		}
		return status, last
	}
	always := func(string) bool { return true }
	ann, bob := s.as("token-of-ann", "/mcp"), s.as("token-of-bob", "/mcp")
	for name, c := range map[string]*caller{"ann": ann, "bob": bob} {
		if got := textOf(t, c.result("tools/call", inspectParams("own", "")), true); !strings.Contains(got, "needs sign-in") {
			t.Fatalf("%s: %s", name, got)
		}
	}
	if status, _ := open("ann", s.url+"/signin/default/shared", always); status != http.StatusForbidden {
		t.Errorf("ann signs in for everybody: %d", status)
	}
	_, callback := open("ann", s.url+"/signin/default/own", func(address string) bool { return !strings.HasPrefix(address, s.url+"/oauth/callback") })
	if status, _ := open("bob", callback, always); status != http.StatusBadRequest {
		t.Errorf("bob completes the sign-in of ann: %d", status)
	}
	if status, _ := open("ann", callback, always); status != http.StatusOK {
		t.Fatalf("ann cannot sign in: %d", status)
	}
	if got := textOf(t, ann.result("tools/call", inspectParams("own", "")), false); !strings.Contains(got, "own: ") {
		t.Errorf("ann: %s", got)
	}
	if got := textOf(t, bob.result("tools/call", inspectParams("own", "")), true); !strings.Contains(got, "needs sign-in") {
		t.Errorf("bob uses the sign-in of ann: %s", got)
	}
}

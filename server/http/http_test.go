package httpfront

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpx/config"
	"mcpx/executor"
	"mcpx/internal/rawjson"
	"mcpx/registry"
	"mcpx/server"
)

// site is the HTTP front over running upstreams.
type site struct {
	*HTTP
	url      string
	registry *registry.Registry // of the default profile
	executor *executor.Executor
}

func serveHTTP(t *testing.T, upstreams ...map[string]any) *site {
	t.Helper()
	b := start(t, upstreams...)
	h := &HTTP{Servers: map[string]*server.Server{"default": b.Server, "other": bare("x")}, Limits: config.Limits{BodyBytes: 10_000, Sessions: 3, SessionIdle: time.Hour}}
	s := httptest.NewServer(h.Handler())
	t.Cleanup(func() {
		h.closeStreams()
		s.Close()
		h.sessions.endAll()
	})
	return &site{h, s.URL, b.registry, b.executor}
}

// do makes a request; header are pairs of names and values.
func (s *site) do(t *testing.T, method, path, body string, header ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

// whole is a whole answer: status, and body.
func whole(t *testing.T, r *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(r.StatusCode, " ", string(body))
}

// open opens a session and returns its id.
func (s *site) open(t *testing.T, capabilities string) string {
	t.Helper()
	r := s.do(t, "POST", "/mcp", request("initialize", `{"protocolVersion":"2025-06-18","capabilities":`+capabilities+`}`))
	id := r.Header.Get(sessionHeader)
	if r.StatusCode != http.StatusOK || id == "" {
		t.Fatalf("initialize: %s", whole(t, r))
	}
	if got := whole(t, s.do(t, "POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, sessionHeader, id)); got != "202 " {
		t.Fatalf("initialized: %s", got)
	}
	return id
}

func TestHTTPSession(t *testing.T) {
	s := serveHTTP(t, upstream(t, "one"))
	id := s.open(t, "{}")
	call := request("tools/call", `{"name":"exec","arguments":{"server_name":"one","tool_name":"echo","arguments":{"text":"hi"}}}`)
	none := `404 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"there is no such session; send initialize"}}`
	for _, row := range []struct {
		name, method, path, body, want string
		header                         []string
	}{
		{"call", "POST", "/mcp", call, `200 {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hi"}]}}`, []string{sessionHeader, id}},
		{"call by the profile's name", "POST", "/mcp/default", call, `200 {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hi"}]}}`, []string{sessionHeader, id}},
		{"call with a slash at the end", "POST", "/mcp/", call, `200 {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hi"}]}}`, []string{sessionHeader, id}},
		{"another profile's session", "POST", "/mcp/other", call, none, []string{sessionHeader, id}},
		{"invented", "POST", "/mcp", call, none, []string{sessionHeader, "made-up"}},
		{"another credential", "POST", "/mcp", call, none, []string{sessionHeader, id, "Authorization", "Bearer x"}},
		{"none", "POST", "/mcp", call, `400 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the header Mcp-Session-Id is missing; send initialize first"}}`, nil},
		{"no profile", "POST", "/mcp/nope", call, `404 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"there is no profile \"nope\"; profiles: default, other"}}`, nil},
		{"not JSON", "POST", "/mcp", "{", `400 {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: not valid JSON"}}`, []string{sessionHeader, id}},
		{"too large", "POST", "/mcp", strings.Repeat("x", 20_000), `413 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a message is at most 10000 bytes (limits.body_bytes)"}}`, []string{sessionHeader, id}},
		{"not said to be JSON", "POST", "/mcp", call, `415 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Content-Type must be application/json"}}`, []string{"Content-Type", "text/plain"}},
		{"unknown revision", "POST", "/mcp", call, `400 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Unsupported protocol version: 1999-01-01"}}`, []string{"Mcp-Protocol-Version", "1999-01-01"}},
		{"initialize that fails", "POST", "/mcp", request("initialize", `{"protocolVersion":"1999-01-01"}`), `200 {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"Unsupported protocol version: 1999-01-01"}}`, nil},
		{"stream without a session", "GET", "/mcp", "", `400 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the header Mcp-Session-Id is missing; send initialize first"}}`, nil},
		{"message without a session", "POST", "/message", call, `404 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"there is no such session; open one with GET /sse"}}`, nil},
		{"end", "DELETE", "/mcp", "", "204 ", []string{sessionHeader, id}},
		{"after the end", "POST", "/mcp", call, none, []string{sessionHeader, id}},
		{"health", "GET", "/health", "", `200 {"status":"ok"}`, nil},
	} {
		if got := whole(t, s.do(t, row.method, row.path, row.body, row.header...)); got != row.want {
			t.Errorf("%s:\n got %s\nwant %s", row.name, got, row.want)
		}
	}
}

// TestHTTPInvalidMessages: bodies that are not JSON-RPC are refused, with and without
// a session, and the session stays.
func TestHTTPInvalidMessages(t *testing.T) {
	s := serveHTTP(t)
	id := s.open(t, "{}")
	refused := func(id string, code int, message string) string {
		return fmt.Sprintf(`400 {"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, id, code, rawjson.AppendString(nil, message))
	}
	const version = `Invalid request: "jsonrpc" must be "2.0"`
	for _, row := range []struct{ name, body, want string }{
		{"text", `hello`, refused("null", -32700, "Parse error: not valid JSON")},
		{"nothing", ``, refused("null", -32700, "Parse error: not valid JSON")},
		{"half a request", `{"jsonrpc":"2.0","id":1,"method":"ping"`, refused("null", -32700, "Parse error: not valid JSON")},
		{"half a batch", `[{"jsonrpc":"2.0"`, refused("null", -32700, "Parse error: not valid JSON")},
		{"no version", `{"id":5,"method":"ping"}`, refused("5", -32600, version)},
		{"no version, initialize", `{"id":"a","method":"initialize","params":{"protocolVersion":"2025-06-18"}}`, refused(`"a"`, -32600, version)},
		{"no version, notification", `{"method":"notifications/initialized"}`, refused("null", -32600, version)},
		{"no version, response", `{"id":5,"result":{}}`, refused("5", -32600, version)},
		{"no version and no valid id", `{"id":[],"method":"ping"}`, refused("null", -32600, `Invalid request: "id" must be a string or a number`)},
		{"no version, 2026-07-28", `{"id":5,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, refused("5", -32600, version)},
		{"another version", `{"jsonrpc":"1.0","id":5,"method":"ping"}`, refused("5", -32600, version)},
		{"no method", `{"jsonrpc":"2.0","id":5}`, refused("5", -32600, `Invalid request: no "method"`)},
		{"a number", `5`, refused("null", -32600, "Invalid request: a message is one JSON object")},
	} {
		for name, header := range map[string][]string{"session": {sessionHeader, id}, "no session": nil} {
			if got := whole(t, s.do(t, "POST", "/mcp", row.body, header...)); got != row.want {
				t.Errorf("%s, %s:\n got %s\nwant %s", row.name, name, got, row.want)
			}
		}
	}
	if got := whole(t, s.do(t, "POST", "/mcp", request("ping", ""), sessionHeader, id)); got != "200 "+result("{}") {
		t.Errorf("the session is gone: %s", got)
	}
}

func TestJSONHasItsContentType(t *testing.T) {
	s := serveHTTP(t)
	for _, path := range []string{"/health", "/mcp", "/mcp/nope"} {
		if got := s.do(t, "GET", path, "").Header.Get("Content-Type"); got != "application/json" {
			t.Errorf("%s: Content-Type %q", path, got)
		}
	}
}

// TestHTTPBodyIsUTF8: invalid UTF-8 is replaced before anything else happens, because
// it could end an upstream.
func TestHTTPBodyIsUTF8(t *testing.T) {
	s := serveHTTP(t)
	got := whole(t, s.do(t, "POST", "/mcp", `{"jsonrpc":"2.0","id":"`+"a\xffb"+`","method":"ping"}`, sessionHeader, s.open(t, "{}")))
	if want := `200 {"jsonrpc":"2.0","id":"` + "a\ufffdb" + `","result":{}}`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	got = whole(t, s.do(t, "POST", "/mcp", "\ufeff"+`{"jsonrpc":"2.0","id":1,"method":"ping"}`, sessionHeader, s.open(t, "{}")))
	if want := `200 {"jsonrpc":"2.0","id":1,"result":{}}`; got != want {
		t.Errorf("with a byte order mark: got %q, want %q", got, want)
	}
}

// TestClientChoosesExposure: a client may choose how it sees the tools, and then sees
// the server of each.
func TestClientChoosesExposure(t *testing.T) {
	s := serveHTTP(t, upstream(t, "one"))
	listed := func(query string) string {
		r := s.do(t, "POST", "/mcp"+query, request("initialize", `{"protocolVersion":"2025-06-18"}`))
		id := r.Header.Get(sessionHeader)
		defer s.do(t, "DELETE", "/mcp"+query, "", sessionHeader, id)
		return whole(t, s.do(t, "POST", "/mcp"+query, request("tools/list", "{}"), sessionHeader, id))
	}
	origin := `"_meta":{"mcpx/server":"one","mcpx/name":"echo"}`
	if got := listed("?expose=flat"); !strings.Contains(got, `"name":"one__echo"`) || !strings.Contains(got, origin) {
		t.Errorf("flat: %.300s", got)
	}
	for _, query := range []string{"", "?expose=lazy"} {
		if got := listed(query); strings.Count(got, `"inputSchema"`) != 2 || strings.Contains(got, "_meta") {
			t.Errorf("%q: %.300s", query, got)
		}
	}
	if got := whole(t, s.do(t, "POST", "/mcp?expose=x", request("ping", "{}"))); !strings.HasPrefix(got, "400 ") || !strings.Contains(got, "lazy or flat") {
		t.Errorf("unknown: %s", got)
	}
}

// TestHeadOpensNothing: HEAD opens neither a stream nor a session.
func TestHeadOpensNothing(t *testing.T) {
	s := serveHTTP(t, upstream(t, "one"))
	id := s.open(t, "{}")
	getStream := events(s.do(t, "GET", "/mcp", "", sessionHeader, id))
	for path, allowed := range map[string]string{"/mcp": "GET, POST, DELETE", "/mcp/default": "GET, POST, DELETE", "/sse": "GET", "/sse/default": "GET"} {
		r := s.do(t, "HEAD", path, "", sessionHeader, id)
		if got := whole(t, r); got != "405 " || r.Header.Get("Allow") != allowed {
			t.Errorf("HEAD %s: %s, allowed %s", path, got, r.Header.Get("Allow"))
		}
	}
	if n := len(s.sessions.all()); n != 1 {
		t.Errorf("%d sessions, want 1", n)
	}
	n := s.sessions.all()[0]
	if err := n.Send([]byte(`{"still":"there"}`)); err != nil || !getStream.Scan() || getStream.Text() != `{"still":"there"}` {
		t.Errorf("the GET stream has %q: %v", getStream.Text(), err)
	}
}

func TestStateless(t *testing.T) {
	s := serveHTTP(t, upstream(t, "one"))
	s.Stateless = true
	call := request("tools/call", exec("progress", `{"steps":1}`))
	got := whole(t, s.do(t, "POST", "/mcp", call, "Mcp-Protocol-Version", "2025-06-18"))
	if !strings.Contains(got, `"text":"1 steps"`) || len(s.sessions.byID) != 0 {
		t.Errorf("got %s", got)
	}
	r := s.do(t, "POST", "/mcp", request("initialize", `{"protocolVersion":"2025-06-18"}`))
	if got := whole(t, r); r.Header.Get(sessionHeader) != "" || !strings.Contains(got, "2025-06-18") {
		t.Errorf("initialize: %s", got)
	}
	if got := whole(t, s.do(t, "GET", "/mcp", "")); !strings.HasPrefix(got, "405 ") {
		t.Errorf("GET is answered with %s", got)
	}
}

// listening is the HTTP front on a listener of its own.
type listening struct {
	*site
	listener net.Listener
	stop     context.CancelFunc
	wait     func() error // for the end of Run
}

// listenHTTP runs a front over upstreams until the test ends.
func listenHTTP(t *testing.T, h *HTTP, upstreams ...map[string]any) *listening {
	t.Helper()
	b := start(t, upstreams...)
	h.Servers = map[string]*server.Server{"default": b.Server}
	h.Limits.BodyBytes, h.Limits.Sessions, h.Limits.SessionIdle = 8<<20, 10, time.Hour
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx, l) }()
	wait := sync.OnceValue(func() error { return <-ended })
	t.Cleanup(func() {
		cancel()
		_ = wait()
	})
	return &listening{&site{h, "http://" + l.Addr().String(), b.registry, b.executor}, l, cancel, wait}
}

// TestHTTPRunEnds: it ends with the last call in flight, whatever streams are open.
func TestHTTPRunEnds(t *testing.T) {
	limits := defaultTimes
	limits.drain = 2 * patience
	s := listenHTTP(t, &HTTP{times: limits}, upstream(t, "one"))
	id := s.open(t, "{}")
	streams := map[string]*http.Response{
		"a GET stream":    s.do(t, "GET", "/mcp", "", sessionHeader, id),
		"a stream of SSE": s.do(t, "GET", "/sse", ""),
		"subscriptions/listen": s.do(t, "POST", "/mcp", request("subscriptions/listen", `{"notifications":{"promptsListChanged":true},`+meta("{}", "")+`}`),
			"Mcp-Method", "subscriptions/listen"),
	}
	call := s.do(t, "POST", "/mcp", request("tools/call", exec("progress", `{"steps":2,"every_ms":200}`)), sessionHeader, id)
	begin := time.Now()
	s.stop()
	if got := whole(t, call); !strings.Contains(got, `"text":"2 steps"`) {
		t.Errorf("the call in flight got %s", got)
	}
	for name, stream := range streams {
		if got := whole(t, stream); !strings.HasPrefix(got, "200 ") {
			t.Errorf("%s ended with %s", name, got)
		}
	}
	if err := s.wait(); err != nil {
		t.Errorf("Run: %v", err)
	}
	if took := time.Since(begin); took > patience {
		t.Errorf("it took %s, though nothing was in flight any more", took)
	}
	if err := s.Run(t.Context(), s.listener); err == nil {
		t.Error("a closed listener is served")
	}
}

// TestHandlerTwice: a second call of Handler keeps the sessions.
func TestHandlerTwice(t *testing.T) {
	h := &HTTP{Servers: map[string]*server.Server{"default": bare()}, Limits: config.Limits{Sessions: 10, SessionIdle: time.Hour}}
	h.Handler()
	n := one(t, h.sessions)
	h.Handler()
	found, done := h.sessions.find(n.id, streamableHTTP, httptest.NewRequestWithContext(t.Context(), "POST", "/mcp", nil))
	if found != n {
		t.Fatal("the session is gone")
	}
	done()
}

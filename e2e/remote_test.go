package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

const remoteKey = "Bearer sentinel-key-1"

// remote is a real MCP server over Streamable HTTP on /mcp and legacy SSE on /sse. It
// can be stopped and started again at its address.
type remote struct {
	t       *testing.T
	address string
	key     string        // the Authorization that it requires; empty: none
	hanging chan string   // receives the text of every call to hang
	cancels chan string   // receives every notifications/cancelled
	release chan struct{} // closed at the end of the test, to end calls to hang
	barrier sync.WaitGroup

	mu     sync.Mutex
	server *http.Server
	known  map[string]bool // sessions since the last start
	lost   int             // the status for an unknown session
	calls  map[string]int  // by text
	heads  []http.Header   // of every request
}

func newRemote(t *testing.T) *remote {
	t.Helper()
	r := &remote{t: t, address: "127.0.0.1:0", lost: http.StatusNotFound, calls: map[string]int{}, hanging: make(chan string, 100), cancels: make(chan string, 100), release: make(chan struct{})}
	r.start()
	t.Cleanup(func() {
		close(r.release)
		r.stop()
	})
	return r
}

// start starts the server, which then knows no session.
func (r *remote) start() {
	r.t.Helper()
	var l net.Listener
	eventually(r.t, "listen on "+r.address, func() (string, bool) { // another connection may use the port for a moment
		var err error
		l, err = new(net.ListenConfig).Listen(context.Background(), "tcp", r.address)
		return fmt.Sprint(err), err == nil
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.address, r.known = l.Addr().String(), map[string]bool{}
	r.server = &http.Server{Handler: r.handler(), ReadHeaderTimeout: patience}
	go func(s *http.Server) { _ = s.Serve(l) }(r.server)
}

// stop ends the server and its connections at once.
func (r *remote) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.server.Close()
}

// forget makes the server forget all sessions and answer requests of one with a status.
func (r *remote) forget(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known, r.lost = map[string]bool{}, status
}

// called returns how often a call with that text came.
func (r *remote) called(text string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls[text]
}

// headers returns the headers of every request that came.
func (r *remote) headers() []http.Header {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]http.Header(nil), r.heads...)
}

// tools returns the server with its three tools.
func (r *remote) tools() *mcpserver.MCPServer {
	s := mcpserver.NewMCPServer("remote", "1", mcpserver.WithToolCapabilities(true))
	add := func(name string, run func(ctx context.Context, text string)) {
		s.AddTool(mcp.NewTool(name, mcp.WithString("text", mcp.Required())), func(ctx context.Context, c mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			text := c.GetString("text", "")
			r.mu.Lock()
			r.calls[text]++
			r.mu.Unlock()
			run(ctx, text)
			return mcp.NewToolResultText(text), nil
		})
	}
	add("echo", func(context.Context, string) {})
	add("hang", func(_ context.Context, text string) {
		r.hanging <- text
		<-r.release
	})
	add("together", func(context.Context, string) { // answers when all calls have come
		r.barrier.Done()
		r.barrier.Wait()
	})
	return s
}

// handler returns the routes of a newly started server.
func (r *remote) handler() http.Handler {
	s := r.tools()
	legacy := mcpserver.NewSSEServer(s)
	mux := http.NewServeMux()
	mux.Handle("/mcp", r.sessions(mcpserver.NewStreamableHTTPServer(s, mcpserver.WithStreamableHTTPProtocolVersions(mcp.LegacyProtocolVersions()...))))
	mux.Handle("/sse", legacy.SSEHandler())
	mux.Handle("/message", legacy.MessageHandler())
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		r.heads = append(r.heads, maps.Clone(q.Header))
		r.mu.Unlock()
		if r.key != "" && q.Header.Get("Authorization") != r.key {
			http.Error(w, `{"error":{"message":"no such key"}}`, http.StatusUnauthorized)
			return
		}
		body, _ := io.ReadAll(q.Body)
		if parse(string(body)).Method == "notifications/cancelled" {
			r.cancels <- string(body)
		}
		q.Body = io.NopCloser(bytes.NewReader(body))
		mux.ServeHTTP(w, q)
	})
}

// sessions refuses sessions that the server did not open; mcp-go accepts any.
func (r *remote) sessions(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		id := q.Header.Get(sessionHeader)
		r.mu.Lock()
		stranger, status := id != "" && !r.known[id], r.lost
		r.mu.Unlock()
		if stranger {
			http.Error(w, "Bad Request: no valid session ID", status)
			return
		}
		next.ServeHTTP(&sessionWriter{w, r}, q)
	})
}

// sessionWriter records the session that a response opens.
type sessionWriter struct {
	http.ResponseWriter
	remote *remote
}

func (w *sessionWriter) WriteHeader(status int) {
	if id := w.Header().Get(sessionHeader); id != "" {
		w.remote.mu.Lock()
		w.remote.known[id] = true
		w.remote.mu.Unlock()
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *sessionWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *sessionWriter) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// upstream returns the config for one transport of the server, "" to have mcpx find it.
func (r *remote) upstream(kind string, headers map[string]string) map[string]any {
	path := map[string]string{"http": "/mcp", "sse": "/sse", "": "/sse"}[kind]
	u := map[string]any{"url": "http://" + r.address + path}
	if kind != "" {
		u["type"] = kind
	}
	if headers != nil {
		u["headers"] = headers
	}
	return u
}

// eachTransport runs a test with a remote upstream a over both transports.
func eachTransport(t *testing.T, test func(t *testing.T, r *remote, p *process)) {
	t.Helper()
	for _, kind := range []string{"http", "sse"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r := newRemote(t)
			p := serve(t, map[string]any{"a": r.upstream(kind, nil)})
			p.initialize()
			test(t, r, p)
		})
	}
}

// wantCalls checks how often calls with these texts came.
func (r *remote) wantCalls(want map[string]int) {
	r.t.Helper()
	for text, n := range want {
		if got := r.called(text); got != n {
			r.t.Errorf("%q was called %d times, want %d", text, got, n)
		}
	}
}

// TestRemoteUpstreams: every transport to a remote server works, and a wrong key costs
// only its own upstream.
func TestRemoteUpstreams(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.key = remoteKey
	right := map[string]string{"Authorization": "Bearer ${REMOTE_KEY}"}
	wrong := map[string]string{"Authorization": "Bearer sentinel-wrong"}
	p := start(t, map[string]any{"mcpServers": map[string]any{
		"streamable":  r.upstream("http", right),
		"legacy":      r.upstream("sse", right),
		"found":       r.upstream("", right),
		"wrong":       r.upstream("http", wrong),
		"wronglegacy": r.upstream("sse", wrong),
		"none":        r.upstream("http", nil),
		"unset":       r.upstream("http", map[string]string{"Authorization": "Bearer ${NO_SUCH_KEY}"}),
	}}, options{env: []string{"REMOTE_KEY=" + strings.TrimPrefix(remoteKey, "Bearer ")}, flags: []string{"--log-level", "debug"}})
	p.initialize()
	for _, server := range []string{"streamable", "legacy", "found"} {
		if got := p.exec(server, "echo", `{"text":"hello `+server+`"}`); got != "hello "+server {
			t.Errorf("%s: got %q", server, got)
		}
	}
	for server, want := range map[string]string{
		"wrong": "authentication failed: HTTP status 401", "none": "authentication failed: HTTP status 401",
		"wronglegacy": "HTTP status 401", "unset": "NO_SUCH_KEY",
	} {
		if got := p.execError(server, "echo", `{"text":"x"}`); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %q", server, got, want)
		}
	}
	r.wantCalls(map[string]int{"hello streamable": 1, "hello legacy": 1, "hello found": 1, "x": 0})
	if strings.Contains(p.errors(), "sentinel") {
		t.Errorf("the log has a key:\n%s", clip(p.errors()))
	}
}

// TestRemoteForgetsSession: if the response to a call is 404, the server has forgotten its sessions
// and did not run the call. mcpx sends it once more, in a new session. After another status, mcpx
// does not know whether the call ran, so it fails, and the next call gets a new session.
func TestRemoteForgetsSession(t *testing.T) {
	t.Parallel()
	for status, made := range map[int]int{http.StatusNotFound: 1, http.StatusBadRequest: 0} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			r := newRemote(t)
			p := serve(t, map[string]any{"a": r.upstream("http", nil)})
			p.initialize()
			p.exec("a", "echo", `{"text":"before"}`)
			r.forget(status)
			if made == 1 {
				p.exec("a", "echo", `{"text":"during"}`)
			} else if got := p.execError("a", "echo", `{"text":"during"}`); !strings.Contains(got, "the server has forgotten the session") {
				t.Errorf("got %s", got)
			}
			p.exec("a", "echo", `{"text":"after"}`)
			r.wantCalls(map[string]int{"before": 1, "during": made, "after": 1})
		})
	}
}

// TestRemoteDies: when a server dies during a call, nobody knows whether the call took
// effect, so it fails and is not repeated. Calls work again once the server is back.
func TestRemoteDies(t *testing.T) {
	t.Parallel()
	eachTransport(t, func(t *testing.T, r *remote, p *process) {
		id := p.nextID()
		p.send(id, "tools/call", execParams("a", "hang", `{"text":"during"}`))
		<-r.hanging
		r.stop()
		if got := textOf(t, string(p.answer(id).Result), true); !strings.Contains(got, "whether the call took effect is unknown") {
			t.Errorf("got %s", got)
		}
		// The end of an idle connection may not have been noticed yet.
		eventually(t, "a call without the server", func() (string, bool) {
			got := p.execError("a", "echo", `{"text":"without"}`)
			return got, strings.Contains(got, "connection refused")
		})
		r.start()
		eventually(t, "the server is back", func() (string, bool) {
			result := p.result("tools/call", execParams("a", "echo", `{"text":"after"}`))
			return clip(result), !strings.Contains(result, `"isError":true`)
		})
		r.wantCalls(map[string]int{"during": 1, "without": 0, "after": 1})
	})
}

// TestCancelReachesRemote: a canceled call is canceled at the server too, by an ID of
// mcpx's own.
func TestCancelReachesRemote(t *testing.T) {
	t.Parallel()
	eachTransport(t, func(t *testing.T, r *remote, p *process) {
		p.send("7", "tools/call", execParams("a", "hang", `{"text":"x"}`))
		<-r.hanging
		p.notify("notifications/cancelled", `{"requestId":7,"reason":"enough"}`)
		select {
		case got := <-r.cancels:
			if id := memberOf(parse(got).Params, "requestId"); id == "" || id == "7" {
				t.Errorf("the server was told %s, want an ID of mcpx's own", got)
			}
			if reason := memberOf(parse(got).Params, "reason"); reason != `"enough"` {
				t.Errorf("the server got the reason %s, want the client's own", reason)
			}
		case <-time.After(patience):
			t.Fatal("the server was never told")
		}
		p.exec("a", "echo", `{"text":"y"}`)
	})
}

// TestRemoteCallsOverlap: each of 64 calls is answered only once all have come.
func TestRemoteCallsOverlap(t *testing.T) {
	t.Parallel()
	eachTransport(t, func(t *testing.T, r *remote, p *process) {
		const many = 64
		r.barrier.Add(many)
		for i := range many {
			p.send(fmt.Sprint(i), "tools/call", execParams("a", "together", fmt.Sprintf(`{"text":"call %d"}`, i)))
		}
		for i := range many {
			if got, want := textOf(t, string(p.answer(fmt.Sprint(i)).Result), false), fmt.Sprint("call ", i); got != want || r.called(want) != 1 {
				t.Errorf("got %q, want %q, called %d times", got, want, r.called(want))
			}
		}
	})
}

// TestRemoteCredentials: a client's credentials never reach an upstream, and an
// upstream's headers never reach another server.
func TestRemoteCredentials(t *testing.T) {
	t.Parallel()
	r, elsewhere := newRemote(t), newRemote(t)
	redirects := httptest.NewServer(http.RedirectHandler("http://"+elsewhere.address+"/mcp", http.StatusTemporaryRedirect))
	t.Cleanup(redirects.Close)
	s := serveHTTP(t, map[string]any{
		"server": map[string]any{"token": "client-token"},
		"mcpServers": map[string]any{
			"a":      r.upstream("http", map[string]string{"X-Own": "of a"}),
			"legacy": r.upstream("sse", nil),
			"moved":  map[string]any{"url": redirects.URL + "/mcp", "headers": map[string]string{"Authorization": remoteKey}},
		},
	}, options{})
	c := s.caller("/mcp")
	c.token = "client-token"
	c.initialize()
	for _, server := range []string{"a", "legacy"} {
		if got := c.exec(server, "echo", `{"text":"x"}`); got != "x" {
			t.Errorf("got %q", got)
		}
	}
	moved := textOf(t, c.result("tools/call", execParams("moved", "echo", `{"text":"x"}`)), true)
	if !strings.Contains(moved, "it redirects to "+elsewhere.address) {
		t.Errorf("got %s", moved)
	}
	if got := elsewhere.headers(); len(got) > 0 {
		t.Errorf("the headers went elsewhere: %v", got)
	}
	own := 0
	for _, h := range r.headers() {
		if text := fmt.Sprint(h); strings.Contains(text, "client-token") || h.Get("Authorization") != "" || strings.Contains(text, c.session) {
			t.Errorf("the upstream got %v", h)
		}
		if h.Get("X-Own") == "of a" {
			own++
		}
	}
	if own == 0 {
		t.Error("the upstream did not get its own header")
	}
}

// TestRemoteProxy: mcpx uses the proxy of its environment. Only the proxy knows the
// server's name, since Go uses no proxy for loopback.
func TestRemoteProxy(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	var mu sync.Mutex
	hosts := map[string]int{}
	handler := r.handler()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		mu.Lock()
		hosts[q.URL.Host]++
		mu.Unlock()
		q.Host = r.address // mcp-go refuses names it does not know on loopback
		handler.ServeHTTP(w, q)
	}))
	t.Cleanup(proxy.Close)
	p := start(t, map[string]any{"mcpServers": map[string]any{"a": map[string]any{"url": "http://mcp.invalid/mcp"}}}, options{env: []string{"HTTP_PROXY=" + proxy.URL}})
	p.initialize()
	if got := p.exec("a", "echo", `{"text":"by proxy"}`); got != "by proxy" {
		t.Errorf("got %q", got)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(hosts) != 1 || hosts["mcp.invalid"] == 0 {
		t.Errorf("the proxy was asked for %v", hosts)
	}
}

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

const remoteKey = "Bearer sentinel-key-1"

// remote is a real MCP server over HTTP, on /mcp and, in the older way, on /sse. It
// can be stopped and come back at its address, as another run of it.
type remote struct {
	t       *testing.T
	address string
	key     string        // what Authorization must be; empty: anything
	hanging chan string   // gets the text of every call of hang
	told    chan string   // gets every notifications/cancelled
	release chan struct{} // closed at the end: nothing hangs any more
	barrier sync.WaitGroup

	mu     sync.Mutex
	server *http.Server
	known  map[string]bool // sessions of this run
	lost   int             // what an unknown session is answered with
	calls  map[string]int  // by their text
	heads  []http.Header   // of every request
}

func newRemote(t *testing.T) *remote {
	t.Helper()
	r := &remote{t: t, address: "127.0.0.1:0", lost: http.StatusNotFound, calls: map[string]int{}, hanging: make(chan string, 100), told: make(chan string, 100), release: make(chan struct{})}
	r.start()
	t.Cleanup(func() {
		close(r.release)
		r.stop()
	})
	return r
}

// start is a new run.
func (r *remote) start() {
	r.t.Helper()
	var l net.Listener
	settled(r.t, "listen on "+r.address, func() (string, bool) { // a connection of somebody else may have the port for a moment
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

// stop ends the run in the middle of whatever it does.
func (r *remote) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.server.Close()
}

// forget forgets all sessions; who uses one is told so with a status.
func (r *remote) forget(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known, r.lost = map[string]bool{}, status
}

// called is how often a call with that text came.
func (r *remote) called(text string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls[text]
}

// headers are those of every request that came.
func (r *remote) headers() []http.Header {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]http.Header(nil), r.heads...)
}

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
	add("together", func(context.Context, string) { // answers when all are there
		r.barrier.Done()
		r.barrier.Wait()
	})
	return s
}

// handler is that of a new run.
func (r *remote) handler() http.Handler {
	s := r.tools()
	older := mcpserver.NewSSEServer(s)
	mux := http.NewServeMux()
	mux.Handle("/mcp", r.sessions(mcpserver.NewStreamableHTTPServer(s)))
	mux.Handle("/sse", older.SSEHandler())
	mux.Handle("/message", older.MessageHandler())
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
			r.told <- string(body)
		}
		q.Body = io.NopCloser(bytes.NewReader(body))
		mux.ServeHTTP(w, q)
	})
}

// sessions refuses those that this run did not open: mcp-go takes any.
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

// sessionWriter notes the session that an answer opens.
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

// upstream is the config of the server, by one of its ways.
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

// execFunc calls a tool of an upstream; its result must be an error or not.
type execFunc func(server, tool, text string, isError bool) string

// overBoth has the same done over stdio and over HTTP.
func overBoth(t *testing.T, use func(t *testing.T, open func(config any, o options) (*process, execFunc))) {
	t.Helper()
	arguments := func(text string) string {
		b, _ := json.Marshal(map[string]string{"text": text})
		return string(b)
	}
	t.Run("stdio", func(t *testing.T) {
		t.Parallel()
		use(t, func(config any, o options) (*process, execFunc) {
			p := start(t, config, o)
			p.initialize()
			return p, func(server, tool, text string, isError bool) string {
				t.Helper()
				return p.text(execParams(server, tool, arguments(text)), isError)
			}
		})
	})
	t.Run("http", func(t *testing.T) {
		t.Parallel()
		use(t, func(config any, o options) (*process, execFunc) {
			s := serveHTTP(t, config, o)
			c := s.client("/mcp")
			return s.process, func(server, tool, text string, isError bool) string {
				t.Helper()
				return textOf(t, c.result("tools/call", execParams(server, tool, arguments(text))), isError)
			}
		})
	})
}

// TestRemoteUpstreams: every way to a remote server works over both fronts, and a
// wrong key costs only its own upstream.
func TestRemoteUpstreams(t *testing.T) {
	t.Parallel()
	overBoth(t, func(t *testing.T, open func(any, options) (*process, execFunc)) {
		r := newRemote(t)
		r.key = remoteKey
		right := map[string]string{"Authorization": "Bearer ${REMOTE_KEY}"}
		p, exec := open(map[string]any{"mcpServers": map[string]any{
			"streamable": r.upstream("http", right),
			"older":      r.upstream("sse", right),
			"found":      r.upstream("", right),
			"wrong":      r.upstream("http", map[string]string{"Authorization": "Bearer sentinel-wrong"}),
			"wrongolder": r.upstream("sse", map[string]string{"Authorization": "Bearer sentinel-wrong"}),
			"none":       r.upstream("http", nil),
			"unset":      r.upstream("http", map[string]string{"Authorization": "Bearer ${NO_SUCH_KEY}"}),
		}}, options{env: []string{"REMOTE_KEY=" + strings.TrimPrefix(remoteKey, "Bearer ")}, flags: []string{"--log-level", "debug"}})
		for _, server := range []string{"streamable", "older", "found"} {
			if got := exec(server, "echo", "hello "+server, false); got != "hello "+server {
				t.Errorf("%s: got %q", server, got)
			}
			if n := r.called("hello " + server); n != 1 {
				t.Errorf("%s was called %d times", server, n)
			}
		}
		for server, want := range map[string]string{
			"wrong": "authentication failed: HTTP status 401", "none": "authentication failed: HTTP status 401",
			"wrongolder": "HTTP status 401", "unset": "NO_SUCH_KEY",
		} {
			if got := exec(server, "echo", "x", true); !strings.Contains(got, want) {
				t.Errorf("%s: %s, want %q", server, got, want)
			}
		}
		if n := r.called("x"); n != 0 {
			t.Errorf("%d calls came without the key", n)
		}
		if strings.Contains(p.errors(), "sentinel") {
			t.Errorf("the log has a key:\n%s", clip(p.errors()))
		}
	})
}

// TestRemoteForgets: a server that has forgotten its sessions costs one call, which
// is reported and was not done; the next has a new session.
func TestRemoteForgets(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusNotFound, http.StatusBadRequest} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			overBoth(t, func(t *testing.T, open func(any, options) (*process, execFunc)) {
				r := newRemote(t)
				_, exec := open(map[string]any{"mcpServers": map[string]any{"a": r.upstream("http", nil)}}, options{})
				exec("a", "echo", "before", false)
				r.forget(status)
				if got := exec("a", "echo", "during", true); !strings.Contains(got, "the server has forgotten the session") {
					t.Errorf("got %s", got)
				}
				exec("a", "echo", "after", false)
				for text, want := range map[string]int{"before": 1, "during": 0, "after": 1} {
					if n := r.called(text); n != want {
						t.Errorf("%q was done %d times, want %d", text, n, want)
					}
				}
			})
		})
	}
}

// TestRemoteDies: a server that dies during a call: nobody knows what became of
// it, so it is reported and not repeated. When the server is back, calls work.
func TestRemoteDies(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"http", "sse"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r := newRemote(t)
			p := serve(t, map[string]any{"a": r.upstream(kind, nil)})
			p.initialize()
			id := p.nextID()
			p.send(id, "tools/call", execParams("a", "hang", `{"text":"during"}`))
			<-r.hanging
			r.stop()
			if got := textOf(t, string(p.answer(id).Result), true); !strings.Contains(got, "whether the call took effect is unknown") {
				t.Errorf("got %s", got)
			}
			// A connection that was idle may not have been seen to break yet.
			settled(t, "a call without the server", func() (string, bool) {
				got := p.execError("a", "echo", `{"text":"without"}`)
				return got, strings.Contains(got, "connection refused")
			})
			r.start()
			settled(t, "the server is back", func() (string, bool) {
				result := p.result("tools/call", execParams("a", "echo", `{"text":"after"}`))
				return clip(result), !strings.Contains(result, `"isError":true`)
			})
			for text, want := range map[string]int{"during": 1, "without": 0, "after": 1} {
				if n := r.called(text); n != want {
					t.Errorf("%q was done %d times, want %d", text, n, want)
				}
			}
		})
	}
}

// TestRemoteCancel: a client that cancels its call releases the server too.
func TestRemoteCancel(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"http", "sse"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r := newRemote(t)
			p := serve(t, map[string]any{"a": r.upstream(kind, nil)})
			p.initialize()
			p.send("7", "tools/call", execParams("a", "hang", `{"text":"x"}`))
			<-r.hanging
			p.notify("notifications/cancelled", `{"requestId":7,"reason":"enough"}`)
			select {
			case got := <-r.told:
				if id := memberOf(parse(got).Params, "requestId"); id == "" || id == "7" {
					t.Errorf("the server was told %s, want an id of mcpx's own", got)
				}
			case <-time.After(patience):
				t.Fatal("the server was never told")
			}
			if got := p.exec("a", "echo", `{"text":"y"}`); got != "y" {
				t.Errorf("got %q", got)
			}
		})
	}
}

// TestRemoteManyCalls: 64 calls are in flight at once; each waits for all others.
func TestRemoteManyCalls(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"http", "sse"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r := newRemote(t)
			p := serve(t, map[string]any{"a": r.upstream(kind, nil)})
			p.initialize()
			const many = 64
			r.barrier.Add(many)
			for i := range many {
				p.send(fmt.Sprint(i), "tools/call", execParams("a", "together", fmt.Sprintf(`{"text":"call %d"}`, i)))
			}
			for i := range many {
				if got, want := textOf(t, string(p.answer(fmt.Sprint(i)).Result), false), fmt.Sprint("call ", i); got != want || r.called(want) != 1 {
					t.Errorf("got %q, want %q, done %d times", got, want, r.called(want))
				}
			}
		})
	}
}

// TestRemoteCredentials: a client's credentials stay with mcpx, and an upstream's
// headers with the upstream.
func TestRemoteCredentials(t *testing.T) {
	t.Parallel()
	r, elsewhere := newRemote(t), newRemote(t)
	redirects := &http.Server{ReadHeaderTimeout: patience, Handler: http.RedirectHandler("http://"+elsewhere.address+"/mcp", http.StatusTemporaryRedirect)}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = redirects.Serve(l) }()
	t.Cleanup(func() { _ = redirects.Close() })
	s := serveHTTP(t, map[string]any{
		"server": map[string]any{"token": "client-token"},
		"mcpServers": map[string]any{
			"a":     r.upstream("http", map[string]string{"X-Own": "of a"}),
			"older": r.upstream("sse", nil),
			"moved": map[string]any{"url": "http://" + l.Addr().String() + "/mcp", "headers": map[string]string{"Authorization": remoteKey}},
		},
	}, options{})
	c := s.caller("/mcp")
	c.token = "client-token"
	c.initialize()
	for _, server := range []string{"a", "older"} {
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

// TestRemoteProxy: the proxy of mcpx's environment is used. Its name for the server
// is known to nobody else, and Go asks no proxy for loopback.
func TestRemoteProxy(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	var mu sync.Mutex
	asked := map[string]int{}
	handler := r.handler()
	proxy := &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		mu.Lock()
		asked[q.URL.Host]++
		mu.Unlock()
		q.Host = r.address // mcp-go refuses names it does not know on loopback
		handler.ServeHTTP(w, q)
	})}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = proxy.Serve(l) }()
	t.Cleanup(func() { _ = proxy.Close() })
	p := start(t, map[string]any{"mcpServers": map[string]any{"a": map[string]any{"url": "http://mcp.invalid/mcp"}}},
		options{env: []string{"HTTP_PROXY=http://" + l.Addr().String()}})
	p.initialize()
	if got := p.exec("a", "echo", `{"text":"by proxy"}`); got != "by proxy" {
		t.Errorf("got %q", got)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(asked) != 1 || asked["mcp.invalid"] == 0 {
		t.Errorf("the proxy was asked for %v", asked)
	}
}

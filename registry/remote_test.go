package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/registry/link"
	"mcpx/registry/live"
	"mcpx/registry/upstream"
)

// remote is a real MCP server over Streamable HTTP, and over legacy SSE at /sse.
type remote struct {
	*httptest.Server
	silent   atomic.Bool // answers nothing, until the next session
	sessions atomic.Int32
	hangs    chan struct{} // calls of the tool that never answers
	canceled chan string
}

func newRemote(t *testing.T) *remote {
	t.Helper()
	r := &remote{canceled: make(chan string, 10), hangs: make(chan struct{}, 10)}
	s := mcpserver.NewMCPServer("remote", "1", mcpserver.WithToolCapabilities(true), mcpserver.WithInstructions("from afar"))
	s.AddTool(mcp.NewTool("echo", mcp.WithString("text", mcp.Required())), func(_ context.Context, c mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(c.GetString("text", "")), nil
	})
	s.AddTool(mcp.NewTool("hang"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		r.hangs <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	streamable := mcpserver.NewStreamableHTTPServer(s, mcpserver.WithStreamableHTTPProtocolVersions(mcp.LegacyProtocolVersions()...)) // with sessions
	sse := mcpserver.NewSSEServer(s)
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		q.Body = io.NopCloser(strings.NewReader(string(body)))
		inSession := q.Header.Get("Mcp-Session-Id") != "" || q.URL.Query().Get("sessionId") != ""
		if !inSession {
			r.silent.Store(false)
		}
		switch method, _ := rawjson.String(rawjson.Get(body, "method")); method {
		case "initialize":
			r.sessions.Add(1)
		case "notifications/cancelled":
			r.canceled <- string(body)
		}
		switch {
		case q.Header.Get("Authorization") != "Bearer key-123456":
			http.Error(w, `{"error":{"message":"no key"}}`, http.StatusUnauthorized)
		case r.silent.Load():
			<-q.Context().Done()
		case q.URL.Path == "/sse" || q.URL.Path == "/message":
			sse.ServeHTTP(w, q)
		default:
			streamable.ServeHTTP(w, q)
		}
	}))
	t.Cleanup(func() {
		r.CloseClientConnections()
		r.Close()
	})
	return r
}

// config returns an entry of mcpServers for a path of the server; kind may be empty.
func (r *remote) config(path, kind string) map[string]any {
	c := map[string]any{"url": r.URL + path, "headers": map[string]string{"Authorization": "Bearer key-123456"}}
	if kind != "" {
		c["type"] = kind
	}
	return c
}

// hang calls the tool that never responds, and returns when the call has arrived.
func (r *remote) hang(ctx context.Context, t *testing.T, by *Registry) (ended <-chan error) {
	t.Helper()
	end := make(chan error, 1)
	go func() {
		_, err := callTool(ctx, by, "a", "hang", "{}")
		end <- err
	}()
	select {
	case <-r.hangs:
	case err := <-end:
		t.Fatalf("the call has ended: %v", err)
	case <-time.After(20 * time.Second):
		t.Fatal("the call never came")
	}
	return end
}

// scripted is a remote upstream with handlers by method. Methods without a handler get
// plain answers.
type scripted map[string]func(w http.ResponseWriter, r *http.Request, m rpc.Message)

func (s scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m, _ := rpc.Parse(body)
	result := map[string]string{
		"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"scripted","version":"1"}}`,
		"tools/list": `{"tools":[{"name":"a","inputSchema":{"type":"object"}},{"name":"b","inputSchema":{"type":"object"}}]}`,
	}[m.Method]
	switch {
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case s[m.Method] != nil:
		s[m.Method](w, r, m)
	case result != "":
		jsonAnswer(w, m.ID, result)
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

// serve runs an HTTP server until the test ends, and returns its URL.
func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

func jsonAnswer(w http.ResponseWriter, id []byte, result string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

// textResult returns the result of a call with one text.
func textResult(text string) string { return `{"content":[{"type":"text","text":"` + text + `"}]}` }

// TestRemoteUpstream: Streamable HTTP and legacy SSE carry many calls over one
// session. A server that only has legacy SSE is recognized.
func TestRemoteUpstream(t *testing.T) {
	remote := newRemote(t)
	r, _ := run(t, map[string]any{"http": remote.config("", ""), "sse": remote.config("/sse", "sse"), "found": remote.config("/sse", "")})
	var wg sync.WaitGroup
	for _, server := range []string{"http", "sse", "found"} {
		if u := r.Settled(t.Context(), server); u.State != live.Ready || u.Instructions != "from afar" || u.Tool("echo") == nil {
			t.Fatalf("%s: %s, %s", server, u.State, u.Reason)
		}
		for i := range 64 {
			wg.Go(func() {
				text := fmt.Sprint("call ", i)
				if got, err := callTool(t.Context(), r, server, "echo", fmt.Sprintf(`{"text":%q}`, text)); err != nil || got != text {
					t.Errorf("%s: got %q, %v, want %q", server, got, err, text)
				}
			})
		}
	}
	wg.Wait()
	if n := remote.sessions.Load(); n != 4 { // "found" was tried with Streamable HTTP first
		t.Errorf("%d sessions were opened", n)
	}
	// The end of the legacy stream is noticed, and the next call finds a new one.
	before := r.Catalog().Upstream("sse")
	remote.CloseClientConnections()
	if err := before.Superseded(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := mustCall(t, r, "sse", "echo", `{"text":"again"}`); got != "again" {
		t.Errorf("got %q", got)
	}
}

// TestASilentRemoteIsNoticed: a session whose connections are open but dead, as after
// a laptop has slept, ends. The next call opens a new one.
func TestASilentRemoteIsNoticed(t *testing.T) {
	for kind, path := range map[string]string{"http": "", "sse": "/sse"} {
		t.Run(kind, func(t *testing.T) {
			remote := newRemote(t)
			r, l := runWith(t, Options{PingEvery: time.Second}, map[string]any{"a": remote.config(path, kind)})
			mustCall(t, r, "a", "echo", `{"text":"hi"}`)
			remote.silent.Store(true)
			l.wait(t, "no response to ping within 1s")
			if got := mustCall(t, r, "a", "echo", `{"text":"again"}`); got != "again" {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestRemoteCancel(t *testing.T) {
	remote := newRemote(t)
	r, _ := run(t, map[string]any{"a": remote.config("", "")})
	ctx, cancel := context.WithCancel(t.Context())
	ended := remote.hang(ctx, t, r)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	select {
	case got := <-remote.canceled:
		if !strings.Contains(got, `"requestId":`) {
			t.Errorf("it heard %s", got)
		}
	case <-time.After(10 * time.Second):
		t.Error("the upstream never heard of it")
	}
}

func TestRemoteDiesDuringACall(t *testing.T) {
	remote := newRemote(t)
	r, _ := run(t, map[string]any{"a": remote.config("", "")})
	ended := remote.hang(t.Context(), t, r)
	remote.CloseClientConnections()
	err := <-ended
	if lost := (*upstream.Lost)(nil); !errors.As(err, &lost) || !strings.Contains(err.Error(), "whether the call took effect is unknown") {
		t.Errorf("error %v, want a *upstream.Lost", err)
	}
}

func TestRemoteComesBackOnAnotherRun(t *testing.T) {
	remote := newRemote(t)
	r, _ := run(t, map[string]any{"a": remote.config("", "")})
	mustCall(t, r, "a", "echo", `{"text":"hi"}`)
	again := newRemote(t)
	address := remote.Listener.Addr().String()
	remote.CloseClientConnections()
	remote.Close()
	if _, err := callTool(t.Context(), r, "a", "echo", `{"text":"hi"}`); err == nil {
		t.Fatal("a call to nobody is answered")
	}
	var l net.Listener
	eventually(t, "the port is free", func() (ok bool) { // a connection of somebody else may have it for a moment
		var err error
		l, err = new(net.ListenConfig).Listen(t.Context(), "tcp", address)
		return err == nil
	})
	back := &http.Server{Handler: again.Config.Handler, ReadHeaderTimeout: time.Minute}
	go func() { _ = back.Serve(l) }()
	t.Cleanup(func() { _ = back.Close() })
	eventually(t, "it is found again", func() bool {
		got, err := callTool(t.Context(), r, "a", "echo", `{"text":"again"}`)
		return err == nil && got == "again"
	})
}

// TestRemoteReasons: the reason why a server cannot be used is in plain words, and no
// header goes to another server.
func TestRemoteReasons(t *testing.T) {
	entry := func(handler http.HandlerFunc, more ...any) map[string]any {
		c := map[string]any{"url": serve(t, handler)}
		for i := 0; i < len(more); i += 2 {
			c[more[i].(string)] = more[i+1]
		}
		return c
	}
	denied := func(challenge string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", challenge)
			w.WriteHeader(http.StatusUnauthorized)
		}
	}
	stream := func(status int, kind, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, q *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, text)
			if q.Method == http.MethodGet {
				_ = http.NewResponseController(w).Flush()
				<-q.Context().Done()
			}
		}
	}
	forgets := func(method string) http.HandlerFunc {
		return scripted{
			"initialize": func(w http.ResponseWriter, _ *http.Request, m rpc.Message) {
				w.Header().Set("Mcp-Session-Id", "one")
				jsonAnswer(w, m.ID, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{},"resources":{}}}`)
			},
			method: func(w http.ResponseWriter, _ *http.Request, _ rpc.Message) { w.WriteHeader(http.StatusNotFound) },
		}.ServeHTTP
	}
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = stdlog.New(io.Discard, "", 0) // it complains about clients that do not trust it
	secure.StartTLS()
	t.Cleanup(secure.Close)
	const oauth = `Bearer resource_metadata="http://127.0.0.1:1/metadata"`
	const forgotten, late = "the server has forgotten the session (HTTP status 404 Not Found)", `not ready within 200ms (its "startup_timeout")`
	silent := func(_ http.ResponseWriter, q *http.Request) { <-q.Context().Done() }
	rows := map[string]struct {
		config map[string]any
		reason string
		cause  link.Cause
	}{
		"nobody":       {map[string]any{"url": "http://127.0.0.1:1/mcp"}, "nothing listens on 127.0.0.1:1 (connection refused)", link.CauseUnreachable},
		"unknown host": {map[string]any{"url": "http://nowhere.invalid/mcp"}, "host nowhere.invalid was not found", link.CauseUnreachable},
		"certificate":  {map[string]any{"url": secure.URL}, "its certificate is not trusted: ", ""},
		"OAuth alone":  {entry(denied(oauth)), "authentication failed: HTTP status 401 Unauthorized; check its headers", link.CauseAuth},
		"Basic":        {entry(denied("Basic")), "authentication failed: HTTP status 401 Unauthorized; check its headers", link.CauseAuth},
		"wrong key": {
			map[string]any{"url": newRemote(t).URL, "headers": map[string]string{"Authorization": "Bearer sentinel-secret"}},
			"authentication failed: HTTP status 401 Unauthorized: no key; check its headers", link.CauseAuth,
		},
		"page":              {entry(stream(200, "text/html", "<html>")), "it answered with text/html, which is not a message; is this the url of an MCP server?", ""},
		"redirect":          {entry(http.RedirectHandler("http://example.invalid/mcp", http.StatusTemporaryRedirect).ServeHTTP), "it redirects to example.invalid, where its headers must not go", ""},
		"redirect as GET":   {entry(http.RedirectHandler("/elsewhere", http.StatusMovedPermanently).ServeHTTP), "it redirects POST to /elsewhere as GET; configure that url directly", ""},
		"broken":            {entry(stream(200, "text/event-stream", "")), "the connection broke: its stream ended before the answer came", ""},
		"no stream":         {entry(http.NotFound, "type", "sse"), "its stream cannot be opened: HTTP status 404", ""},
		"endpoint":          {entry(stream(200, "text/event-stream", "event: endpoint\ndata: http://example.invalid/message\n\n"), "type", "sse"), "its stream names an address on another server, where its headers must not go", ""},
		"silent stream":     {entry(silent, "type", "sse", "startup_timeout", 0.2), late, link.CauseTimeout},
		"no endpoint":       {entry(stream(200, "text/event-stream", ""), "type", "sse", "startup_timeout", 0.2), late, link.CauseTimeout},
		"forgets at start":  {entry(forgets("notifications/initialized"), "type", "http"), forgotten, ""},
		"forgets its tools": {entry(forgets("tools/list"), "type", "http"), forgotten, ""},
		"forgets a list":    {entry(forgets("prompts/list"), "type", "http"), forgotten, ""},
	}
	upstreams := map[string]any{}
	for name, row := range rows {
		upstreams[name] = row.config
	}
	r, l := run(t, upstreams)
	for name, row := range rows {
		if u := r.Settled(t.Context(), name); u.State != live.Waiting || !strings.HasPrefix(u.Reason, row.reason) || u.Cause != row.cause {
			t.Errorf("%s: %s, %q (%s), want %q (%s)", name, u.State, u.Reason, u.Cause, row.reason, row.cause)
		}
	}
	if l.count("sentinel") != 0 {
		t.Error("a header's secret is in the log")
	}
}

// TestErrorsOfARemoteUpstream: the upstream's own error is kept, whether it comes as a
// message or with an HTTP status.
func TestErrorsOfARemoteUpstream(t *testing.T) {
	const own = `"error":{"code":-32029,"message":"slow down","data":{"x":1}}`
	respond := func(status int, kind, text string) func(w http.ResponseWriter, id string) {
		return func(w http.ResponseWriter, id string) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, strings.ReplaceAll(text, "ID", id))
		}
	}
	for name, tt := range map[string]struct {
		answer func(w http.ResponseWriter, id string)
		want   string
	}{
		"an answer to nobody":   {respond(200, "application/json", `{"jsonrpc":"2.0","id":null,`+own+`}`), `-32029 slow down {"x":1}`},
		"an HTTP status":        {respond(429, "application/json", `{"jsonrpc":"2.0","id":ID,`+own+`}`), `-32029 slow down {"x":1}`},
		"an HTTP status alone":  {respond(429, "", ""), `the call to server "a" failed: HTTP status 429 Too Many Requests`},
		"a server that is busy": {respond(503, "", ""), `the call to server "a" failed: HTTP status 503 Service Unavailable; whether the call took effect is unknown, and mcpx does not repeat it`},
		"a page":                {respond(200, "text/html", "<html>"), `the call to server "a" failed: it answered with text/html, which is not a message; is this the url of an MCP server?`},
		"a redirect": {func(w http.ResponseWriter, _ string) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(http.StatusFound)
		}, `the call to server "a" failed: it redirects POST to /elsewhere as GET; configure that url directly`},
	} {
		t.Run(name, func(t *testing.T) {
			url := serve(t, scripted{"tools/call": func(w http.ResponseWriter, _ *http.Request, m rpc.Message) { tt.answer(w, string(m.ID)) }})
			r, _ := run(t, map[string]any{"a": map[string]any{"url": url, "type": "http"}})
			_, err := callTool(t.Context(), r, "a", "a", "{}")
			got := fmt.Sprint(err)
			var own *rpc.Error
			if errors.As(err, &own) {
				got = fmt.Sprintf("%d %s %s", own.Code, own.Message, own.Data)
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestACallIsNeverReplayed: net/http repeats a POST over a new connection if it has
// one of these headers. mcpx sends each call once.
func TestACallIsNeverReplayed(t *testing.T) {
	for _, header := range []string{"Idempotency-Key", "X-Idempotency-Key", "x-idempotency-key"} {
		t.Run(header, func(t *testing.T) {
			var calls atomic.Int32
			url := serve(t, scripted{"tools/call": func(w http.ResponseWriter, r *http.Request, m rpc.Message) {
				if r.Header.Get(header) != "abc" {
					t.Errorf("the header is %q", r.Header.Get(header))
				}
				if calls.Add(1)%2 == 1 { // a good answer leaves a connection for the next call
					jsonAnswer(w, m.ID, textResult("well"))
					return
				}
				panic(http.ErrAbortHandler) // closes the connection
			}})
			r, _ := run(t, map[string]any{"a": map[string]any{"url": url, "type": "http", "headers": map[string]string{header: "abc"}}})
			for range 4 {
				_, _ = callTool(t.Context(), r, "a", "a", "{}")
			}
			if got := calls.Load(); got != 4 {
				t.Errorf("4 calls reached the server %d times", got)
			}
		})
	}
}

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
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"mcpx/internal/jsonrpc"
	"mcpx/internal/link"
	"mcpx/internal/mcptest"
	"mcpx/internal/rawjson"
)

// wire forwards connections until it is cut: then those that are open stay so, and
// nothing passes any more, as when a laptop has slept. New ones pass again.
type wire struct {
	net.Listener
	to string

	mu    sync.Mutex
	pairs []*pair
}

type pair struct{ from, to net.Conn }

func newWire(t *testing.T, to string) *wire {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{Listener: l, to: to}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := new(net.Dialer).DialContext(context.Background(), "tcp", w.to)
			if err != nil {
				_ = from.Close()
				continue
			}
			p := &pair{from, to}
			w.mu.Lock()
			w.pairs = append(w.pairs, p)
			w.mu.Unlock()
			running.Go(func() { p.copy(from, to) })
			running.Go(func() { p.copy(to, from) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		w.mu.Lock()
		for _, p := range w.pairs {
			_ = p.from.Close()
			_ = p.to.Close()
		}
		w.mu.Unlock()
		running.Wait()
	})
	return w
}

// copy passes bytes on. A deadline in the past, by cut, leaves both ends open.
func (p *pair) copy(from, to net.Conn) {
	if _, err := io.Copy(to, from); errors.Is(err, os.ErrDeadlineExceeded) {
		return
	}
	_ = p.from.Close()
	_ = p.to.Close()
}

// cut makes every connection silent, unless that has been noticed: what comes then
// is new.
func (w *wire) cut(t *testing.T, noticed <-chan struct{}) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-noticed:
		return
	default:
	}
	for _, p := range w.pairs {
		for _, c := range []net.Conn{p.from, p.to} {
			if err := c.SetReadDeadline(time.Unix(1, 0)); err != nil && !errors.Is(err, net.ErrClosed) {
				t.Error(err)
			}
		}
	}
}

// silence cuts the wire, and again what was just being connected then, until that
// is noticed.
func silence(t *testing.T, w *wire, noticed <-chan struct{}) {
	t.Helper()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	limit := time.After(20 * time.Second)
	for {
		w.cut(t, noticed)
		select {
		case <-noticed:
			return
		case <-again.C:
		case <-limit:
			t.Fatal("the silence is not noticed")
		}
	}
}

// TestASilentStreamIsNoticed: a session whose connections are open but dead ends,
// and the next call finds a new one.
func TestASilentStreamIsNoticed(t *testing.T) {
	s := mcpserver.NewMCPServer("remote", "1", mcpserver.WithToolCapabilities(true))
	s.AddTool(mcp.NewTool("echo", mcp.WithString("text", mcp.Required())), func(_ context.Context, c mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(c.GetString("text", "")), nil
	})
	for kind, handler := range map[string]*httptest.Server{
		"http": httptest.NewServer(mcpserver.NewStreamableHTTPServer(s)),
		"sse":  httptest.NewServer(mcpserver.NewSSEServer(s)),
	} {
		t.Run(kind, func(t *testing.T) {
			defer handler.Close()
			defer handler.CloseClientConnections()
			mcptest.NothingLeft(t)
			w := newWire(t, handler.Listener.Addr().String())
			path := map[string]string{"http": "/mcp", "sse": "/sse"}[kind]
			r, l := runWith(t, Options{PingEvery: time.Second}, map[string]any{
				"a": map[string]any{"url": "http://" + w.Addr().String() + path, "type": kind},
			})
			mustCall(t, r, "a", "echo", `{"text":"hi"}`)
			u, err := r.Ready(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			silence(t, w, u.changed)
			l.wait(t, "no response to ping within 1s")
			if got := mustCall(t, r, "a", "echo", `{"text":"again"}`); got != "again" {
				t.Errorf("got %q", got)
			}
		})
	}
}

// TestPingsAreAnswered: a server that lives keeps its session.
func TestPingsAreAnswered(t *testing.T) {
	remote := newRemote(t)
	_, l := runWith(t, Options{PingEvery: 4 * time.Second}, map[string]any{"a": remote.config()}) // it has as long to answer
	for range 2 {                                                                                 // the second is not asked for before the first is answered
		select {
		case <-remote.pings:
		case <-time.After(20 * time.Second):
			t.Fatal("an idle session is not asked for a sign of life")
		}
	}
	if n := remote.sessions.Load(); n != 1 || l.count("no response to ping") > 0 {
		t.Errorf("%d sessions, want 1:\n%s", n, l)
	}
}

// odd is a remote server whose calls answer as the test wants.
type odd struct {
	call func(w http.ResponseWriter, r *http.Request, id, name string)
	note func(method string) // takes what has no answer; may be nil
}

func (o *odd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	method, _ := rawjson.String(rawjson.Get(body, "method"))
	id := string(rawjson.Get(body, "id"))
	results := map[string]string{
		"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"odd","version":"1"}}`,
		"tools/list": `{"tools":[{"name":"a","inputSchema":{"type":"object"}},{"name":"b","inputSchema":{"type":"object"}}]}`,
	}
	switch {
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case results[method] != "":
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, results[method])
	case method == "tools/call":
		name, _ := rawjson.String(rawjson.Get(rawjson.Get(body, "params"), "name"))
		o.call(w, r, id, name)
	default:
		if o.note != nil {
			o.note(method)
		}
		w.WriteHeader(http.StatusAccepted)
	}
}

func runOdd(t *testing.T, o *odd) *Registry {
	t.Helper()
	remote := httptest.NewServer(o)
	t.Cleanup(remote.Close)
	r, _ := run(t, map[string]any{"a": map[string]any{"url": remote.URL, "type": "http"}})
	return r
}

// TestErrorsOfARemoteUpstream: what the upstream says of a failure is kept, in
// whatever way it says it, and at once.
func TestErrorsOfARemoteUpstream(t *testing.T) {
	const own = `"error":{"code":-32029,"message":"slow down","data":{"x":1}}`
	for name, tt := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request, id, _ string)
		want   string
	}{
		"an answer to nobody": {func(w http.ResponseWriter, _ *http.Request, _, _ string) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":null,`+own+`}`)
		}, `-32029 slow down {"x":1}`},
		"an HTTP status": {func(w http.ResponseWriter, _ *http.Request, id, _ string) {
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+id+`,`+own+`}`)
		}, `-32029 slow down {"x":1}`},
		"an HTTP status alone": {func(w http.ResponseWriter, _ *http.Request, _, _ string) {
			w.WriteHeader(http.StatusTooManyRequests)
		}, `the call to server "a" failed: HTTP status 429 Too Many Requests`},
		"a server that is busy": {func(w http.ResponseWriter, _ *http.Request, _, _ string) {
			w.WriteHeader(http.StatusServiceUnavailable)
		}, `the call to server "a" failed: HTTP status 503 Service Unavailable; whether the call took effect is unknown, and mcpx does not repeat it`},
		"a page": {func(w http.ResponseWriter, _ *http.Request, _, _ string) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html>")
		}, `the call to server "a" failed: it answered with text/html, which is not a message; is this the url of an MCP server?`},
		"a redirect": {func(w http.ResponseWriter, r *http.Request, _, _ string) {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		}, `the call to server "a" failed: it redirects POST to /elsewhere as GET; configure that url directly`},
	} {
		t.Run(name, func(t *testing.T) {
			r := runOdd(t, &odd{call: tt.answer})
			_, err := callTool(t.Context(), r, "a", "a", "{}")
			got := fmt.Sprint(err)
			var own *jsonrpc.Error
			if errors.As(err, &own) {
				got = fmt.Sprintf("%d %s %s", own.Code, own.Message, own.Data)
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestANotificationThatHangs: it holds up nothing else.
func TestANotificationThatHangs(t *testing.T) {
	hung, goOn := make(chan struct{}), make(chan struct{})
	o := &odd{note: func(method string) {
		if method == "notifications/cancelled" {
			close(hung)
			<-goOn
		}
	}}
	called := make(chan struct{}, 1)
	o.call = func(w http.ResponseWriter, r *http.Request, id, name string) {
		if name == "a" {
			called <- struct{}{}
			<-r.Context().Done()
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+id+`,"result":{"content":[{"type":"text","text":"fine"}]}}`)
	}
	r := runOdd(t, o)
	defer close(goOn)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = callTool(ctx, r, "a", "a", "{}")
	}()
	<-called
	cancel()
	<-hung
	if got := mustCall(t, r, "a", "b", "{}"); got != "fine" {
		t.Errorf("got %q", got)
	}
	<-ended
}

// TestWhatComesOnTheStreamOfACallIsOfIt: however many clients have calls in flight.
func TestWhatComesOnTheStreamOfACallIsOfIt(t *testing.T) {
	var both sync.WaitGroup
	both.Add(2)
	r := runOdd(t, &odd{call: func(w http.ResponseWriter, _ *http.Request, id, name string) {
		both.Done()
		both.Wait() // until both are in flight
		events(w, fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":%q}}\n\n", name)+
			fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"id\":\"of %s\",\"method\":\"roots/list\",\"params\":{}}\n\n", name))
		events(w, fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":%q}]}}\n\n", id, name))
	}})
	clients := map[string]*recorder{"a": newRecorder("client of a"), "b": newRecorder("client of b")}
	var calls sync.WaitGroup
	for name, c := range clients {
		r.Attach(c)
		calls.Go(func() {
			if got, err := callAs(t, r, c, name, "{}"); err != nil || got != name {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		})
	}
	calls.Wait()
	for name, c := range clients {
		c.wait(t, `notifications/message {"level":"info","data":"`+name+`","logger":"a"}`, "roots/list {}")
		if got := c.heard("notifications/message"); len(got) != 1 {
			t.Errorf("the client of %s heard %q", name, got)
		}
	}
}

// TestACallIsNeverReplayed: net/http sends a POST again over a new connection if it
// has a header that says it is idempotent. A call must not be.
func TestACallIsNeverReplayed(t *testing.T) {
	for _, header := range []string{"Idempotency-Key", "X-Idempotency-Key", "x-idempotency-key"} {
		t.Run(header, func(t *testing.T) {
			var calls atomic.Int32
			server := httptest.NewServer(&odd{call: func(w http.ResponseWriter, r *http.Request, id, _ string) {
				if r.Header.Get(header) != "abc" {
					t.Errorf("the header is %q", r.Header.Get(header))
				}
				if calls.Add(1)%2 == 1 { // a good answer leaves a connection for the next call
					jsonAnswer(w, []byte(id), textResult("well"))
					return
				}
				panic(http.ErrAbortHandler) // closes the connection
			}})
			t.Cleanup(server.Close)
			r, _ := run(t, map[string]any{"a": map[string]any{"url": server.URL, "type": "http", "headers": map[string]string{header: "abc"}}})
			for range 4 {
				_, _ = callTool(t.Context(), r, "a", "a", "{}")
			}
			if got := calls.Load(); got != 4 {
				t.Errorf("4 calls reached the server %d times", got)
			}
		})
	}
}

// TestPlainReasons: why a server cannot be reached is said without the words of Go.
func TestPlainReasons(t *testing.T) {
	denied := func(challenge string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", challenge)
			w.WriteHeader(http.StatusUnauthorized)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = stdlog.New(io.Discard, "", 0) // it complains of who does not trust it
	secure.StartTLS()
	t.Cleanup(secure.Close)
	const challenge = `Bearer resource_metadata="https://example.com/.well-known/oauth-protected-resource"`
	r, _ := run(t, map[string]any{
		"nobody": map[string]any{"url": "http://127.0.0.1:1/mcp"},
		"host":   map[string]any{"url": "http://nowhere.invalid/mcp"},
		"secure": map[string]any{"url": secure.URL},
		"oauth":  map[string]any{"url": denied(challenge)},
		"sse":    map[string]any{"url": denied(challenge), "type": "sse"},
		"key":    map[string]any{"url": denied(challenge), "headers": map[string]string{"Authorization": "Bearer old"}},
		"basic":  map[string]any{"url": denied("Basic")},
	})
	for server, want := range map[string]struct {
		reason string
		cause  link.Cause
	}{
		"nobody": {"nothing listens on 127.0.0.1:1 (connection refused)", link.CauseUnreachable},
		"host":   {"host nowhere.invalid was not found", link.CauseUnreachable},
		"secure": {"its certificate is not trusted: ", ""},
		"oauth":  {"needs sign-in (OAuth), which mcpx cannot do yet", link.CauseSignIn},
		"sse":    {"needs sign-in (OAuth), which mcpx cannot do yet", link.CauseSignIn},
		"key":    {"authentication failed: HTTP status 401 Unauthorized; check its headers", link.CauseAuth},
		"basic":  {"authentication failed: HTTP status 401 Unauthorized; check its headers", link.CauseAuth},
	} {
		if u := r.Settled(t.Context(), server); !strings.HasPrefix(u.Reason, want.reason) || u.Cause != want.cause {
			t.Errorf("%s: %q (%s), want %q (%s)", server, u.Reason, u.Cause, want.reason, want.cause)
		}
	}
}

// remote is a real MCP server over HTTP, and what can be done to it.
type remote struct {
	*httptest.Server
	forgets   atomic.Bool // answers that it knows no session
	sessions  atomic.Int32
	pings     chan struct{}
	hangs     chan struct{} // calls of the tool that never answers
	cancelled chan string
}

func newRemote(t *testing.T) *remote {
	t.Helper()
	r := &remote{cancelled: make(chan string, 10), pings: make(chan struct{}, 100), hangs: make(chan struct{}, 10)}
	s := mcpserver.NewMCPServer("remote", "1", mcpserver.WithToolCapabilities(true), mcpserver.WithInstructions("from afar"))
	s.AddTool(mcp.NewTool("echo", mcp.WithString("text", mcp.Required())), func(_ context.Context, c mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(c.GetString("text", "")), nil
	})
	s.AddTool(mcp.NewTool("hang"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		r.hangs <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	front := mcpserver.NewStreamableHTTPServer(s)
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch {
		case q.Header.Get("Authorization") != "Bearer key-123456":
			http.Error(w, `{"error":{"message":"no key"}}`, http.StatusUnauthorized)
			return
		case r.forgets.Load() && q.Header.Get("Mcp-Session-Id") != "":
			http.Error(w, "no such session", http.StatusNotFound)
			return
		}
		body, _ := io.ReadAll(q.Body)
		switch method, _ := rawjson.String(rawjson.Get(body, "method")); method {
		case "initialize":
			r.sessions.Add(1)
			r.forgets.Store(false)
		case "ping":
			r.pings <- struct{}{}
		case "notifications/cancelled":
			r.cancelled <- string(body)
		}
		q.Body = io.NopCloser(strings.NewReader(string(body)))
		front.ServeHTTP(w, q)
	}))
	t.Cleanup(func() {
		r.CloseClientConnections()
		r.Close()
	})
	return r
}

func (r *remote) config() map[string]any {
	return map[string]any{"url": r.URL, "headers": map[string]string{"Authorization": "Bearer key-123456"}}
}

// hang calls the tool that never answers, and returns when the call has come.
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

func TestRemoteUpstream(t *testing.T) {
	remote := newRemote(t)
	r, _ := run(t, map[string]any{"a": remote.config()})
	u := r.Settled(t.Context(), "a")
	if u.State != Ready || u.Instructions != "from afar" || u.Tool("echo") == nil {
		t.Fatalf("%s: %s", u.State, u.Reason)
	}
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			text := fmt.Sprint("call ", i)
			if got, err := callTool(t.Context(), r, "a", "echo", fmt.Sprintf(`{"text":%q}`, text)); err != nil || got != text {
				t.Errorf("got %q, %v, want %q", got, err, text)
			}
		})
	}
	wg.Wait()
	if n := remote.sessions.Load(); n != 1 {
		t.Errorf("%d sessions for all calls, want 1", n)
	}
}

// TestRemoteProgressComesBeforeTheResult has a server of its own: mcp-go's sends
// some of a call's notifications on another stream.
func TestRemoteProgressComesBeforeTheResult(t *testing.T) {
	remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		id, params := rawjson.Get(body, "id"), rawjson.Get(body, "params")
		method, _ := rawjson.String(rawjson.Get(body, "method"))
		switch {
		case q.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case method == "initialize":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}`, id)
		case q.Header.Get("Mcp-Protocol-Version") != "2025-06-18": // the one that was agreed on
			http.Error(w, "unsupported version "+q.Header.Get("Mcp-Protocol-Version"), http.StatusBadRequest)
		case id == nil:
			w.WriteHeader(http.StatusAccepted)
		default:
			w.Header().Set("Content-Type", "text/event-stream")
			for i := range 3 {
				fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":%s,\"progress\":%d}}\n\n", rawjson.Get(rawjson.Get(params, "_meta"), "progressToken"), i+1)
			}
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[]}}\n\n", id)
		}
	}))
	defer remote.Close()
	r, _ := run(t, map[string]any{"a": map[string]any{"url": remote.URL}})
	var got []string
	_, err := r.Call(t.Context(), "a", Request{
		Method: "tools/call", Params: []byte(`{"name":"steps"}`), Meta: []byte("{}"),
		Progress: func(params []byte) { got = append(got, string(rawjson.Get(params, "progress"))) },
	})
	if err != nil || strings.Join(got, " ") != "1 2 3" {
		t.Errorf("progress %q, %v", got, err)
	}
}

func TestRemoteForgetsItsSession(t *testing.T) {
	remote := newRemote(t)
	r, _ := run(t, map[string]any{"a": remote.config()})
	mustCall(t, r, "a", "echo", `{"text":"hi"}`)
	remote.forgets.Store(true)
	_, err := callTool(t.Context(), r, "a", "echo", `{"text":"hi"}`)
	var lost *Lost
	if !errors.As(err, &lost) || !strings.Contains(err.Error(), "the server has forgotten the session") {
		t.Errorf("error %v, want a *Lost", err)
	}
	if got := mustCall(t, r, "a", "echo", `{"text":"again"}`); got != "again" {
		t.Errorf("got %q", got)
	}
	if n := remote.sessions.Load(); n != 2 {
		t.Errorf("%d sessions, want 2", n)
	}
}

func TestRemoteCancel(t *testing.T) {
	remote := newRemote(t)
	r, _ := run(t, map[string]any{"a": remote.config()})
	ctx, cancel := context.WithCancel(t.Context())
	ended := remote.hang(ctx, t, r)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	select {
	case got := <-remote.cancelled:
		if !strings.Contains(got, `"requestId":`) {
			t.Errorf("it heard %s", got)
		}
	case <-time.After(10 * time.Second):
		t.Error("the upstream never heard of it")
	}
}

func TestRemoteDiesDuringACall(t *testing.T) {
	remote := newRemote(t)
	r, _ := run(t, map[string]any{"a": remote.config()})
	ended := remote.hang(t.Context(), t, r)
	remote.CloseClientConnections()
	err := <-ended
	if lost := (*Lost)(nil); !errors.As(err, &lost) || !strings.Contains(err.Error(), "whether the call took effect is unknown") {
		t.Errorf("error %v, want a *Lost", err)
	}
}

func TestRemoteComesBackOnAnotherRun(t *testing.T) {
	remote := newRemote(t)
	r, _ := run(t, map[string]any{"a": remote.config()})
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
	for limit := time.Now().Add(10 * time.Second); ; {
		got, err := callTool(t.Context(), r, "a", "echo", `{"text":"again"}`)
		if err == nil && got == "again" {
			break
		}
		if time.Now().After(limit) {
			t.Fatalf("it is not found again: %v", err)
		}
		if u := r.Catalog().Upstream("a"); u.State == Waiting {
			<-time.After(time.Until(u.FailedAt.Add(retryGrace)))
		}
	}
}

func TestRemoteReasons(t *testing.T) {
	remote := newRemote(t)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<html>")
	}))
	defer page.Close()
	elsewhere := httptest.NewServer(http.RedirectHandler("http://example.invalid/mcp", http.StatusTemporaryRedirect))
	defer elsewhere.Close()
	moved := httptest.NewServer(http.RedirectHandler("/elsewhere", http.StatusMovedPermanently))
	defer moved.Close()
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
	}))
	defer broken.Close()
	r, l := run(t, map[string]any{
		"nokey":    map[string]any{"url": remote.URL, "headers": map[string]string{"Authorization": "Bearer sentinel-secret"}},
		"page":     map[string]any{"url": page.URL},
		"nobody":   map[string]any{"url": "http://127.0.0.1:1/mcp"},
		"redirect": map[string]any{"url": elsewhere.URL},
		"broken":   map[string]any{"url": broken.URL},
		"moved":    map[string]any{"url": moved.URL},
	})
	for server, want := range map[string]string{
		"nokey":    "authentication failed: HTTP status 401 Unauthorized: no key; check its headers",
		"page":     "it answered with text/html, which is not a message; is this the url of an MCP server?",
		"nobody":   "connection refused",
		"redirect": "it redirects to example.invalid, where its headers must not go",
		"moved":    "it redirects POST to /elsewhere as GET; configure that url directly",
		"broken":   "the connection broke: its stream ended before the answer came",
	} {
		if u := r.Settled(t.Context(), server); u.State != Waiting || !strings.Contains(u.Reason, want) {
			t.Errorf("%s: %s, %q; want %q", server, u.State, u.Reason, want)
		}
	}
	if l.count("sentinel") != 0 {
		t.Error("a header's secret is in the log")
	}
}

func TestOlderTransport(t *testing.T) {
	s := mcpserver.NewMCPServer("older", "1", mcpserver.WithToolCapabilities(true))
	s.AddTool(mcp.NewTool("echo", mcp.WithString("text", mcp.Required())), func(_ context.Context, c mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(c.GetString("text", "")), nil
	})
	front := mcpserver.NewSSEServer(s)
	remote := httptest.NewServer(front)
	t.Cleanup(func() {
		remote.CloseClientConnections()
		remote.Close()
	})
	r, _ := run(t, map[string]any{
		"said":  map[string]any{"url": remote.URL + "/sse", "type": "sse"},
		"found": map[string]any{"url": remote.URL + "/sse"},
		"wrong": map[string]any{"url": remote.URL + "/nowhere", "type": "sse"},
	})
	for _, server := range []string{"said", "found"} {
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				text := fmt.Sprint("call ", i)
				if got, err := callTool(t.Context(), r, server, "echo", fmt.Sprintf(`{"text":%q}`, text)); err != nil || got != text {
					t.Errorf("%s: got %q, %v, want %q", server, got, err, text)
				}
			})
		}
		wg.Wait()
	}
	if u := r.Settled(t.Context(), "wrong"); !strings.Contains(u.Reason, "its stream cannot be opened: HTTP status 404") {
		t.Errorf("wrong: %s", u.Reason)
	}
	// The end of the stream is noticed, and the next call finds a new one.
	before := r.Catalog().Upstream("said")
	remote.CloseClientConnections()
	if err := before.superseded(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := mustCall(t, r, "said", "echo", `{"text":"again"}`); got != "again" {
		t.Errorf("got %q", got)
	}
}

func TestAnEndpointElsewhereIsRefused(t *testing.T) {
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "event: endpoint\ndata: http://example.invalid/message\n\n")
		_ = http.NewResponseController(w).Flush()
		<-q.Context().Done()
	}))
	defer evil.Close()
	r, _ := run(t, map[string]any{"a": map[string]any{"url": evil.URL, "type": "sse"}})
	if u := r.Settled(t.Context(), "a"); !strings.Contains(u.Reason, "another server") {
		t.Errorf("%s: %s", u.State, u.Reason)
	}
	evil.CloseClientConnections()
}

// TestASessionForgottenAtTheStart: the reason is that, whichever list notices it.
func TestASessionForgottenAtTheStart(t *testing.T) {
	for _, forgotten := range []string{"notifications/initialized", "tools/list", "prompts/list"} {
		t.Run(forgotten, func(t *testing.T) {
			remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				method, _ := rawjson.String(rawjson.Get(body, "method"))
				result := `{"tools":[]}`
				switch {
				case method == forgotten:
					http.Error(w, "no such session", http.StatusNotFound)
					return
				case method == "initialize":
					w.Header().Set("Mcp-Session-Id", "one")
					result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{},"resources":{}}}`
				case rawjson.Get(body, "id") == nil:
					w.WriteHeader(http.StatusMethodNotAllowed)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, rawjson.Get(body, "id"), result)
			}))
			t.Cleanup(remote.Close)
			r, _ := run(t, map[string]any{"a": map[string]any{"url": remote.URL, "type": "http"}})
			if u := r.Settled(t.Context(), "a"); u.Reason != "the server has forgotten the session (HTTP status 404 Not Found)" {
				t.Errorf("%s: %s", u.State, u.Reason)
			}
		})
	}
}

// scripted is a remote upstream that does what a test says; the rest is as plain
// as can be.
type scripted struct {
	call  func(w http.ResponseWriter, id []byte)       // answers tools/call
	reply func(w http.ResponseWriter, body []byte)     // takes what answers its own requests
	stand func(w http.ResponseWriter, r *http.Request) // serves the standing stream
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	id := rawjson.Get(body, "id")
	method, _ := rawjson.String(rawjson.Get(body, "method"))
	results := map[string]string{
		"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"scripted","version":"1"}}`,
		"tools/list": `{"tools":[{"name":"work","inputSchema":{"type":"object"}}]}`,
		"ping":       `{}`,
	}
	switch {
	case r.Method == http.MethodGet && s.stand != nil:
		s.stand(w, r)
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case results[method] != "":
		w.Header().Set("Mcp-Session-Id", "s")
		jsonAnswer(w, id, results[method])
	case method == "tools/call":
		s.call(w, id)
	case method == "" && s.reply != nil:
		s.reply(w, body)
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

// start runs a registry with the upstream as "a".
func (s *scripted) start(t *testing.T) *Registry {
	t.Helper()
	remote := httptest.NewServer(s)
	t.Cleanup(func() {
		remote.CloseClientConnections()
		remote.Close()
	})
	r, _ := run(t, map[string]any{"a": map[string]any{"url": remote.URL, "type": "http"}})
	return r
}

func jsonAnswer(w http.ResponseWriter, id []byte, result string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

// textResult is the result of a call, with a text.
func textResult(text string) string { return `{"content":[{"type":"text","text":"` + text + `"}]}` }

// What a remote upstream sends that is not UTF-8 reaches no client: it could end it.
func TestRemoteMessagesAreUTF8(t *testing.T) {
	for name, call := range map[string]func(w http.ResponseWriter, id []byte){
		"one message": func(w http.ResponseWriter, id []byte) { jsonAnswer(w, id, textResult("a\xffb")) },
		"events": func(w http.ResponseWriter, id []byte) {
			events(w, fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", id, textResult("a\xffb")))
		},
	} {
		r := (&scripted{call: call}).start(t)
		result, err := r.Call(t.Context(), "a", Request{Method: "tools/call", Params: []byte(`{"name":"work"}`)})
		if want := textResult("a\ufffdb"); err != nil || string(result) != want {
			t.Errorf("%s: %q, %v; want %q", name, result, err, want)
		}
	}
}

// Both sides count their requests: what comes back for an answer to the upstream's
// request is not the answer to mcpx's request with the same id.
func TestWhatAnswersAReplyIsNoAnswer(t *testing.T) {
	for name, back := range map[string]func(w http.ResponseWriter, id []byte){
		"a message": func(w http.ResponseWriter, id []byte) { jsonAnswer(w, id, textResult("not this")) },
		"nothing":   func(http.ResponseWriter, []byte) {},
		"a stream that goes on elsewhere": func(w http.ResponseWriter, _ []byte) {
			events(w, "id: 7\nretry: 1\ndata:\n\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			replies := make(chan []byte, 2)
			resumed := make(chan string, 10)
			s := &scripted{
				reply: func(w http.ResponseWriter, body []byte) {
					id := rawjson.Get(body, "id")
					back(w, id)
					replies <- id
				},
				call: func(w http.ResponseWriter, id []byte) {
					// The second reply is sent when what came for the first was taken.
					for _, own := range []string{string(id), `"second"`} {
						events(w, `data: {"jsonrpc":"2.0","id":`+own+`,"method":"ping"}`+"\n\n")
						_ = http.NewResponseController(w).Flush()
						select {
						case got := <-replies:
							if string(got) != own {
								t.Errorf("a reply to %s, want %s", got, own)
							}
						case <-time.After(10 * time.Second):
							t.Error("no reply")
						}
					}
					events(w, fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", id, textResult("this")))
				},
				stand: func(w http.ResponseWriter, r *http.Request) {
					if last := r.Header.Get("Last-Event-ID"); last != "" {
						resumed <- last
					}
					w.WriteHeader(http.StatusMethodNotAllowed)
				},
			}
			if got := mustCall(t, s.start(t), "a", "work", "{}"); got != "this" {
				t.Errorf("got %q", got)
			}
			if len(resumed) > 0 {
				t.Errorf("the rest after event %s was asked for", <-resumed)
			}
		})
	}
}

// TestAStreamThatDoesNotOpenInTime: the reason is the limit, whoever notices it.
func TestAStreamThatDoesNotOpenInTime(t *testing.T) {
	for name, begin := range map[string]func(w http.ResponseWriter){
		"no answer":   func(http.ResponseWriter) {},
		"no endpoint": func(w http.ResponseWriter) { w.(http.Flusher).Flush() },
	} {
		t.Run(name, func(t *testing.T) {
			remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				begin(w)
				<-r.Context().Done()
			}))
			t.Cleanup(remote.Close)
			r, _ := run(t, map[string]any{"a": map[string]any{"url": remote.URL, "type": "sse", "startup_timeout": 0.2}})
			u := r.Settled(t.Context(), "a")
			if u.Cause != link.CauseTimeout || u.Reason != `not ready within 200ms (its "startup_timeout")` {
				t.Errorf("cause %q, reason %s", u.Cause, u.Reason)
			}
		})
	}
}

// early ends the stream of a call before its answer. The rest is there for who
// asks for it with the id of the last event.
type early struct {
	calls  atomic.Int64
	asked  atomic.Int64
	resume func(w http.ResponseWriter, last string, answer string)
	id     atomic.Value  // of the call
	held   chan struct{} // closed when the stream of a call, which then is answered on it and stays open, is ended from afar
}

func (e *early) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && r.Header.Get("Last-Event-ID") != "" {
		e.asked.Add(1)
		e.resume(w, r.Header.Get("Last-Event-ID"), fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"the rest"}]}}`, e.id.Load()))
		return
	}
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, _ := io.ReadAll(r.Body)
	method, _ := rawjson.String(rawjson.Get(body, "method"))
	results := map[string]string{
		"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"early","version":"1"}}`,
		"tools/list": `{"tools":[{"name":"work","inputSchema":{"type":"object"}}]}`,
	}
	switch {
	case results[method] != "":
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Mcp-Session-Id", "s")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, rawjson.Get(body, "id"), results[method])
	case method == "tools/call":
		e.calls.Add(1)
		e.id.Store(string(rawjson.Get(body, "id")))
		if e.held != nil {
			events(w, fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"all of it\"}]}}\n\n", e.id.Load()))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			close(e.held)
			return
		}
		events(w, "id: 1\nretry: 1\ndata:\n\n")
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

func events(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, text)
}

func TestAStreamThatEndsEarlyIsResumed(t *testing.T) {
	tests := []struct {
		name   string
		resume func(w http.ResponseWriter, last, answer string)
		want   string // the answer, or the error
		asked  int64
	}{
		{"at once", func(w http.ResponseWriter, _, answer string) {
			events(w, "id: 2\ndata: "+answer+"\n\n")
		}, "the rest", 1},
		{"in pieces", func(w http.ResponseWriter, last, answer string) {
			if len(last) < 10 { // so many pieces that none is the last that may be asked for
				events(w, "id: "+last+"1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n")
				return
			}
			events(w, "data: "+answer+"\n\n")
		}, "the rest", 10},
		{"never", func(w http.ResponseWriter, _, _ string) { events(w, ": nothing\n\n") }, "its stream ended before the answer came", 3},
		{"refused", func(w http.ResponseWriter, _, _ string) { w.WriteHeader(http.StatusBadRequest) }, "the rest of it: HTTP status 400", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := &early{resume: tt.resume}
			remote := httptest.NewServer(server)
			t.Cleanup(remote.Close)
			r, _ := run(t, map[string]any{"a": map[string]any{"url": remote.URL, "type": "http"}})
			got, err := callTool(t.Context(), r, "a", "work", "{}")
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if calls, asked := server.calls.Load(), server.asked.Load(); calls != 1 || asked != tt.asked {
				t.Errorf("%d calls sent, the rest asked for %d times; want 1 and %d", calls, asked, tt.asked)
			}
		})
	}
}

// TestAStreamThatDoesNotEndIsEnded: after the answer nothing holds its connection.
func TestAStreamThatDoesNotEndIsEnded(t *testing.T) {
	server := &early{held: make(chan struct{})}
	remote := httptest.NewServer(server)
	t.Cleanup(remote.Close)
	r, _ := run(t, map[string]any{"a": map[string]any{"url": remote.URL, "type": "http"}})
	if got := mustCall(t, r, "a", "work", "{}"); got != "all of it" {
		t.Errorf("got %q", got)
	}
	select {
	case <-server.held:
	case <-time.After(20 * time.Second):
		t.Error("the stream is still open")
	}
}

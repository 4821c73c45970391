package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
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
)

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

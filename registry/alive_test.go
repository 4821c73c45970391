package registry

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"mcpx/internal/mcptest"
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

// cut makes every connection silent.
func (w *wire) cut(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.pairs {
		for _, c := range []net.Conn{p.from, p.to} {
			if err := c.SetReadDeadline(time.Unix(1, 0)); err != nil && !errors.Is(err, net.ErrClosed) {
				t.Error(err)
			}
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
			r, l := runWith(t, Options{PingEvery: 200 * time.Millisecond}, map[string]any{
				"a": map[string]any{"url": "http://" + w.Addr().String() + path, "type": kind},
			})
			mustCall(t, r, "a", "echo", `{"text":"hi"}`)
			u := r.Catalog().Upstream("a")
			w.cut(t)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if err := u.superseded(ctx); err != nil {
				t.Fatal("the silence is not noticed")
			}
			l.wait(t, "it gave no sign of life within 200ms")
			if got := mustCall(t, r, "a", "echo", `{"text":"again"}`); got != "again" {
				t.Errorf("got %q", got)
			}
		})
	}
}

// TestPingsAreForIdleSessions: during a call the upstream is not asked.
func TestPingsAreForIdleSessions(t *testing.T) {
	remote := newRemote(t)
	r, l := runWith(t, Options{PingEvery: 20 * time.Millisecond}, map[string]any{"a": remote.config()})
	for begin := time.Now(); remote.pings.Load() < 3; {
		if time.Since(begin) > 10*time.Second {
			t.Fatal("an idle session is not asked for a sign of life")
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	before := remote.pings.Load()
	if got, err := callTool(ctx, r, "a", "hang", "{}"); err == nil {
		t.Errorf("got %q", got)
	}
	if n := remote.pings.Load() - before; n > 2 {
		t.Errorf("it was asked %d times during a call", n)
	}
	if got := mustCall(t, r, "a", "echo", `{"text":"hi"}`); got != "hi" || l.count("no sign of life") > 0 || remote.sessions.Load() != 1 {
		t.Errorf("got %q, %d sessions", got, remote.sessions.Load())
	}
}

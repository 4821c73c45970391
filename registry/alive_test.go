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

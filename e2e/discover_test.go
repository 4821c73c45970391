package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	mcpserver "github.com/mark3labs/mcp-go/server"

	"mcpx/internal/rawjson"
)

// slowServer is a real MCP server of both revisions that responds to server/discover only
// once it has got initialize.
type slowServer struct {
	real       http.Handler
	isStrict   bool // refuses initialize
	mu         sync.Mutex
	methods    []string // of the POSTs, in the order in which they came
	opened     string   // the session that initialize has opened
	deleted    string   // the session that was deleted
	initialize chan struct{}
	listed     chan struct{}
	first      map[string]*sync.Once
}

func newSlowServer(t *testing.T, isStrict bool) (*slowServer, string) {
	t.Helper()
	s := &slowServer{
		real: mcpserver.NewStreamableHTTPServer(newRemote(t).tools()), isStrict: isStrict,
		initialize: make(chan struct{}), listed: make(chan struct{}),
		first: map[string]*sync.Once{"initialize": {}, "tools/list": {}},
	}
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	return s, web.URL
}

func (s *slowServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	method, _ := rawjson.String(rawjson.Get(body, "method"))
	s.mu.Lock()
	if method != "" {
		s.methods = append(s.methods, method)
	}
	if r.Method == http.MethodDelete {
		s.deleted = r.Header.Get("Mcp-Session-Id")
	}
	s.mu.Unlock()
	switch method {
	case "server/discover":
		await(r, s.initialize)
	case "tools/list":
		s.first[method].Do(func() { close(s.listed) })
	case "initialize":
		s.first[method].Do(func() { close(s.initialize) })
		if s.isStrict {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32020,"message":"Missing MCP-Protocol-Version header"}}`)
			return
		}
		await(r, s.listed) // server/discover has won
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.opened = w.Header().Get("Mcp-Session-Id")
		}()
	}
	s.real.ServeHTTP(w, r)
}

// await waits for a channel to be closed, or for the end of a request.
func await(r *http.Request, closed <-chan struct{}) {
	select {
	case <-closed:
	case <-r.Context().Done():
	}
}

// TestSlowDiscover: a server that needs more than three seconds for server/discover also gets
// initialize. If server/discover succeeds first, the session of initialize is deleted.
func TestSlowDiscover(t *testing.T) {
	t.Parallel()
	strict, strictURL := newSlowServer(t, true)
	both, bothURL := newSlowServer(t, false)
	p := serve(t, map[string]any{"strict": map[string]any{"url": strictURL}, "both": map[string]any{"url": bothURL, "type": "http"}})
	p.initialize()
	for _, server := range []string{"strict", "both"} {
		if got := p.exec(server, "echo", `{"text":"hi"}`); got != "hi" {
			t.Errorf("%s: got %q", server, got)
		}
	}
	eventually(t, "the session of initialize is deleted", func() (string, bool) {
		both.mu.Lock()
		defer both.mu.Unlock()
		return fmt.Sprintf("opened %q, deleted %q", both.opened, both.deleted), both.opened != "" && both.opened == both.deleted
	})
	for name, s := range map[string]*slowServer{"strict": strict, "both": both} {
		s.mu.Lock()
		if got, want := strings.Join(s.methods, " "), "server/discover initialize "; !strings.HasPrefix(got, want) || strings.Count(got, "initialize") > 2 {
			t.Errorf("%s got %s, want %s…", name, got, want)
		}
		s.mu.Unlock()
	}
}

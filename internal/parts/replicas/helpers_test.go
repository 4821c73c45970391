package replicas

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"mcpx/config"
	"mcpx/executor"
	"mcpx/internal/seal"
	"mcpx/internal/store"
	"mcpx/server"
	httpfront "mcpx/server/http"
	"mcpx/server/servertest"
)

func TestMain(m *testing.M) { servertest.Main(m) }

// patience is what anything that must happen may take on a loaded machine.
const patience = 20 * time.Second

const sessionHeader = "Mcp-Session-Id"

// site is the front of one replica.
type site struct {
	*httpfront.HTTP
	replicas *Replicas
	url      string
	executor *executor.Executor // of the default profile
	stop     func()             // ends Run of the front
}

// box returns a box whose keys are made of these bytes.
func box(keys ...byte) *seal.Box {
	var all []seal.Key
	for _, b := range keys {
		all = append(all, bytes.Repeat([]byte{b}, seal.KeyBytes))
	}
	return seal.New(seal.Session, all)
}

// listen runs a replica over upstreams until the test ends. The store may be nil.
func listen(t *testing.T, shared store.Store, upstreams ...map[string]any) *site {
	t.Helper()
	return listenWith(t, &httpfront.HTTP{Limits: config.Limits{BodyBytes: 8 << 20, Sessions: 10, SessionIdle: time.Hour}}, shared, upstreams...)
}

func listenWith(t *testing.T, h *httpfront.HTTP, shared store.Store, upstreams ...map[string]any) *site {
	t.Helper()
	b := servertest.Start(t, server.Options{}, upstreams...)
	h.Servers = map[string]*server.Server{"default": b.Server}
	s := serve(t, h, box(1), shared)
	s.executor = b.Executor
	s.executor.Settle(t.Context(), nil, time.Minute)
	return s
}

// small serves two profiles without upstreams.
func small(t *testing.T, b *seal.Box) *site {
	t.Helper()
	servers := map[string]*server.Server{"default": servertest.Bare(), "other": servertest.Bare("x")}
	return serve(t, &httpfront.HTTP{Servers: servers, Limits: config.Limits{BodyBytes: 10_000, Sessions: 3, SessionIdle: time.Hour}}, b, nil)
}

// serve runs the front of a replica until the test ends.
func serve(t *testing.T, h *httpfront.HTTP, b *seal.Box, shared store.Store) *site {
	t.Helper()
	p := New(h, b, shared)
	h.Replicas = p
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return &site{HTTP: h, replicas: p, url: "http://" + l.Addr().String(), stop: run(t, p, l)}
}

// run runs a replica until the test ends. stop stops its front before that.
func run(t *testing.T, p *Replicas, l net.Listener) (stop func()) {
	p.front.Handler()
	endNotes := until(p.Run)
	t.Cleanup(endNotes)
	end := until(func(ctx context.Context) { _ = p.front.Run(ctx, l) })
	stop = func() {
		http.DefaultClient.CloseIdleConnections() // the server would wait for those that were never used
		end()
	}
	t.Cleanup(stop)
	return stop
}

// until runs a function until stop is called.
func until(run func(ctx context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}
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

// in posts a message in a session and returns the whole answer.
func (s *site) in(t *testing.T, id, message string) string {
	t.Helper()
	return whole(t, s.do(t, "POST", "/mcp", message, sessionHeader, id))
}

// open opens a session and returns its ID.
func (s *site) open(t *testing.T, capabilities string) string {
	t.Helper()
	r := s.do(t, "POST", "/mcp", request("initialize", `{"protocolVersion":"2025-06-18","capabilities":`+capabilities+`}`))
	id := r.Header.Get(sessionHeader)
	if r.StatusCode != http.StatusOK || id == "" {
		t.Fatalf("initialize: %s", whole(t, r))
	}
	if got := s.in(t, id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`); got != "202 " {
		t.Fatalf("initialized: %s", got)
	}
	return id
}

// copy returns the copy of the only session here.
func (s *site) copy(t *testing.T, id string) *sessionCopy {
	t.Helper()
	if n := s.Open(); n != 1 {
		t.Fatalf("%d sessions", n)
	}
	text, _ := openID(s.replicas.box, id, "default?expose=")
	if text == nil {
		t.Fatal("the ID cannot be opened")
	}
	return s.replicas.copyHere(text.id())
}

// isOver reports whether a session has ended here.
func (c *sessionCopy) isOver() bool { return c.session.Client().Conn.Err() != nil }

// hasStream reports whether the client has its GET stream here.
func (s *site) hasStream(t *testing.T, id string) bool {
	t.Helper()
	return s.copy(t, id).session.Stream() != nil
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

// events returns the data of the events in an answer.
func events(r *http.Response) *bufio.Scanner {
	lines := bufio.NewScanner(r.Body)
	lines.Split(func(data []byte, atEOF bool) (int, []byte, error) {
		i := bytes.Index(data, []byte("\n\n"))
		if i < 0 {
			if atEOF {
				return len(data), nil, nil
			}
			return 0, nil, nil
		}
		_, event, _ := bytes.Cut(data[:i], []byte("\ndata: "))
		return i + 2, event, nil
	})
	return lines
}

// request returns a request with the ID 1.
func request(method, params string) string {
	if params != "" {
		params = `,"params":` + params
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q%s}`, method, params)
}

// result returns the answer to it.
func result(result string) string { return `{"jsonrpc":"2.0","id":1,"result":` + result + `}` }

// exec returns the params of a call to a tool of the server one.
func exec(tool, arguments string) string {
	return `{"name":"exec","arguments":{"server_name":"one","tool_name":"` + tool + `","arguments":` + arguments + `},"_meta":{"progressToken":"tok"}}`
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for limit := time.Now().Add(patience); !holds(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("never: %s", what)
		}
	}
}

// postTo returns a request that posts JSON.
func postTo(ctx context.Context, path string, body io.Reader) *http.Request {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://localhost"+path, body)
	r.Header.Set("Content-Type", "application/json")
	return r
}

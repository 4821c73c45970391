package registry

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"mcpx/internal/listcache"
	"mcpx/internal/mcptest"
	"mcpx/internal/rpc"
	"mcpx/registry/live"
	"mcpx/registry/upstream"
)

// Test2026Upstream: an upstream of 2026-07-28 is listed, called and subscribed to, and
// requires input of its client.
func Test2026Upstream(t *testing.T) {
	r, l := run(t, map[string]any{"a": mcptest.Upstream(t, "-only-2026", "-full")})
	u := r.Settled(t.Context(), "a")
	if u.State != live.Ready || u.Instructions != "speaks 2026-07-28" || u.Tool("echo") == nil || len(u.Resources) == 0 {
		t.Fatalf("%s %q %q, %d tools, %d resources", u.State, u.Reason, u.Instructions, len(u.Tools), len(u.Resources))
	}
	one := newRecorder("one")
	r.Attach(one)
	if got, err := callAs(t, r, one, "echo", `{"text":"hi"}`); err != nil || got != "hi" {
		t.Errorf("got %q, %v", got, err)
	}

	got, err := callAs(t, r, one, "ask", `{"method":"sampling/createMessage","params":{"temperature":0}}`)
	if want := `state 1 {"one":{"from":"one"}}`; err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	one.wait(t, `sampling/createMessage {"temperature":0}`)
	l.wait(t, `listen {\"notifications\":{\"toolsListChanged\":true,\"resourcesListChanged\":true}}`)
	if err := r.Subscribe(t.Context(), one, "a", "test://one", "known://one"); err != nil {
		t.Fatal(err)
	}
	l.wait(t, `\"resourceSubscriptions\":[\"test://one\"]`)
	mustCall(t, r, "a", "say", `{"method":"notifications/resources/updated","params":[{"uri":"test://one","_meta":{"io.modelcontextprotocol/subscriptionId":5,"x":1}}]}`)
	if got, want := one.heard("notifications/resources/updated"), []string{`{"uri":"known://one","_meta":{"x":1}}`}; !slices.Equal(got, want) {
		t.Errorf("heard %q, want %q", got, want)
	}
	mustCall(t, r, "a", "change", `{"notices":1}`)
	l.wait(t, "list changed")
}

// TestRevisionOfAProcess: a process gets initialize first. If the client of the first call
// speaks 2026-07-28, the process goes on with that revision if it can. Whether it can
// is known at the next start.
func TestRevisionOfAProcess(t *testing.T) {
	const newest, earlier = "2026-07-28", "2025-11-25"
	for _, c := range []struct {
		name   string
		flags  []string
		client string
		is2026 bool
		first  []string // requests of the first start, lists aside; only the last process counts
		next   []string // of the next start
	}{
		{"earlier revisions", nil, newest, false, []string{"initialize", "server/discover"}, []string{"initialize"}},
		{"both", []string{"-both"}, newest, true, []string{"initialize", "server/discover", "subscriptions/listen"}, []string{"initialize", "server/discover", "subscriptions/listen"}},
		{"2026-07-28", []string{"-only-2026"}, earlier, true, []string{"server/discover", "subscriptions/listen"}, []string{"server/discover", "subscriptions/listen"}},
		{"exits", []string{"-exit-on", "server/discover"}, newest, false, []string{"initialize"}, []string{"initialize"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			upstream := mcptest.Upstream(t, append(c.flags, "-report")...)
			cache := listcache.New(t.TempDir(), t.TempDir()+"/key", zerolog.Nop())
			for start, want := range [][]string{c.first, c.next} {
				t.Run(fmt.Sprint("start ", start+1), func(t *testing.T) {
					r, _ := runWith(t, Options{Cache: cache}, map[string]any{"a": upstream})
					client := client2026{newRecorder("one"), c.client}
					if got, err := callAs(t, r, client, "echo", `{"text":"hi"}`); err != nil || got != "hi" {
						t.Errorf("got %q, %v", got, err)
					}
					u := r.Catalog().Upstream("a")
					if is2026 := u.Session.Is2026(); is2026 != c.is2026 {
						t.Errorf("it speaks 2026-07-28: %t", is2026)
					}
					eventually(t, fmt.Sprintf("it got %q", want), func() bool { return slices.Equal(handshakes(u.LatestStderr()), want) })
				})
			}
		})
	}
}

// client2026 is a recorder of a revision.
type client2026 struct {
	*recorder
	revision string
}

func (client2026) Capabilities() []byte { return []byte("{}") }

func (c client2026) Revision() string { return c.revision }

func (c client2026) RequestAll(ctx context.Context, inputs []upstream.Input) ([][]byte, error) {
	return upstream.RequestEach(ctx, c, inputs)
}

// handshakes returns the requests in the stderr of a process, without lists and calls.
func handshakes(lines []string) (methods []string) {
	for _, line := range lines {
		method, ok := strings.CutPrefix(line, "got ")
		if ok && !strings.HasSuffix(method, "/list") && !strings.HasSuffix(method, "/call") {
			methods = append(methods, method)
		}
	}
	return methods
}

// TestRevisionOfARemoteUpstream: whatever a remote upstream answers to server/discover, it
// gets initialize next, unless it supports 2026-07-28.
func TestRevisionOfARemoteUpstream(t *testing.T) {
	status := func(code int, body string) func(w http.ResponseWriter, r *http.Request, m rpc.Message) {
		return func(w http.ResponseWriter, _ *http.Request, m rpc.Message) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			fmt.Fprint(w, strings.ReplaceAll(body, "ID", string(m.ID)))
		}
	}
	for _, c := range []struct {
		name     string
		is2026   bool
		discover func(w http.ResponseWriter, r *http.Request, m rpc.Message)
	}{
		{"supports it", true, status(200, `{"jsonrpc":"2.0","id":ID,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}`)},
		{"unknown method", false, status(200, `{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"no"}}`)},
		{"no session", false, status(400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`)},
		{"plain text", false, status(400, "no session")},
		{"not found", false, status(404, "")},
		{"fails", false, status(500, "")},
		{"a page", false, status(200, "<html>")},
		{"accepted", false, status(202, "")},
		{"breaks", false, func(http.ResponseWriter, *http.Request, rpc.Message) { panic(http.ErrAbortHandler) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			strict := scripted{"server/discover": c.discover}
			if c.is2026 {
				strict["initialize"] = status(400, `{"jsonrpc":"2.0","id":ID,"error":{"code":-32020,"message":"Missing MCP-Protocol-Version header"}}`)
			}
			r, _ := run(t, map[string]any{"a": map[string]any{"url": serve(t, strict)}})
			u, err := r.For(nil).Ready(t.Context(), "a")
			if err != nil || u.Tool("b") == nil {
				t.Fatalf("not ready: %v", err)
			}
			if is2026 := u.Session.Is2026(); is2026 != c.is2026 {
				t.Errorf("it speaks 2026-07-28: %t", is2026)
			}
		})
	}
}

// TestToolsWithInvalidHeaders: a tool of 2026-07-28 over HTTP whose arguments cannot be
// repeated in headers is left out.
func TestToolsWithInvalidHeaders(t *testing.T) {
	answer := func(result string) func(w http.ResponseWriter, r *http.Request, m rpc.Message) {
		return func(w http.ResponseWriter, _ *http.Request, m rpc.Message) { jsonAnswer(w, m.ID, result) }
	}
	r, l := run(t, map[string]any{"a": map[string]any{"url": serve(t, scripted{
		"server/discover": answer(`{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`),
		"tools/list": answer(`{"tools":[{"name":"good","inputSchema":{"properties":{"x":{"type":"string","x-mcp-header":"X"}}}},` +
			`{"name":"bad","inputSchema":{"properties":{"x":{"type":"object","x-mcp-header":"X"}}}},{"name":"plain"}]}`),
	})}})
	u, err := r.For(nil).Ready(t.Context(), "a")
	if err != nil || len(u.Tools) != 2 || u.Tool("good") == nil || u.Tool("plain") == nil {
		t.Errorf("%d tools, %v", len(u.Tools), err)
	}
	l.wait(t, "skipped a tool with an invalid x-mcp-header")
}

package app

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/executor"
	"mcpx/internal/mcptest"
	"mcpx/internal/parts/callers"
	"mcpx/internal/parts/search"
	"mcpx/internal/policy"
	"mcpx/registry"
	"mcpx/registry/child"
	"mcpx/server"
	"mcpx/server/servertest"
)

func TestMain(m *testing.M) { servertest.Main(m) }

// grove is a server over three upstreams, with the built-in tools of all parts. Each upstream has
// a tool that reads and a tool that writes, whose names no other upstream has, and prompts and
// resources.
type grove struct {
	server *server.Server

	mu     sync.Mutex
	events []executor.Event
}

func (b *grove) observe(e executor.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, e)
}

var trees = []string{"alder", "birch", "cedar"}

// newGrove returns a grove whose upstreams are ready, and run until the test ends.
func newGrove(t testing.TB) *grove {
	t.Helper()
	mcptest.NothingLeft(t)
	var upstreams []map[string]any
	for _, name := range trees {
		file := filepath.Join(t.TempDir(), "tools.json")
		tools := fmt.Sprintf(`[{"name":"%[1]s_get","description":"Look at the %[1]s","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},
			{"name":"%[1]s_put","description":"Change the %[1]s","inputSchema":{"type":"object"}}]`, name)
		if err := os.WriteFile(file, []byte(tools), 0o600); err != nil {
			t.Fatal(err)
		}
		u := servertest.Upstream(t, name, "-full", "-name", name, "-tools-file", file, "-instructions", "Prefer "+name+"_put.")
		u["tools"] = map[string]any{"allow": []string{name + "_*"}}
		u["description"] = "All about " + name
		upstreams = append(upstreams, u)
	}
	text, err := json.Marshal(map[string]any{"mcp_servers": upstreams})
	if err != nil {
		t.Fatal(err)
	}
	c, err := ConfigHooks().Parse(filepath.Join(t.TempDir(), "config.json"), text, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	b, p, w := &grove{}, &c.Profiles[0], child.NewWatcher(zerolog.Nop())
	r := registry.New(p, registry.Options{Version: "1.2.3", MessageBytes: 8 << 20, ConnectsAtOnce: 4, Watcher: w})
	e := executor.New(r, c, p, executor.Options{Observers: executor.Observers{b.observe}, Tools: builtinTools(search.New("", zerolog.Nop()))})
	b.server = server.New(p, r, e, server.Options{Version: "1.2.3"})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		w.Close()
	})
	for _, name := range trees {
		if _, err := r.For(nil).Ready(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// request is a request with the ID 1.
func request(method, params string) string {
	if params != "" {
		params = `,"params":` + params
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q%s}`, method, params)
}

// hiddenNames returns the names that must not occur in anything that a caller gets.
func hiddenNames(c policy.Caller) (names []string) {
	for _, server := range trees {
		extent := c.Extent("default", server)
		if extent == policy.Nothing {
			names = append(names, server)
		}
		if extent < policy.AllButSomeTools {
			names = append(names, server+"__plain", "own://"+server)
		}
		for tool, reads := range map[string]bool{server + "_get": true, server + "_put": false} {
			if c.Rules != nil && !c.Rules.HasTool(policy.Tool{Profile: "default", Server: server, Name: tool, ReadOnly: reads}) {
				names = append(names, tool)
			}
		}
	}
	return names
}

// probes are requests that could reveal something. Names in them are misspelled, so that
// suggestions are asked for, and a hidden name in the response is not an echo.
func probes() []string {
	call := func(name, arguments string) string {
		return request("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, arguments))
	}
	all := []string{
		request("initialize", `{"protocolVersion":"2025-06-18","capabilities":{}}`), request("tools/list", ""), request("prompts/list", ""),
		request("resources/list", ""), request("resources/templates/list", ""), call("inspect", `{"server_name":"mcpx"}`), call("inspect", `{}`),
		call("exec", `{"server_name":"mcpx","tool_name":"servers"}`), call("exec", `{"server_name":"mcpx","tool_name":"show_config"}`),
		call("mcpx__servers", `{}`), call("mcpx__show_config", `{}`),
		call("exec", `{"server_name":"mcpx","tool_name":"search","arguments":{"query":"look change get put all"}}`),
		call("exec", `{"server_name":"mcpx","tool_name":"search","arguments":{"query":"nothing of that kind"}}`),
		request("server/discover", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`),
	}
	for _, name := range trees {
		typo := name[:2] + "x" + name[2:]
		all = append(all,
			call("inspect", fmt.Sprintf(`{"server_name":%q}`, typo)), call("exec", fmt.Sprintf(`{"server_name":%q,"tool_name":"x"}`, typo)),
			call("exec", fmt.Sprintf(`{"tool_name":"%s.gett"}`, typo)), call(typo+"_get", `{}`), call(typo+"__get", `{}`),
			call("exec", fmt.Sprintf(`{"server_name":"mcpx","tool_name":"schema","arguments":{"server":%q,"tool":"gett"}}`, typo)),
			request("prompts/get", fmt.Sprintf(`{"name":"%s__plain"}`, typo)), request("resources/read", fmt.Sprintf(`{"uri":"own:/%s"}`, typo)),
			request("completion/complete", fmt.Sprintf(`{"ref":{"type":"ref/prompt","name":"%s__plain"},"argument":{"name":"a","value":""}}`, typo)),
		)
	}
	return all
}

// seenProbes are requests about a server that the caller sees.
func seenProbes(name string) []string {
	call := func(tool, arguments string) string {
		return request("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, arguments))
	}
	var all []string
	for _, tool := range []string{"", "*", "*_p*", name + "_gut", "gat,*", "nothing"} {
		all = append(all, call("inspect", fmt.Sprintf(`{"server_name":%q,"tool_name":%q}`, name, tool)), call("exec", fmt.Sprintf(`{"server_name":%q,"tool_name":%q}`, name, tool)))
	}
	return append(all, call("exec", fmt.Sprintf(`{"server_name":"mcpx","tool_name":"schema","arguments":{"server":%q,"tool":"put"}}`, name)))
}

// FuzzPolicy: whatever the rules are, no path names what they do not grant, and no path
// reaches it.
func FuzzPolicy(f *testing.F) {
	for _, allow := range []string{"", "*", "default", "default/alder", "default/birch/birch_get", "default/*/*_put", "default/[ab]*", "other/*", "default/cedar default/*/*_get"} {
		f.Add(allow, false)
		f.Add(allow, true)
	}
	// go test -fuzz waits for signals. The goroutine of that would count as left behind.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	signal.Stop(signals)
	b := newGrove(f)
	servers := map[string]*server.Server{"lazy": b.server, "flat": b.server.Exposing(config.Flat)}
	f.Fuzz(func(t *testing.T, allow string, readOnly bool) {
		caller := &policy.Caller{ID: "fuzz", Name: "fuzz", Rules: callers.Union(callers.Grant{Allow: strings.Fields(allow), ReadOnly: readOnly})}
		for mode, s := range servers {
			c := s.NewSessionlessClient("fuzz", "fuzz").As(caller)
			c.Send = func([]byte) error { return nil }
			ask := func(message string) string {
				answered := make(chan []byte, 1)
				s.Handle(t.Context(), c, server.Read([]byte(message)), func(answer []byte) { answered <- answer })
				return string(<-answered)
			}
			all := probes()
			for _, name := range trees {
				if caller.HasServer("default", name) {
					all = append(all, seenProbes(name)...)
				}
			}
			hidden := hiddenNames(*caller)
			for _, message := range all {
				answer := ask(message)
				for _, name := range hidden {
					if strings.Contains(answer, name) {
						t.Fatalf("%s, %q, read only %t: %s reveals %s: %s", mode, allow, readOnly, message, name, answer)
					}
				}
			}
			for _, name := range hidden {
				checkUnreachable(t, b, name, ask)
			}
		}
	})
}

// checkUnreachable asks for a hidden name as it is, on every path.
func checkUnreachable(t *testing.T, b *grove, name string, ask func(message string) string) {
	t.Helper()
	b.mu.Lock()
	b.events = nil
	b.mu.Unlock()
	server, _, _ := strings.Cut(strings.TrimPrefix(name, "own://"), "_")
	for _, params := range []string{
		fmt.Sprintf(`{"name":"exec","arguments":{"server_name":%q,"tool_name":%q}}`, server, name),
		fmt.Sprintf(`{"name":"exec","arguments":{"tool_name":"%s__%s"}}`, server, name),
		fmt.Sprintf(`{"name":"%s__%s","arguments":{}}`, server, name),
		fmt.Sprintf(`{"name":%q,"arguments":{}}`, name),
		fmt.Sprintf(`{"name":"inspect","arguments":{"server_name":%q,"tool_name":%q}}`, server, name),
		fmt.Sprintf(`{"name":"exec","arguments":{"server_name":"mcpx","tool_name":"schema","arguments":{"server":%q,"tool":%q}}}`, server, name),
	} {
		answer := ask(request("tools/call", params))
		if !strings.Contains(answer, `"error":`) && !strings.Contains(answer, `"isError":true`) || strings.Contains(answer, "inputSchema") {
			t.Fatalf("%s: %s", params, answer)
		}
	}
	for method, params := range map[string]string{
		"prompts/get":         fmt.Sprintf(`{"name":%q}`, name),
		"resources/read":      fmt.Sprintf(`{"uri":%q}`, name),
		"resources/subscribe": fmt.Sprintf(`{"uri":"mcpx://%s/own://%s"}`, server, server),
		"completion/complete": fmt.Sprintf(`{"ref":{"type":"ref/prompt","name":%q},"argument":{"name":"a","value":""}}`, name),
	} {
		if strings.HasPrefix(method, "resources/") && strings.Contains(name, "_") {
			continue
		}
		isPrompt := strings.HasSuffix(name, "__plain") && !strings.HasPrefix(method, "resources/")
		if answer := ask(request(method, params)); strings.Contains(answer, "of "+server) || isPrompt && !strings.Contains(answer, `"error":`) {
			t.Fatalf("%s %s: %s", method, params, answer)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.events {
		if e.Outcome != "not_found" && (e.Tool == name || e.Server == server && name == server) {
			t.Fatalf("%s was reached: %+v", name, e)
		}
	}
}

package front

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/executor"
	"mcpx/internal/child"
	"mcpx/internal/mcptest"
	"mcpx/registry"
	"mcpx/server"
)

func TestMain(m *testing.M) {
	child.WatchIfAsked()
	mcptest.Main()
	os.Exit(m.Run())
}

// bench is a server over running upstreams.
type bench struct {
	*server.Server
	registry *registry.Registry
	executor *executor.Executor
}

// upstream returns an entry of mcp_servers.
func upstream(t testing.TB, name string, flags ...string) map[string]any {
	u := mcptest.Upstream(t, flags...)
	u["name"] = name
	return u
}

// start returns a server whose upstreams run until the test ends.
func start(t testing.TB, upstreams ...map[string]any) *bench {
	t.Helper()
	return startWith(t, server.Options{}, upstreams...)
}

// startWith is start with options of the server.
func startWith(t testing.TB, o server.Options, upstreams ...map[string]any) *bench {
	t.Helper()
	mcptest.NothingLeft(t)
	text, err := json.Marshal(map[string]any{"mcp_servers": append([]map[string]any{}, upstreams...)})
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Parse(filepath.Join(t.TempDir(), "config.json"), text, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	b, log := &bench{}, zerolog.Nop()
	w := child.NewWatcher(log)
	b.registry = registry.New(&c.Profiles[0], registry.Options{Log: log, Version: "1.2.3", MessageBytes: 8 << 20, ConnectsAtOnce: 4, Watcher: w})
	b.executor = executor.New(b.registry, c, &c.Profiles[0], executor.Options{Log: log})
	o.Log, o.Version = log, "1.2.3"
	b.Server = server.New(&c.Profiles[0], b.registry, b.executor, o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- b.registry.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		w.Close()
	})
	return b
}

// bare returns a server without running upstreams.
func bare(names ...string) *server.Server {
	p := &config.Profile{Name: "default", Enabled: true, Expose: config.Lazy}
	for _, name := range names {
		p.Upstreams = append(p.Upstreams, config.Upstream{Name: name})
	}
	c := &config.Config{Profiles: []config.Profile{*p}, Limits: config.Limits{InspectTokens: 4000, ResultTokens: 10_000, ResultHead: 2000, KeptBytes: 1 << 20}}
	r := registry.New(p, registry.Options{})
	return server.New(p, r, executor.New(r, c, p, executor.Options{}), server.Options{Version: "1.2.3"})
}

// with adds a method for the time of a test.
func with(t *testing.T, name string, run server.Method) {
	t.Helper()
	before := maps.Clone(server.Methods)
	server.Methods[name] = run
	t.Cleanup(func() { server.Methods = before })
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

// meta returns the _meta of a request of 2026-07-28.
func meta(capabilities, more string) string {
	return fmt.Sprintf(`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":%s%s}`, capabilities, more)
}

// failure returns an answer with an error.
func failure(code int, message, data string) string {
	if data != "" {
		data = `,"data":` + data
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"error":{"code":%d,"message":%q%s}}`, code, message, data)
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

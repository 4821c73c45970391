// Package servertest starts a server.Server over real upstreams, for the tests of what
// connects it to clients. The tests' TestMain must call Main.
package servertest

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/executor"
	"mcpx/internal/mcptest"
	"mcpx/registry"
	"mcpx/registry/child"
	"mcpx/server"
)

// Main runs the tests of a package. The test binary is also the upstreams and the watcher.
func Main(m *testing.M) {
	child.WatchIfAsked()
	mcptest.Main()
	os.Exit(m.Run())
}

// Running is a server over running upstreams.
type Running struct {
	*server.Server
	Registry *registry.Registry
	Executor *executor.Executor
}

// Upstream returns an entry of mcp_servers.
func Upstream(t testing.TB, name string, flags ...string) map[string]any {
	u := mcptest.Upstream(t, flags...)
	u["name"] = name
	return u
}

// Start returns a server whose upstreams run until the test ends.
func Start(t testing.TB, o server.Options, upstreams ...map[string]any) *Running {
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
	log := zerolog.Nop()
	w := child.NewWatcher(log)
	r := registry.New(&c.Profiles[0], registry.Options{Log: log, Version: "1.2.3", MessageBytes: 8 << 20, ConnectsAtOnce: 4, Watcher: w})
	e := executor.New(r, c, &c.Profiles[0], executor.Options{Log: log})
	o.Log, o.Version = log, "1.2.3"
	running := &Running{server.New(&c.Profiles[0], r, e, o), r, e}
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
	return running
}

// Bare returns a server without running upstreams.
func Bare(names ...string) *server.Server {
	p := &config.Profile{Name: "default", Enabled: true, Expose: config.Lazy}
	for _, name := range names {
		p.Upstreams = append(p.Upstreams, config.Upstream{Name: name})
	}
	c := &config.Config{Profiles: []config.Profile{*p}, Limits: config.Limits{InspectTokens: 4000, ResultTokens: 10_000, ResultHead: 2000, KeptBytes: 1 << 20, WorkBytes: 64 << 20}}
	r := registry.New(p, registry.Options{})
	return server.New(p, r, executor.New(r, c, p, executor.Options{}), server.Options{Version: "1.2.3"})
}

// AddMethod adds a method for the time of a test.
func AddMethod(t *testing.T, name string, run server.Method) {
	t.Helper()
	before := maps.Clone(server.Methods)
	server.Methods[name] = server.MethodInfo{Run: run}
	t.Cleanup(func() { server.Methods = before })
}

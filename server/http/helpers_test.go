package httpfront

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"mcpx/executor"
	"mcpx/registry"
	"mcpx/server"
	"mcpx/server/servertest"
)

func TestMain(m *testing.M) { servertest.Main(m) }

// bench is a server over running upstreams.
type bench struct {
	*server.Server
	registry *registry.Registry
	executor *executor.Executor
}

// upstream returns an entry of mcp_servers.
func upstream(t testing.TB, name string, flags ...string) map[string]any {
	return servertest.Upstream(t, name, flags...)
}

// start returns a server whose upstreams run until the test ends.
func start(t testing.TB, upstreams ...map[string]any) *bench {
	t.Helper()
	return startWith(t, server.Options{}, upstreams...)
}

// startWith is start with options of the server.
func startWith(t testing.TB, o server.Options, upstreams ...map[string]any) *bench {
	t.Helper()
	running := servertest.Start(t, o, upstreams...)
	return &bench{running.Server, running.Registry, running.Executor}
}

// bare returns a server without running upstreams.
func bare(names ...string) *server.Server { return servertest.Bare(names...) }

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

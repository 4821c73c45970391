package search

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/executor"
	"mcpx/internal/mcptest"
	"mcpx/internal/policy"
	"mcpx/internal/policy/policytest"
	"mcpx/internal/tokens"
	"mcpx/registry"
	"mcpx/registry/child"
	"mcpx/registry/lists"
	"mcpx/registry/live"
	"mcpx/registry/upstream"
	"mcpx/server/servertest"
)

func TestMain(m *testing.M) { servertest.Main(m) }

// bench is an Executor with the tool search, over running upstreams.
type bench struct {
	*executor.Executor
	registry *registry.Registry
}

// start returns a bench whose upstreams run until the test ends.
func start(t *testing.T, limits map[string]any, upstreams ...map[string]any) bench {
	t.Helper()
	mcptest.NothingLeft(t)
	file := map[string]any{"mcp_servers": upstreams}
	if limits != nil {
		file["limits"] = limits
	}
	text, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Parse(filepath.Join(t.TempDir(), "config.json"), text, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	w := child.NewWatcher(zerolog.Nop())
	r := registry.New(&c.Profiles[0], registry.Options{MessageBytes: 8 << 20, ConnectsAtOnce: 4, Watcher: w})
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
	return bench{executor.New(r, c, &c.Profiles[0], executor.Options{Tools: []executor.BuiltinTool{new(Search).Tool()}}), r}
}

// exec makes a call and returns the text of its result, or its error.
func (b bench) exec(t *testing.T, arguments string) string {
	t.Helper()
	result, err := b.Call(t.Context(), executor.ParseExec([]byte(arguments)))
	if err != nil {
		return "error: " + err.Error()
	}
	return textOf(t, result)
}

// textOf returns the text of a result that has no other content.
func textOf(t *testing.T, result []byte) string {
	t.Helper()
	var answer struct{ Content []struct{ Type, Text string } }
	if err := json.Unmarshal(result, &answer); err != nil || len(answer.Content) != 1 || answer.Content[0].Type != "text" {
		t.Fatalf("result %s: %v", result, err)
	}
	return answer.Content[0].Text
}

// toolsFile returns the flags of an upstream with these tools too.
func toolsFile(t *testing.T, tools ...string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tools.json")
	if err := os.WriteFile(file, []byte("["+strings.Join(tools, ",")+"]"), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"-tools-file", file}
}

func searchFor(query string) string {
	return fmt.Sprintf(`{"server_name":"mcpx","tool_name":"search","arguments":%s}`, query)
}

func TestSearch(t *testing.T) {
	const definition = `{"name":"paint","inputSchema":{"properties":{"color":{"description":"The hue of a rhinoceros"}}}}`
	paint := live.NewUpstream("late", []lists.Item{{Key: "paint", Raw: []byte(definition)}}).Tool("paint")
	b := start(t, nil,
		servertest.Upstream(t, "issues", toolsFile(t,
			`{"name":"create_issue","description":"Open an issue. Twice.","inputSchema":{"type":"object","properties":{"title":{"type":"string"}},"required":["title"]}}`,
			`{"name":"hidden\nname","description":"A teapot\u001b[2J"}`)...),
		servertest.Upstream(t, "late", append(toolsFile(t, definition), "-start-delay", "200ms")...),
		servertest.Upstream(t, "exits", "-exit", "1"))
	const missing = "\nnot searched, since their tools are not known: exits (waiting)"
	for _, row := range []struct{ name, arguments, want string }{
		{"by name", `{"query":"create issue","limit":1}`, `issues: create_issue(title: string): Open an issue` + missing},
		{"by a parameter's description, of one that starts", `{"query":"rhinoceros"}`, "late: paint(" + paint.Signature() + ")" + missing},
		{"hostile", `{"query":"teapot"}`, `issues: hidden\nname(): A teapot\u001b[2J` + missing},
		{"mcpx's own", `{"query":"configuration secrets","limit":1}`, "mcpx: show_config(): The configuration in use, secrets hidden" + missing},
		{"nothing", `{"query":"zzzzzz"}`, "no tool matches; servers: issues, late, exits, mcpx" + missing},
		{"an empty query", `{"query":""}`, "no tool matches; servers: issues, late, exits, mcpx" + missing},
		{"no query", `{}`, "error: arguments.query: required\nsearch(query: string, …)"},
		{"a limit out of bounds", `{"query":"a","limit":0}`, "error: arguments.limit: expected at least 1, got 0\nsearch(limit?: integer /*1..50*/ = 10, …)"},
		{"a limit that is an integer", `{"query":"create issue","limit":1.0}`, `issues: create_issue(title: string): Open an issue` + missing},
		{"keys are exact", `{"query":"create issue","QUERY":"zzzzzz","limit":1}`, `issues: create_issue(title: string): Open an issue` + missing},
	} {
		got := strings.Replace(b.exec(t, searchFor(row.arguments)), "exits (starting)", "exits (waiting)", 1) // it is tried again now and then
		if got != row.want {
			t.Errorf("%s:\n got %s\nwant %s", row.name, got, row.want)
		}
	}
	catalog := b.registry.Catalog()
	first := indexOf(b.Executor, catalog)
	if again := indexOf(b.Executor, catalog); again != first {
		t.Error("the index of one catalog is made twice")
	}
}

func TestSearchDoesNotWaitForever(t *testing.T) {
	b := start(t, nil, servertest.Upstream(t, "slow", "-silent", "initialize"))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	call := executor.ParseExec([]byte(searchFor(`{"query":"echo"}`)))
	result, err := b.Call(ctx, call)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := textOf(t, result), "no tool matches; servers: slow, mcpx\nnot searched, since their tools are not known: slow (starting)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSearchKeepsToTheBudget(t *testing.T) {
	b := start(t, map[string]any{"inspect_tokens": 200}, servertest.Upstream(t, "a", "-tools", "100"))
	b.registry.Settled(t.Context(), "a")
	text := b.exec(t, searchFor(`{"query":"extra tool","limit":50}`))
	if lines := strings.Count(text, "\n") + 1; lines < 2 || lines == 50 || tokens.Count(text) > 200 {
		t.Errorf("%d lines, %d tokens", lines, tokens.Count(text))
	}
}

func TestSearchAnswer(t *testing.T) {
	var tools []string
	for i := range 5 {
		tools = append(tools, fmt.Sprintf(`{"name":"export_%d","description":"Writes a report. Slowly.","inputSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}`, i))
	}
	tools = append(tools, `{"name":"create_invoice","inputSchema":{"type":"object","properties":{"amount":{"type":"number"}}}}`)
	b := start(t, nil, servertest.Upstream(t, "vault", toolsFile(t, tools...)...))
	b.registry.Settled(t.Context(), "vault")
	for _, row := range []struct{ name, arguments, want string }{
		{"three hits have signatures", `{"query":"export"}`, `vault: export_0(path: string): Writes a report
vault: export_1(path: string): Writes a report
vault: export_2(path: string): Writes a report
vault: export_3: Writes a report
vault: export_4: Writes a report`},
		{"a synonym", `{"query":"bill","limit":1}`, "vault: create_invoice(amount?: number)"},
		{"only a server's name", `{"query":"vault"}`, `vault: only the server's name matches; inspect("vault") lists its tools`},
		{"a server's name and a tool of another", `{"query":"vault configuration secrets","limit":1}`, `mcpx: show_config(): The configuration in use, secrets hidden
vault: only the server's name matches; inspect("vault") lists its tools`},
	} {
		if got := b.exec(t, searchFor(row.arguments)); got != row.want {
			t.Errorf("%s:\n got %s\nwant %s", row.name, got, row.want)
		}
	}
}

// TestConsoleSearch: the console finds what the tool search finds, without mcpx's own tools.
func TestConsoleSearch(t *testing.T) {
	b := start(t, nil, servertest.Upstream(t, "issues", toolsFile(t, `{"name":"delete_invoice","description":"Remove an invoice for good."}`)...))
	if _, err := b.registry.For(nil).Ready(t.Context(), "issues"); err != nil {
		t.Fatal(err)
	}
	const query = "get rid of a bill"
	hits := new(Search).findFor(t.Context(), b.Executor, nil, query)
	if len(hits) == 0 || hits[0] != (toolHit{Server: "issues", Tool: "delete_invoice"}) {
		t.Errorf("found %v", hits)
	}
	if text := b.exec(t, searchFor(`{"query":"`+query+`"}`)); !strings.HasPrefix(text, "issues: delete_invoice(") {
		t.Errorf("the tool search finds %s", text)
	}
	for _, hit := range new(Search).findFor(t.Context(), b.Executor, nil, "configuration secrets") {
		if hit.Server == executor.Builtin {
			t.Errorf("found %v", hit)
		}
	}
}

// TestSearchIsListedFirst: inspect lists the tool search before those of the core.
func TestSearchIsListedFirst(t *testing.T) {
	text, err := start(t, nil, servertest.Upstream(t, "a")).Inspect(t.Context(), nil, "mcpx", "")
	if want := "mcpx: 5 tools\nsearch(query: string, limit?: integer /*1..50*/ = 10): Find tools of all servers by what they do, best first\nread_result("; err != nil || !strings.HasPrefix(text, want) {
		t.Errorf("got %s, %v, want it to begin with %s", text, err, want)
	}
}

// limited is a client that may use only some tools.
type limited struct {
	upstream.Client
	caller *policy.Caller
}

func (c limited) Owner() string          { return "limited" }
func (c limited) Caller() *policy.Caller { return c.caller }

// TestSearchKeepsToTheRules: a search finds and names nothing that its caller may not use.
func TestSearchKeepsToTheRules(t *testing.T) {
	tools := toolsFile(t, `{"name":"get_teapot"}`, `{"name":"put_teapot"}`)
	b := start(t, nil, servertest.Upstream(t, "alder", tools...), servertest.Upstream(t, "birch", tools...))
	b.Settle(t.Context(), nil, time.Minute)
	for _, row := range []struct{ name, allow, query, want string }{
		{"everything", "*", "teapot", "alder: get_teapot()\nalder: put_teapot()\nbirch: get_teapot()\nbirch: put_teapot"},
		{"a server", "default/birch", "teapot", "birch: get_teapot()\nbirch: put_teapot()"},
		{"a tool", "default/alder/get_*", "teapot", "alder: get_teapot()"},
		{"no hit", "default/alder/get_*", "birch", "no tool matches; servers: alder, mcpx"},
		{"nothing", "other", "teapot", "no tool matches; servers: mcpx"},
	} {
		c := limited{caller: &policy.Caller{ID: row.name, Rules: policytest.Allow(row.allow)}}
		call := executor.ParseExec([]byte(searchFor(`{"query":"` + row.query + `"}`)))
		call.Client = c
		result, err := b.Call(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		if got := textOf(t, result); got != row.want {
			t.Errorf("%s:\n got %s\nwant %s", row.name, got, row.want)
		}
		for _, hit := range new(Search).findFor(t.Context(), b.Executor, c, row.query) {
			if !strings.Contains(row.want, hit.Server+": "+hit.Tool) {
				t.Errorf("%s: the console finds %v", row.name, hit)
			}
		}
	}
}

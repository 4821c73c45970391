package executor

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"mcpx/internal/tokens"
)

func searchFor(query string) string {
	return fmt.Sprintf(`{"server_name":"mcpx","tool_name":"search","arguments":%s}`, query)
}

func TestSearch(t *testing.T) {
	b := start(t, nil,
		newUpstream(t, "issues", toolsFile(t,
			`{"name":"create_issue","description":"Open an issue. Twice.","inputSchema":{"type":"object","properties":{"title":{"type":"string"}},"required":["title"]}}`,
			`{"name":"hidden\nname","description":"A teapot\u001b[2J"}`)...),
		newUpstream(t, "late", append(toolsFile(t, `{"name":"paint","inputSchema":{"properties":{"colour":{"description":"The hue of a rhinoceros"}}}}`), "-start-delay", "200ms")...),
		newUpstream(t, "exits", "-exit", "1"))
	const missing = "\nnot searched, since their tools are not known: exits (waiting)"
	for _, row := range []struct{ name, arguments, want string }{
		{"by name", `{"query":"create issue","limit":1}`, `issues: create_issue(title: string): Open an issue` + missing},
		{"by a parameter's description, of one that starts", `{"query":"rhinoceros"}`, "late: paint(" + tool(t, `{"name":"paint","inputSchema":{"properties":{"colour":{"description":"The hue of a rhinoceros"}}}}`).Signature() + ")" + missing},
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
	catalog, first := b.registry.Catalog(), b.searchIndex(nil)
	if again := b.searchIndex(nil); again != first && catalog == b.registry.Catalog() {
		t.Error("the index of one catalog is made twice")
	}
}

func TestSearchDoesNotWaitForever(t *testing.T) {
	b := start(t, nil, newUpstream(t, "slow", "-silent", "initialize"))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	call := ParseExec([]byte(searchFor(`{"query":"echo"}`)))
	result, err := b.Do(ctx, call)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := textOf(t, result), "no tool matches; servers: slow, mcpx\nnot searched, since their tools are not known: slow (starting)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSearchKeepsToTheBudget(t *testing.T) {
	b := start(t, map[string]any{"inspect_tokens": 200}, newUpstream(t, "a", "-tools", "100"))
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
	b := start(t, nil, newUpstream(t, "vault", toolsFile(t, tools...)...))
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

package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpx/internal/rawjson"
)

func flat(t *testing.T, file map[string]any, upstreams ...map[string]any) *bench {
	t.Helper()
	file["expose"] = "flat"
	return startAs(t, file, upstreams...)
}

func TestFlatTools(t *testing.T) {
	b := flat(t, map[string]any{}, newUpstream(t, "Time"), newUpstream(t, "Zeit 日本"))
	c := b.connect(t, "2025-06-18", "{}")
	names := c.keys(t, "tools/list", "tools", "name")
	for _, want := range []string{"Time__echo", "Time__nested", "Zeit_____echo_"} {
		if !strings.Contains(names, want) {
			t.Errorf("no %s among %s", want, names)
		}
	}
	list := c.ask(t, request("tools/list", ""))
	for _, want := range []string{
		`{"name":"Time__echo","description":"[Time] Say it again. A second sentence.","inputSchema":{"type":"object","properties":{"text":{"type":"string"},"times":{"type":"integer","minimum":1}},"required":["text"]}}`,
		`"description":"[Zeit 日本] Say it again. A second sentence."`,
	} {
		if !strings.Contains(list, want) {
			t.Errorf("the list has no %s", want)
		}
	}
	c.want(t, "tools/call", `{"name":"Time__echo","arguments":{"text":"hi"}}`, `{"content":[{"type":"text","text":"hi"}]}`)
	c.want(t, "tools/call", `{"name":"Time__echo","arguments":{}}`, `{"code":-32602,"message":"Invalid params: Missing required parameter 'text'","data":{"parameter":"text"}}`)
	c.want(t, "tools/call", `{"name":"Time__echo","arguments":{"text":5}}`, `{"code":-32602,"message":"Invalid params: arguments.text: expected string, got number 5","data":{"parameter":"text"}}`)
	big := `{"content":[{"type":"hologram","x":9007199254740993}],"structuredContent":{"a":1.0},"isError":false,"more":[1]}`
	c.want(t, "tools/call", `{"name":"Time__raw","arguments":{"result":`+big+`}}`, big)

	later := b.connect(t, "2025-11-25", "{}")
	later.want(t, "tools/call", `{"name":"Time__echo","arguments":{}}`, `{"content":[{"type":"text","text":"arguments.text: required\necho(text: string, …)"}],"isError":true}`)
}

// TestFlatBuiltinTools: flat mode lists two of mcpx's own tools, after all others.
func TestFlatBuiltinTools(t *testing.T) {
	b := flat(t, map[string]any{}, newUpstream(t, "Time"))
	c := b.connect(t, "2025-06-18", "{}")
	if names := c.keys(t, "tools/list", "tools", "name"); !strings.HasSuffix(names, " mcpx__servers mcpx__show_config") || strings.Count(names, "mcpx__") != 2 {
		t.Errorf("names %s", names)
	}
	const described = `"description":"[mcpx] State, number of tools and token cost of every server."`
	if list := c.ask(t, request("tools/list", "")); !strings.Contains(list, described) {
		t.Errorf("the list has no %s", described)
	}
	if got := c.ask(t, request("tools/call", `{"name":"mcpx__servers"}`)); !strings.Contains(got, `"result":{"content":[{"type":"text","text":"Time: ready, `) {
		t.Errorf("mcpx__servers answers %s", got)
	}
	if got := c.ask(t, request("tools/call", `{"name":"mcpx__show_config","arguments":{}}`)); !strings.Contains(got, `"result":{"content":[{"type":"text","text":"{`) {
		t.Errorf("mcpx__show_config answers %s", got)
	}
	for _, name := range []string{"mcpx__schema", "mcpx__read_result"} {
		c.want(t, "tools/call", `{"name":"`+name+`"}`, `{"code":-32601,"message":"Tool '`+name+`' not found","data":{"tool":"`+name+`"}}`)
	}
	if n := b.outcomes()["ok"]; n != 2 {
		t.Errorf("%d calls were counted, want 2", n)
	}
}

func TestFlatResultsAreNotCut(t *testing.T) {
	b := flat(t, map[string]any{"limits": map[string]any{"result_tokens": 100}}, newUpstream(t, "a"))
	c := b.connect(t, "2025-06-18", "{}")
	if got := c.ask(t, request("tools/call", `{"name":"a__large","arguments":{"bytes":100000}}`)); len(got) < 100_000 || strings.Contains(got, "read_result") {
		t.Errorf("a result of %d bytes: %.200s", len(got), got)
	}
}

func TestTransparentProxy(t *testing.T) {
	b := flat(t, map[string]any{"prefix": false}, newUpstream(t, "a", "-full"))
	c := b.connect(t, "2025-06-18", "{}")
	if names := c.keys(t, "tools/list", "tools", "name"); !strings.HasPrefix(names, "echo arguments ") {
		t.Errorf("names %s", names)
	}
	if names := c.keys(t, "prompts/list", "prompts", "name"); names != "plain choice needs" {
		t.Errorf("prompts %s", names)
	}
	c.want(t, "tools/call", `{"name":"echo","arguments":{"text":"hi"}}`, `{"content":[{"type":"text","text":"hi"}]}`)
	c.want(t, "logging/setLevel", `{"level":"info"}`, `{}`)
}

// TestTransparentNames: without a prefix every name stays unchanged.
func TestTransparentNames(t *testing.T) {
	long := strings.Repeat("x", 100)
	file := filepath.Join(t.TempDir(), "tools.json")
	if err := os.WriteFile(file, []byte(`[{"name":"dotted.name","inputSchema":{"type":"object"}},{"name":"日本/a b","inputSchema":{"type":"object"}},{"name":"`+long+`","inputSchema":{"type":"object"}}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	c := flat(t, map[string]any{"prefix": false}, newUpstream(t, "a", "-tools-file", file)).connect(t, "2025-06-18", "{}")
	names := c.keys(t, "tools/list", "tools", "name")
	if want := " dotted.name 日本/a b " + long; !strings.HasSuffix(names, want) || strings.Contains(names, "mcpx__") {
		t.Errorf("names %s, want …%s", names, want)
	}
	for _, name := range []string{"dotted.name", "日本/a b", long} {
		if got := c.ask(t, request("tools/call", `{"name":"`+name+`","arguments":{}}`)); !strings.Contains(got, `"result"`) {
			t.Errorf("%s answers %s", name, got)
		}
	}
}

func TestFlatListChanges(t *testing.T) {
	c := flat(t, map[string]any{}, newUpstream(t, "a", "-full")).connect(t, "2025-06-18", "{}")
	c.keys(t, "tools/list", "tools", "name")
	c.ask(t, request("tools/call", `{"name":"a__change","arguments":{"notices":1,"list":"prompts"}}`)) // which the client has not read
	c.ask(t, request("tools/call", `{"name":"a__change","arguments":{"notices":1}}`))
	if got := c.next(t, "list_changed"); !strings.Contains(got, "notifications/tools/list_changed") {
		t.Errorf("notified with %s", got)
	}
	if got := c.keys(t, "tools/list", "tools", "name"); !strings.Contains(got, "a__extra_0") {
		t.Errorf("tools %s", got)
	}
}

func TestPages(t *testing.T) {
	c := flat(t, map[string]any{}, newUpstream(t, "a", "-tools", "2100")).connect(t, "2025-06-18", "{}")
	seen, pages := map[string]bool{}, 0
	for params := ""; ; pages++ {
		answer := rawjson.Get([]byte(c.ask(t, request("tools/list", params))), "result")
		for item := range rawjson.Elements(rawjson.Get(answer, "tools")) {
			seen[string(rawjson.Get(item, "name"))] = true
		}
		cursor := rawjson.Get(answer, "nextCursor")
		if cursor == nil {
			break
		}
		params = `{"cursor":` + string(cursor) + `}`
	}
	if len(seen) < 2100 || pages != 2 {
		t.Errorf("%d tools on %d pages", len(seen), pages+1)
	}
}

package server

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer"

	"mcpx/executor/listing"
	"mcpx/internal/rawjson"
)

// TestLazyInstructions: clients that defer tools get the names of the servers, others one
// sentence. The same client gets the same bytes.
func TestLazyInstructions(t *testing.T) {
	const names = "MCP servers behind two tools: a, b. "
	for _, row := range []struct {
		client     string
		alwaysLoad bool
		want       string
	}{
		{"", true, shortInstructions},
		{"some-client", true, shortInstructions},
		{"claude-code", true, shortInstructions},
		{"claude-code", false, names},
		{"codex-mcp-client", true, names},
		{"opencode", true, names},
	} {
		s := bare("a", "b")
		s.AlwaysLoad = row.alwaysLoad
		b := &bench{Server: s, client: client(s)}
		info := string(rawjson.AppendString(nil, row.client))
		for _, method := range []string{"initialize", "initialize", "server/discover"} {
			params := `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":` + info + `,"version":"1"}}`
			if method == "server/discover" {
				params = "{" + meta("{}", `,"io.modelcontextprotocol/clientInfo":{"name":`+info+`,"version":"1"}`) + "}"
			}
			answer := b.ask(t, request(method, params))
			if text, _ := rawjson.String(rawjson.Get(rawjson.Get([]byte(answer), "result"), "instructions")); !strings.HasPrefix(text, row.want) {
				t.Errorf("%s, always_load %v, %s: %s, want %s", row.client, row.alwaysLoad, method, answer, row.want)
			}
		}
	}
	encoder, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := encoder.Count(shortInstructions); err != nil || n > 20 {
		t.Errorf("one sentence has %d tokens, %v", n, err)
	}
}

// TestFlatInstructions: flat mode repeats the upstreams' instructions, each within its
// share. A transparent proxy has those of its upstream unchanged.
func TestFlatInstructions(t *testing.T) {
	long := strings.Repeat("Use this server for everything. ", 100)
	b := flat(t, map[string]any{}, newUpstream(t, "a", "-instructions", "\n  Say\n  hello first."), newUpstream(t, "b", "-instructions", long), newUpstream(t, "c"))
	for _, name := range []string{"a", "b", "c"} {
		if _, err := b.registry.For(nil).Ready(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	got := b.instructions(newClient("one", nil))
	lines := strings.Split(got, "\n")
	if len(lines) != 3 || lines[0] != "a: Say hello first." || !strings.HasPrefix(lines[1], "b: Use this server") || lines[2] != "c" {
		t.Errorf("got %s", got)
	}
	if n := utf8.RuneCountInString(got); n > listing.InstructionsLimit || utf8.RuneCountInString(lines[1]) < listing.InstructionsLimit/4 {
		t.Errorf("%d characters", n)
	}
	if none := flat(t, map[string]any{"prefix": false}); none.instructions(newClient("one", nil)) != "" {
		t.Errorf("without servers: %q", none.instructions(newClient("one", nil)))
	}
	single := flat(t, map[string]any{"prefix": false}, newUpstream(t, "a", "-instructions", long))
	if _, err := single.registry.For(nil).Ready(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	hello := single.ask(t, request("initialize", `{"protocolVersion":"2025-06-18"}`))
	if text, _ := rawjson.String(rawjson.Get(rawjson.Get([]byte(hello), "result"), "instructions")); text != long {
		t.Errorf("a transparent proxy says %s", hello)
	}
}

// TestAlwaysLoad: both tools ask to be loaded at once, unless the config says
// otherwise. A model sees no difference.
func TestAlwaysLoad(t *testing.T) {
	const meta = `,"_meta":{"anthropic/alwaysLoad":true}`
	upstreams := named("", "a")
	loaded, deferred := string(lazyTools(upstreams, alwaysLoad)), string(lazyTools(upstreams, ""))
	if strings.Count(loaded, meta) != 2 || strings.ReplaceAll(loaded, meta, "") != deferred {
		t.Errorf("got %s", loaded)
	}
}

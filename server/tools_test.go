package server

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tiktoken-go/tokenizer"

	"mcpx/config"
)

// named returns upstreams of these names, each with the description.
func named(description string, names ...string) (upstreams []*config.Upstream) {
	for _, name := range names {
		upstreams = append(upstreams, &config.Upstream{Name: name, Description: description})
	}
	return upstreams
}

// listTools is the result of tools/list.
func listTools(t *testing.T, s *Server) string {
	t.Helper()
	b := &bench{Server: s, client: client(s)}
	var answer struct{ Result json.RawMessage }
	if err := json.Unmarshal([]byte(b.ask(t, request("tools/list", ""))), &answer); err != nil {
		t.Fatal(err)
	}
	return string(answer.Result)
}

func TestTokensOfTheTwoTools(t *testing.T) {
	encoder, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	count := func(text string) int {
		t.Helper()
		n, err := encoder.Count(text)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if cost := count(listTools(t, bare("time"))) + count(shortInstructions); cost > 220 {
		t.Errorf("one server: %d tokens, want at most 220", cost)
	}
	names := []string{"time", "github", "filesystem", "brave-search", "my server", "数据库", "postgres_main", "a.b.c"}
	before := count(listTools(t, bare(names[0])))
	for i, name := range names[1:] {
		cost := count(listTools(t, bare(names[:i+2]...)))
		if most := before + count(" "+name) + 1; cost > most {
			t.Errorf("%s adds %d tokens, want at most %d", name, cost-before, most-before)
		}
		before = cost
	}
}

// TestToolsListNeverChanges: tools/list is the same bytes from the first answer to the
// last, whatever upstreams do.
func TestToolsListNeverChanges(t *testing.T) {
	b := start(t, newUpstream(t, "a"), newUpstream(t, "exits", "-exit", "1"))
	first := b.ask(t, request("tools/list", "")) // while they start
	for _, ask := range []string{
		`{"name":"exec","arguments":{"server_name":"a","tool_name":"change","arguments":{"notices":20}}}`,
		`{"name":"exec","arguments":{"server_name":"a","tool_name":"crash"}}`,
		`{"name":"inspect","arguments":{"server_name":"a"}}`,
	} {
		b.ask(t, request("tools/call", ask))
		for range 20 {
			if again := b.ask(t, request("tools/list", "")); again != first {
				t.Fatalf("after %s\n got %s\nwant %s", ask, again, first)
			}
		}
	}
	if again := listTools(t, b.Server); !strings.Contains(first, again) {
		t.Errorf("another client gets %s", again)
	}
}

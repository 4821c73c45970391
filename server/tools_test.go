package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

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

func numbered(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("server-%d", i)
	}
	return names
}

func TestDirectory(t *testing.T) {
	const use, search = "List a server's tools, or get one's schema. Servers: ", "mcpx (searches all tools)"
	for _, row := range []struct {
		name      string
		upstreams []*config.Upstream
		want      string
	}{
		{"none", named(""), use + search},
		{"one", named("", "time"), use + "time, " + search},
		{"in config order", named("", "z", "a"), use + "z, a, " + search},
		{"described", named("Tells the time", "time"), use + "time (Tells the time), " + search},
		{"hostile", named("a\nb\x1b[31m\u202e", "x"), use + `x (a\nb\u001b[31m\u202e), ` + search},
		{"descriptions go before names", named(strings.Repeat("d", 500), "a", "b", "c", "d"), use + "a, b, c, d, " + search},
		{"one huge description", named(strings.Repeat("d", 5000), "a"), use + "a, " + search},
	} {
		if got := directory(row.upstreams); got != row.want {
			t.Errorf("%s:\n got %s\nwant %s", row.name, got, row.want)
		}
	}
}

// TestDirectoryOfMany: with many servers the directory stays short, has whole names in
// order, and says how to see the others.
func TestDirectoryOfMany(t *testing.T) {
	for _, row := range []struct {
		names       []string
		description string
	}{
		{numbered(1000), ""},
		{numbered(1000), "Something that it does"},
		{numbered(1000), "hostile\n\x1b[2J\u2028"},
		{numbered(170), "x"},
		{[]string{strings.Repeat("名", 64), strings.Repeat("é", 64), "b"}, strings.Repeat("描", 2000)},
	} {
		text := directory(named(row.description, row.names...))
		if len(text) > 2048 || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
			t.Errorf("%d servers: %d bytes: %q", len(row.names), len(text), text)
		}
		_, list, _ := strings.Cut(text, "Servers: ")
		shown := strings.Split(list, ", ")
		last := shown[len(shown)-1]
		for i, name := range shown[:len(shown)-1] {
			if name, _, _ := strings.Cut(name, " ("); name != row.names[i] {
				t.Fatalf("%d servers: number %d is %q, want %q", len(row.names), i, name, row.names[i])
			}
		}
		want := "mcpx (searches all tools)"
		if missing := len(row.names) - (len(shown) - 1); missing > 0 {
			want = fmt.Sprintf(`mcpx (searches all tools; inspect("mcpx") lists %d more servers)`, missing)
		}
		if last != want {
			t.Errorf("%d servers, %d shown: the last is %q", len(row.names), len(shown)-1, last)
		}
		if len(row.names) == 1000 && len(text) < 2000 {
			t.Errorf("%d bytes of 2048 are used", len(text))
		}
	}
}

// TestDirectoryIsAsFullAsItMayBe: nothing is dropped before the limit is reached to
// the byte.
func TestDirectoryIsAsFullAsItMayBe(t *testing.T) {
	base := len(directory(named("", "a")))
	fits := named(strings.Repeat("d", directoryLimit-base-len(" ()")), "a")
	if got := len(directory(fits)); got != directoryLimit {
		t.Errorf("%d bytes, want %d", got, directoryLimit)
	}
	fits[0].Description += "d"
	if got := len(directory(fits)); got != base {
		t.Errorf("%d bytes, want %d", got, base)
	}
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
	if cost := count(listTools(t, bare("time"))); cost > 150 {
		t.Errorf("one server: %d tokens, want at most 150", cost)
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

package listing

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mcpx/config"
	"mcpx/internal/tokens"
	"mcpx/registry"
	"mcpx/registry/lists"
	"mcpx/registry/live"
)

// manyTools are tools whose names share a part by hundreds, so that a glob can
// narrow them.
func manyTools(t testing.TB, n int) []*lists.Tool {
	tools := make([]*lists.Tool, n)
	for i := range tools {
		tools[i] = tool(t, fmt.Sprintf(`{"name":"group%d_tool_%d","description":"%d is the number of this tool. More of it.","inputSchema":{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer","default":%d}},"required":["query"]}}`, i/100, i, i, i))
	}
	return tools
}

func names(tools []*lists.Tool) []string {
	var names []string
	for _, t := range tools {
		names = append(names, t.Name)
	}
	return names
}

func TestListingSteps(t *testing.T) {
	const n = 40
	u := upstreamOf("srv", manyTools(t, n))
	u.Instructions = "\n    Ask\n    nicely."
	const head = "srv: 40 tools; Ask nicely."
	const hint = `… shortened; more: inspect("srv", "word*") or inspect("srv", "tool")`
	const more = `more: inspect("srv", "word*"), or exec("mcpx", "search", {"query": …})`
	full, typed, short, bare := []string{head}, []string{head}, []string{head}, []string{head}
	for i := range n {
		full = append(full, fmt.Sprintf("group0_tool_%d(query: string, limit?: integer = %d): %d is the number of this tool", i, i, i))
		typed = append(typed, fmt.Sprintf("group0_tool_%d(query: string, …): %d is the number of this tool", i, i))
		short = append(short, fmt.Sprintf("group0_tool_%d(query, …)", i))
		bare = append(bare, fmt.Sprintf("group0_tool_%d", i))
	}
	typed, short, names := append(typed, hint), append(short, hint), append(bare, hint)
	cost := func(lines []string) int { return tokens.Count(strings.Join(lines, "\n")) }
	for _, row := range []struct {
		name   string
		budget int
		want   []string
	}{
		{"everything", 4000, full},
		{"just everything", cost(full), full},
		{"not quite everything", cost(full) - 1, typed},
		{"just the types", cost(typed), typed},
		{"not quite the types", cost(typed) - 1, short},
		{"just what is required", cost(short), short},
		{"not quite what is required", cost(short) - 1, names},
		{"just the names", cost(names), names},
	} {
		if got, want := listing(u, u.Tools, row.budget), strings.Join(row.want, "\n"); got != want {
			t.Errorf("%s (%d):\n got %s\nwant %s", row.name, row.budget, got, want)
		}
	}
	page := strings.Split(listing(u, u.Tools, cost(names)-1), "\n")
	shown := page[:len(page)-1]
	if want := fmt.Sprintf("… %d %s", n+1-len(shown), more); len(shown) < n/2 || !slices.Equal(shown, bare[:len(shown)]) || page[len(page)-1] != want {
		t.Errorf("not quite the names: %q, want at least half of them and then %q", page, want)
	}
}

// A listing never costs more than its budget, has the upstream's order, is the
// same each time, and says of every tool that it left out.
func TestListingsKeepToTheirBudget(t *testing.T) {
	for _, n := range []int{0, 1, 10, 1000, 10_000} {
		u := upstreamOf("srv", manyTools(t, n))
		u.Instructions = strings.Repeat("Do this, then that. ", 10)
		for _, budget := range []int{200, 250, 400, 1000, 4000, 20_000, 1_000_000} {
			text := listing(u, u.Tools, budget)
			if cost := tokens.Count(text); cost > budget {
				t.Errorf("%d tools, %d tokens: the listing costs %d", n, budget, cost)
			}
			if again := listing(u, u.Tools, budget); again != text {
				t.Errorf("%d tools, %d tokens: two listings differ", n, budget)
			}
			shown, more := 0, 0
			for _, line := range strings.Split(text, "\n")[1:] {
				if _, err := fmt.Sscanf(line, "… %d more: ", &more); err == nil || line == "" || strings.HasPrefix(line, "… shortened") {
					continue
				}
				name, _, _ := strings.Cut(line, "(")
				if name != u.Tools[shown].Name {
					t.Fatalf("%d tools, %d tokens: line %d is %q, want %q", n, budget, shown, line, u.Tools[shown].Name)
				}
				shown++
			}
			if shown+more != n {
				t.Errorf("%d tools, %d tokens: %d are shown and %d are said to be left out", n, budget, shown, more)
			}
		}
	}
}

// The smallest budget that a config may set holds as well.
func TestListingsKeepToTheSmallestBudget(t *testing.T) {
	const least = 100 // limits.inspect_tokens
	u := upstreamOf(strings.Repeat("名", 64), manyTools(t, 1000))
	u.Instructions = strings.Repeat("Do this, then that. ", 100)
	if cost := tokens.Count(listing(u, u.Tools, least)); cost > least {
		t.Errorf("a listing costs %d of %d tokens", cost, least)
	}
	down := upstreamOf("srv", manyTools(t, 1000))
	down.State, down.Reason = live.Waiting, strings.Repeat("something went wrong, ", 1000)
	if cost := tokens.Count(listing(down, down.Tools, 4000)); cost > 4000 {
		t.Errorf("a listing with a long reason costs %d of 4000 tokens", cost)
	}
}

// One odd name does not hide the tools behind it.
func TestAHugeNameCostsOnlyItself(t *testing.T) {
	tools := append([]*lists.Tool{tool(t, `{"name":"`+strings.Repeat("huge", 25_000)+`"}`)}, manyTools(t, 10)...)
	u := upstreamOf("srv", tools)
	text := listing(u, u.Tools, 4000)
	if cost := tokens.Count(text); cost > 4000 {
		t.Errorf("the listing costs %d tokens", cost)
	}
	for _, t2 := range tools[1:] {
		if !strings.Contains(text, "\n"+t2.Name) {
			t.Errorf("%s is not in the listing: %.300s", t2.Name, text)
		}
	}
}

func TestEveryToolIsReachedByAGlob(t *testing.T) {
	u := upstreamOf("srv", manyTools(t, 10_000))
	for group := range 100 {
		pattern := fmt.Sprintf("group%d_*", group)
		found := match(u, pattern)
		if want := u.Tools[group*100 : group*100+100]; !slices.Equal(found, want) {
			t.Fatalf("%s matches %v", pattern, names(found))
		}
		text := listing(u, found, 4000)
		if head := "srv: 10,000 tools, 100 shown\n"; !strings.HasPrefix(text, head) || tokens.Count(text) > 4000 {
			t.Fatalf("%s: the listing begins with %.50q and costs %d", pattern, text, tokens.Count(text))
		}
		for _, f := range found {
			if !strings.Contains(text, "\n"+f.Name+"(query") {
				t.Fatalf("%s: %s is not in the listing", pattern, f.Name)
			}
		}
	}
}

func TestMatch(t *testing.T) {
	var tools []*lists.Tool
	for _, name := range []string{"issue_list", "issue_get", "pr_list", "fs/read", "a,b", "we[i]rd", "naïve", ""} {
		if name != "" {
			tools = append(tools, tool(t, fmt.Sprintf(`{"name":%q}`, name)))
		}
	}
	u := upstreamOf("srv", tools)
	for pattern, want := range map[string]string{
		"issue*":               "[issue_list issue_get]",
		"*list":                "[issue_list pr_list]",
		"*_*":                  "[issue_list issue_get pr_list]",
		"??_list":              "[pr_list]",
		"[ip]*list":            "[issue_list pr_list]",
		"issue_get":            "[issue_get]",
		"pr_list,issue_get":    "[issue_get pr_list]", // in the order of the upstream
		"pr_list , issue_get ": "[issue_get pr_list]",
		"pr_*, issue_*":        "[issue_list issue_get pr_list]",
		"issue_*,issue_get":    "[issue_list issue_get]", // each once
		"we[i]rd":              "[we[i]rd]",
		"na?ve":                "[naïve]",
		"fs*":                  "[fs/read]", // a name is no path
		"*":                    "[issue_list issue_get pr_list fs/read a,b we[i]rd naïve]",
		"fs/*":                 "[fs/read]",
		"":                     "[]",
		",":                    "[]",
		"[":                    "[]",
		"Issue*":               "[]",
		"nothing":              "[]",
	} {
		if got := fmt.Sprint(names(match(u, pattern))); got != want {
			t.Errorf("match(%q) = %s, want %s", pattern, got, want)
		}
	}
}

// Nothing that an upstream writes breaks a line or steers a terminal.
func TestHostileToolsStayOnTheirLine(t *testing.T) {
	u := upstreamOf("srv", []*lists.Tool{
		tool(t, `{"name":"a\nb\u001b[2J","description":"x\u2028y\u0007","inputSchema":{"type":"object","properties":{"p\nq":{"description":"\n"},"\u202e":{}},"required":["p\nq"]}}`),
		tool(t, `{"name":"c","description":{"not":"text"},"inputSchema":"no schema"}`),
	})
	u.Instructions = "i\n\u001b]0;title\u0007"
	want := `srv: 2 tools; i \u001b]0;title\u0007` + "\n" +
		`a\nb\u001b[2J(` + u.Tools[0].Signature() + `): x\u2028y\u0007` + "\n" +
		`c(` + u.Tools[1].Signature() + `)`
	if got := listing(u, u.Tools, 4000); got != want {
		t.Errorf("listing\n%q\nwant\n%q", got, want)
	}
	if strings.ContainsAny(u.Tools[0].Signature(), "\n\u202e") {
		t.Errorf("the signature is %q", u.Tools[0].Signature())
	}
}

func TestHeadings(t *testing.T) {
	u := upstreamOf("srv", manyTools(t, 1))
	if got, want := heading(u, 1, 4000), "srv: 1 tool\n"; got != want {
		t.Errorf("heading %q, want %q", got, want)
	}
	u.Instructions = strings.Repeat("é", 500)
	if got, want := heading(u, 0, 4000), "srv: 1 tool, 0 shown; "+strings.Repeat("é", 298)+"…\n"; got != want {
		t.Errorf("heading %q, want %q", got, want)
	}
	u.State, u.Reason, u.Instructions = live.Waiting, "exited with status 1", ""
	if got, want := heading(u, 1, 4000), "srv: 1 tool (waiting: exited with status 1)\n"; got != want {
		t.Errorf("heading %q, want %q", got, want)
	}
	u.State, u.Reason = live.Starting, ""
	if got, want := heading(u, 1, 4000), "srv: 1 tool (starting)\n"; got != want {
		t.Errorf("heading %q, want %q", got, want)
	}
}

// TestListingsAreMadeOnce: as long as neither the upstream nor the limit changes.
func TestListingsAreMadeOnce(t *testing.T) {
	const budget = 4000
	catalog := registry.New(&config.Profile{Upstreams: []config.Upstream{{Name: "a"}}}, registry.Options{}).Catalog()
	u := catalog.Upstream("a")
	first := Whole(catalog, u, budget)
	kept := catalog.Derived(listingKey{"a", budget}, func(*registry.Catalog) any { return "made again" })
	if kept != first {
		t.Errorf("%q, want %q", kept, first)
	}
	next := *u
	next.Reason, next.State = "it has failed", live.Waiting
	if text := Whole(catalog, &next, budget); !strings.Contains(text, "it has failed") {
		t.Errorf("not made anew: %q", text)
	}
	if text := Whole(catalog, u, 10); tokens.Exceeds(text, 10) {
		t.Errorf("not made anew with another limit: %q", text)
	}
}

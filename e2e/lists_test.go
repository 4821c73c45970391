package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mcpx/internal/mcptest"
	"mcpx/internal/tokens"
)

// flat returns a config in flat mode.
func flat(upstreams map[string]any) map[string]any {
	return map[string]any{"expose": "flat", "mcpServers": upstreams}
}

// TestListChangesAreAnnounced is 8.1, 8.2 and 7.2 of seed 001: a client that lists
// again when it is notified finds the new item, and 200 notices cause at most 2 lists.
func TestListChangesAreAnnounced(t *testing.T) {
	t.Parallel()
	p := start(t, flat(map[string]any{"one": mcptest.Upstream(t, "-full")}), options{})
	p.initialize()
	// Every change adds an item of its own, so that no round finds the item of an
	// earlier one. The last change of a round is to another list: a refresh that
	// is still to come comes before it, or with it.
	for _, c := range []struct{ list, added, other, last string }{
		{"tools", `"one__extra_0"`, "prompts", `"one__more_0"`},
		{"prompts", `"one__more_1"`, "resources", `"more://0"`},
		{"resources", `"more://1"`, "tools", `"one__extra_1"`},
	} {
		count := func() int {
			n, err := strconv.Atoi(p.call("one__lists", fmt.Sprintf(`{"method":"%s/list"}`, c.list)))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		before := count()
		p.call("one__change", fmt.Sprintf(`{"notices":200,"list":%q}`, c.list))
		p.listUntil(c.list, c.added)
		p.call("one__change", fmt.Sprintf(`{"notices":1,"list":%q}`, c.other))
		p.listUntil(c.other, c.last)
		if lists := count() - before; lists < 1 || lists > 2 {
			t.Errorf("200 notices of %s caused %d lists, want 1 or 2", c.list, lists)
		}
		for _, m := range p.received("notifications/" + c.list + "/list_changed") {
			if want := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/%s/list_changed"}`, c.list); m.line != want {
				t.Errorf("notified with %s, want %s", m.line, want)
			}
		}
	}
}

// TestListsHavePages is 8.2 of seed 001: a client that follows the cursors of any list
// gets every item once.
func TestListsHavePages(t *testing.T) {
	t.Parallel()
	const items = 2345
	lists := []struct{ method, member, item, sizes string }{
		{"tools/list", "tools", `{"name":"item_%d","inputSchema":{"type":"object"}}`, "[1000 1000 347]"}, // with mcpx__servers and mcpx__show_config
		{"prompts/list", "prompts", `{"name":"item_%d"}`, "[1000 1000 345]"},
		{"resources/list", "resources", `{"uri":"list://item_%d","name":"n"}`, "[1000 1000 345]"},
		{"resources/templates/list", "resourceTemplates", `{"uriTemplate":"list://item_%d/{x}","name":"n"}`, "[1000 1000 345]"},
	}
	answers := map[string]any{}
	for _, l := range lists {
		var all []json.RawMessage
		for i := range items {
			all = append(all, fmt.Appendf(nil, l.item, i))
		}
		answers[l.method] = map[string]any{"result": map[string]any{l.member: all}}
	}
	p := start(t, flat(map[string]any{"one": mcptest.Upstream(t, "-full", "-answers", answersFile(t, answers))}), options{})
	p.initialize()
	p.waitStderr("upstream ready") // some lists wait 3 s for that, others 10
	for _, l := range lists {
		var got []string
		var sizes []int
		for params := "{}"; params != ""; {
			var page map[string]json.RawMessage
			if err := json.Unmarshal([]byte(p.result(l.method, params)), &page); err != nil {
				t.Fatal(err)
			}
			var list []struct{ Name, URI, URITemplate string }
			if err := json.Unmarshal(page[l.member], &list); err != nil {
				t.Fatal(err)
			}
			for _, item := range list {
				got = append(got, item.Name+item.URI+item.URITemplate)
			}
			sizes = append(sizes, len(list))
			params = ""
			if cursor := page["nextCursor"]; cursor != nil {
				params = `{"cursor":` + string(cursor) + `}`
			}
		}
		slices.Sort(got)
		if n := len(slices.Compact(slices.Clone(got))); n != len(got) || fmt.Sprint(sizes) != l.sizes {
			t.Errorf("%s: %d different items of %d in pages of %v, want %s", l.method, n, len(got), sizes, l.sizes)
		}
		if m := p.request(l.method, `{"cursor":"no such page"}`); !strings.Contains(string(m.Error), `"code":-32602`) {
			t.Errorf("%s with an invented cursor: %s%s", l.method, clip(string(m.Result)), m.Error)
		}
	}
}

// TestFlatListWaitsForStarts: tools/list in flat mode waits 10 s at most for upstreams
// that start. The tools of one that takes longer are announced.
func TestFlatListWaitsForStarts(t *testing.T) {
	t.Parallel()
	p := start(t, flat(map[string]any{
		"quick": mcptest.Upstream(t), "slow": mcptest.Upstream(t, "-start-delay", "2s"),
		"late": mcptest.Upstream(t, "-start-delay", "20s"), "dead": mcptest.Upstream(t, "-exit", "1"),
	}), options{})
	p.initialize()
	begin := time.Now()
	p.send(`"list"`, "tools/list", "")
	p.result("ping", "")
	got := string(p.answer(`"list"`).Result)
	within(t, "tools/list", time.Since(begin), 15*time.Second)
	p.mu.Lock()
	if last := p.order[len(p.order)-1]; string(last.ID) != `"list"` {
		t.Errorf("%s was answered after the list, which alone waits", last.ID)
	}
	p.mu.Unlock()
	for name, want := range map[string]bool{"quick__echo": true, "slow__echo": true, "late__echo": false, "dead__echo": false} {
		if strings.Contains(got, `"`+name+`"`) != want {
			t.Errorf("after %s the list has %s: %t, want %t", time.Since(begin), name, !want, want)
		}
	}
	p.listUntil("tools", `"late__echo"`)
	if got := p.call("late__echo", `{"text":"here"}`); got != "here" {
		t.Errorf("got %q", got)
	}
}

// TestInspectIsBounded: a listing of thousands of tools keeps to limits.inspect_tokens,
// and says that tools are left out. Each of them can still be inspected.
func TestInspectIsBounded(t *testing.T) {
	t.Parallel()
	u := mcptest.Upstream(t, "-tools", "5000", "-page-size", "100")
	u["tools"] = map[string]any{"allow": []string{"extra_*"}}
	p := serve(t, map[string]any{"many": u})
	p.initialize()
	got := p.inspect("many", "")
	lines := strings.Split(got, "\n")
	if n := tokens.Count(got); n > 4000 || len(lines) < 100 || lines[0] != "many: 5,000 tools" || lines[1] != "extra_0" || !strings.HasPrefix(lines[len(lines)-1], "… ") {
		t.Errorf("%d lines, about %d tokens:\n%s", len(lines), n, clip(got))
	}
	if text := p.inspect("many", "extra_4999"); !strings.HasPrefix(text, `{"name":"extra_4999",`) {
		t.Errorf("one of many: %s", text)
	}
}

// answersFile writes the file that mcptest's flag -answers reads.
func answersFile(t *testing.T, answers map[string]any) (path string) {
	t.Helper()
	return writeJSON(t, "answers.json", answers)
}

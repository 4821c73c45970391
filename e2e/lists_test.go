package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// flat is a config in flat mode.
func flat(upstreams map[string]any) map[string]any {
	return map[string]any{"expose": "flat", "mcpServers": upstreams}
}

// TestChangedListsAreAnnounced is 8.1, 8.2 and 7.2 (more of resources) of seed 001:
// a client that lists again when it is told to has the item that was added.
func TestChangedListsAreAnnounced(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, list, added string }{
		{"seed 001, 8.1 tools", "tools", `"name":"one__extra_0"`},
		{"seed 001, 8.2 prompts", "prompts", `"name":"one__more_0"`},
		{"seed 001, 7.2 resources", "resources", `"uri":"more://0"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := start(t, flat(map[string]any{"one": mcptest.Upstream(t, "-full")}), options{})
			p.initialize()
			if got := p.result(c.list+"/list", "{}"); strings.Contains(got, c.added) {
				t.Fatalf("the list has what was not added: %s", got)
			}
			p.call("one__change", fmt.Sprintf(`{"notices":1,"list":%q}`, c.list))
			p.until(c.list, c.added)
			for _, m := range p.told("notifications/" + c.list + "/list_changed") {
				if want := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/%s/list_changed"}`, c.list); m.line != want {
					t.Errorf("told %s, want %s", m.line, want)
				}
			}
		})
	}
}

// TestLazyToolsNeverChange: a client in lazy mode hears of prompts, not of tools.
func TestLazyToolsNeverChange(t *testing.T) {
	t.Parallel()
	p := serve(t, map[string]any{"one": mcptest.Upstream(t, "-full")})
	p.initialize()
	before := p.result("tools/list", "")
	p.exec("one", "change", `{"notices":5}`)
	p.exec("one", "change", `{"notices":5,"list":"prompts"}`)
	p.until("prompts", `"one__more_0"`) // one refresh takes all lists, tools first
	if got := p.result("tools/list", ""); got != before {
		t.Errorf("tools/list went from\n%s\nto\n%s", before, got)
	}
	if got := p.told("notifications/tools/list_changed"); len(got) > 0 {
		t.Errorf("told of %d changes of the two tools", len(got))
	}
}

// TestFloodOfListChanges: 200 notices cause at most 2 lists.
func TestFloodOfListChanges(t *testing.T) {
	t.Parallel()
	p := start(t, flat(map[string]any{"one": mcptest.Upstream(t, "-full")}), options{})
	p.initialize()
	// Every change adds an item of its own, so that what a round waits for was not
	// there before it. The last change of a round is of another list: a refresh that
	// was still to come comes before it, or with it.
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
		p.until(c.list, c.added)
		p.call("one__change", fmt.Sprintf(`{"notices":1,"list":%q}`, c.other))
		p.until(c.other, c.last)
		if lists := count() - before; lists < 1 || lists > 2 {
			t.Errorf("200 notices of %s caused %d lists, want 1 or 2", c.list, lists)
		}
	}
}

// TestPagesOfLists is 8.2 of seed 001 (1,000 items and more): every list on the
// front has pages, and a client that follows the cursors has every item once.
func TestPagesOfLists(t *testing.T) {
	t.Parallel()
	const items = 2345
	answers := map[string]any{}
	for _, l := range []struct{ method, member, item string }{
		{"tools/list", "tools", `{"name":"item_%d","inputSchema":{"type":"object"}}`},
		{"prompts/list", "prompts", `{"name":"item_%d"}`},
		{"resources/list", "resources", `{"uri":"list://item_%d","name":"n"}`},
		{"resources/templates/list", "resourceTemplates", `{"uriTemplate":"list://item_%d/{x}","name":"n"}`},
	} {
		var all []json.RawMessage
		for i := range items {
			all = append(all, fmt.Appendf(nil, l.item, i))
		}
		answers[l.method] = map[string]any{"result": map[string]any{l.member: all}}
	}
	p := start(t, flat(map[string]any{"one": mcptest.Upstream(t, "-full", "-answers", answersFile(t, answers))}), options{})
	p.initialize()
	p.waitStderr("upstream ready") // some lists wait 3 s for that, others 10
	for method, member := range map[string]string{
		"tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources", "resources/templates/list": "resourceTemplates",
	} {
		begin := time.Now()
		var got, sizes []string
		params := "{}"
		for params != "" {
			var page map[string]json.RawMessage
			if err := json.Unmarshal([]byte(p.result(method, params)), &page); err != nil {
				t.Fatal(err)
			}
			var list []struct{ Name, URI, URITemplate string }
			if err := json.Unmarshal(page[member], &list); err != nil {
				t.Fatal(err)
			}
			for _, item := range list {
				got = append(got, strings.TrimPrefix(item.Name, "one__")+item.URI+item.URITemplate)
			}
			sizes = append(sizes, strconv.Itoa(len(list)))
			params = ""
			if cursor := page["nextCursor"]; cursor != nil {
				params = `{"cursor":` + string(cursor) + `}`
			}
		}
		slices.Sort(got)
		want, pages := items, "1000 1000 345"
		if method == "tools/list" { // with mcpx__servers and mcpx__show_config
			want, pages = items+2, "1000 1000 347"
		}
		if got = slices.Compact(got); len(got) != want || strings.Join(sizes, " ") != pages {
			t.Errorf("%s: %d different items in pages of %v, want %d in %s", method, len(got), sizes, want, pages)
		}
		within(t, method, time.Since(begin), patience/2)
		for _, cursor := range []string{`"no such page"`, `""`, `"bWNweDotMQ"`, `"bWNweDp4"`, `5`, `{}`} { // mcpx:-1 and mcpx:x are among them
			m := p.request(method, `{"cursor":`+cursor+`}`)
			if want := `{"code":-32602,"message":"Invalid params: \"cursor\" is not one that mcpx gave","data":{"detail":"\"cursor\" is not one that mcpx gave"}}`; string(m.Error) != want {
				t.Errorf("%s with cursor %s: got %s%s, want %s", method, cursor, clip(string(m.Result)), m.Error, want)
			}
		}
	}
}

// answersFile writes what mcptest's -answers reads.
func answersFile(t *testing.T, answers map[string]any) (path string) {
	t.Helper()
	text, err := json.Marshal(answers)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "answers.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

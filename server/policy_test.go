package server

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"

	"mcpx/config"
	"mcpx/internal/policy"
)

// grove is a bench with three servers. Each has a tool that reads and a tool that writes,
// whose names no other server has, and prompts and resources.
func grove(t testing.TB) *bench {
	t.Helper()
	var upstreams []map[string]any
	for _, name := range trees {
		file := filepath.Join(t.TempDir(), "tools.json")
		tools := fmt.Sprintf(`[{"name":"%[1]s_get","description":"Look at the %[1]s","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},
			{"name":"%[1]s_put","description":"Change the %[1]s","inputSchema":{"type":"object"}}]`, name)
		if err := os.WriteFile(file, []byte(tools), 0o600); err != nil {
			t.Fatal(err)
		}
		u := newUpstream(t, name, "-full", "-name", name, "-tools-file", file, "-instructions", "Prefer "+name+"_put.")
		u["tools"] = map[string]any{"allow": []string{name + "_*"}}
		u["description"] = "All about " + name
		upstreams = append(upstreams, u)
	}
	b := start(t, upstreams...)
	for _, name := range trees {
		if _, err := b.registry.For(nil).Ready(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

var trees = []string{"alder", "birch", "cedar"}

// hiddenNames returns the names that must not occur in anything that a caller gets.
func hiddenNames(r *policy.Rules) (names []string) {
	for _, server := range trees {
		if !r.HasServer("default", server) {
			names = append(names, server)
		}
		if !r.HasAllOf("default", server) {
			names = append(names, server+"__plain", "own://"+server)
		}
		for tool, reads := range map[string]bool{server + "_get": true, server + "_put": false} {
			if !r.HasTool(policy.Tool{Profile: "default", Server: server, Name: tool, ReadOnly: reads}) {
				names = append(names, tool)
			}
		}
	}
	return names
}

// probes are requests that could reveal something. Names in them are misspelled, so that
// suggestions are asked for, and a hidden name in the response is not an echo.
func probes() []string {
	call := func(name, arguments string) string {
		return request("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, arguments))
	}
	all := []string{
		request("initialize", `{"protocolVersion":"2025-06-18","capabilities":{}}`), request("tools/list", ""), request("prompts/list", ""),
		request("resources/list", ""), request("resources/templates/list", ""), call("inspect", `{"server_name":"mcpx"}`), call("inspect", `{}`),
		call("exec", `{"server_name":"mcpx","tool_name":"servers"}`), call("exec", `{"server_name":"mcpx","tool_name":"show_config"}`),
		call("mcpx__servers", `{}`), call("mcpx__show_config", `{}`),
		request("server/discover", "{"+meta("{}", "")+"}"),
	}
	for _, name := range trees {
		typo := name[:2] + "x" + name[2:]
		all = append(all,
			call("inspect", fmt.Sprintf(`{"server_name":%q}`, typo)), call("exec", fmt.Sprintf(`{"server_name":%q,"tool_name":"x"}`, typo)),
			call("exec", fmt.Sprintf(`{"tool_name":"%s.gett"}`, typo)), call(typo+"_get", `{}`), call(typo+"__get", `{}`),
			call("exec", fmt.Sprintf(`{"server_name":"mcpx","tool_name":"schema","arguments":{"server":%q,"tool":"gett"}}`, typo)),
			request("prompts/get", fmt.Sprintf(`{"name":"%s__plain"}`, typo)), request("resources/read", fmt.Sprintf(`{"uri":"own:/%s"}`, typo)),
			request("completion/complete", fmt.Sprintf(`{"ref":{"type":"ref/prompt","name":"%s__plain"},"argument":{"name":"a","value":""}}`, typo)),
		)
	}
	return all
}

// seenProbes are requests about a server that the caller sees.
func seenProbes(name string) []string {
	call := func(tool, arguments string) string {
		return request("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, arguments))
	}
	var all []string
	for _, tool := range []string{"", "*", "*_p*", name + "_gut", "gat,*", "nothing"} {
		all = append(all, call("inspect", fmt.Sprintf(`{"server_name":%q,"tool_name":%q}`, name, tool)), call("exec", fmt.Sprintf(`{"server_name":%q,"tool_name":%q}`, name, tool)))
	}
	return append(all, call("exec", fmt.Sprintf(`{"server_name":"mcpx","tool_name":"schema","arguments":{"server":%q,"tool":"put"}}`, name)))
}

// FuzzPolicy: whatever the rules are, no path names what they do not grant, and no path
// reaches it.
func FuzzPolicy(f *testing.F) {
	for _, allow := range []string{"", "*", "default", "default/alder", "default/birch/birch_get", "default/*/*_put", "default/[ab]*", "other/*", "default/cedar default/*/*_get"} {
		f.Add(allow, false)
		f.Add(allow, true)
	}
	// go test -fuzz waits for signals. The goroutine of that would count as left behind.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	signal.Stop(signals)
	b := grove(f)
	servers := map[string]*Server{"lazy": b.Server, "flat": b.Exposing(config.Flat)}
	f.Fuzz(func(t *testing.T, allow string, readOnly bool) {
		rules := policy.Union(policy.Grant{Allow: strings.Fields(allow), ReadOnly: readOnly})
		for mode, s := range servers {
			c := s.NewSessionlessClient("fuzz", "fuzz").As(&policy.Caller{ID: "fuzz", Name: "fuzz", Rules: rules})
			c.Send = func([]byte) error { return nil }
			ask := func(message string) string {
				answered := make(chan []byte, 1)
				s.Handle(t.Context(), c, Read([]byte(message)), func(answer []byte) { answered <- answer })
				return string(<-answered)
			}
			all := probes()
			for _, name := range trees {
				if rules.HasServer("default", name) {
					all = append(all, seenProbes(name)...)
				}
			}
			hidden := hiddenNames(rules)
			for _, message := range all {
				answer := ask(message)
				for _, name := range hidden {
					if strings.Contains(answer, name) {
						t.Fatalf("%s, %q, read only %t: %s reveals %s: %s", mode, allow, readOnly, message, name, answer)
					}
				}
			}
			for _, name := range hidden {
				checkUnreachable(t, b, name, ask)
			}
		}
	})
}

// checkUnreachable asks for a hidden name as it is, on every path.
func checkUnreachable(t *testing.T, b *bench, name string, ask func(message string) string) {
	t.Helper()
	b.mu.Lock()
	b.events = nil
	b.mu.Unlock()
	server, _, _ := strings.Cut(strings.TrimPrefix(name, "own://"), "_")
	for _, params := range []string{
		fmt.Sprintf(`{"name":"exec","arguments":{"server_name":%q,"tool_name":%q}}`, server, name),
		fmt.Sprintf(`{"name":"exec","arguments":{"tool_name":"%s__%s"}}`, server, name),
		fmt.Sprintf(`{"name":"%s__%s","arguments":{}}`, server, name),
		fmt.Sprintf(`{"name":%q,"arguments":{}}`, name),
		fmt.Sprintf(`{"name":"inspect","arguments":{"server_name":%q,"tool_name":%q}}`, server, name),
		fmt.Sprintf(`{"name":"exec","arguments":{"server_name":"mcpx","tool_name":"schema","arguments":{"server":%q,"tool":%q}}}`, server, name),
	} {
		answer := ask(request("tools/call", params))
		if !strings.Contains(answer, `"error":`) && !strings.Contains(answer, `"isError":true`) || strings.Contains(answer, "inputSchema") {
			t.Fatalf("%s: %s", params, answer)
		}
	}
	for method, params := range map[string]string{
		"prompts/get":         fmt.Sprintf(`{"name":%q}`, name),
		"resources/read":      fmt.Sprintf(`{"uri":%q}`, name),
		"resources/subscribe": fmt.Sprintf(`{"uri":"mcpx://%s/own://%s"}`, server, server),
		"completion/complete": fmt.Sprintf(`{"ref":{"type":"ref/prompt","name":%q},"argument":{"name":"a","value":""}}`, name),
	} {
		if strings.HasPrefix(method, "resources/") && strings.Contains(name, "_") {
			continue
		}
		isPrompt := strings.HasSuffix(name, "__plain") && !strings.HasPrefix(method, "resources/")
		if answer := ask(request(method, params)); strings.Contains(answer, "of "+server) || isPrompt && !strings.Contains(answer, `"error":`) {
			t.Fatalf("%s %s: %s", method, params, answer)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.events {
		if e.Outcome != "not_found" && (e.Tool == name || e.Server == server && name == server) {
			t.Fatalf("%s was reached: %+v", name, e)
		}
	}
}

// TestGrantedToolsWork: what the rules grant works as without rules.
func TestGrantedToolsWork(t *testing.T) {
	b := grove(t)
	b.client = b.client.As(&policy.Caller{ID: "ci", Name: "ci", Rules: policy.Union(policy.Grant{Allow: []string{"default/alder"}, ReadOnly: true}, policy.Grant{Allow: []string{"default/birch/birch_put"}})})
	first := b.ask(t, request("tools/list", ""))
	var list struct {
		Result struct {
			Tools []struct{ Description string }
		}
	}
	if err := json.Unmarshal([]byte(first), &list); err != nil {
		t.Fatal(err)
	}
	if want := "List a server's tools (tool_name \"issue*\" narrows), or get one's schema. Servers: alder (All about alder), birch (All about birch), mcpx (searches all tools)"; list.Result.Tools[0].Description != want {
		t.Errorf("directory %q", list.Result.Tools[0].Description)
	}
	for _, server := range trees[:2] {
		granted, denied := "alder_get", "alder_put"
		if server == "birch" {
			granted, denied = "birch_put", "birch_get"
		}
		answer := b.ask(t, request("tools/call", fmt.Sprintf(`{"name":"inspect","arguments":{"server_name":%q}}`, server)))
		if !strings.Contains(answer, granted) || strings.Contains(answer, denied) || !strings.Contains(answer, "1 tool") {
			t.Errorf("%s", answer)
		}
	}
	b.events = nil
	b.ask(t, request("tools/call", `{"name":"exec","arguments":{"server_name":"alder","tool_name":"alder_get","arguments":{}}}`))
	b.ask(t, request("tools/call", `{"name":"exec","arguments":{"server_name":"alder","tool_name":"alder_put","arguments":{}}}`))
	if len(b.events) != 2 || b.events[0].Outcome == "not_found" || b.events[1].Outcome != "not_found" || b.events[0].Caller != "ci" {
		t.Errorf("%+v", b.events)
	}
	if answer := b.ask(t, request("resources/read", `{"uri":"own://alder"}`)); !strings.Contains(answer, "of alder") {
		t.Errorf("%s", answer)
	}
	if again := b.ask(t, request("tools/list", "")); again != first {
		t.Errorf("tools/list has changed: %s", again)
	}
}

// TestListChangesThatACallerSees: a caller is notified of changes in its own lists alone.
func TestListChangesThatACallerSees(t *testing.T) {
	b := start(t, newUpstream(t, "one", "-full", "-name", "one"), newUpstream(t, "two", "-full", "-name", "two"))
	for _, name := range []string{"one", "two"} {
		if _, err := b.registry.For(nil).Ready(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	c := b.connect(t, "2025-06-18", "{}")
	b.registry.Remove(b.client)(t.Context())
	b.client.As(&policy.Caller{ID: "ci", Name: "ci", Rules: policy.Union(policy.Grant{Allow: []string{"default/two"}})})
	b.registry.Attach(b.client)
	b.ask(t, request("prompts/list", ""))
	full := &talk{bench: b, sent: make(chan string, 1000)}
	b.client = b.NewClient("full", func(message []byte) error {
		full.sent <- string(message)
		return nil
	})
	b.registry.Attach(b.client)
	b.ask(t, request("initialize", `{"protocolVersion":"2025-06-18","capabilities":{}}`))
	b.ask(t, request("prompts/list", ""))
	change := func(server string) {
		t.Helper()
		if answer := b.ask(t, request("tools/call", fmt.Sprintf(`{"name":"exec","arguments":{"server_name":%q,"tool_name":"change","arguments":{"list":"prompts","notices":1}}}`, server))); strings.Contains(answer, "isError") {
			t.Fatal(answer)
		}
	}
	change("one")
	full.next(t, "notifications/prompts/list_changed")
	for len(c.sent) > 0 { // clients are notified in one go
		if message := <-c.sent; strings.Contains(message, "list_changed") {
			t.Errorf("notified of a hidden change: %s", message)
		}
	}
	change("two")
	full.next(t, "notifications/prompts/list_changed")
	c.next(t, "notifications/prompts/list_changed")
}

package server

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpx/internal/policy"
	"mcpx/internal/policy/policytest"
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

// TestGrantedToolsWork: what the rules grant works as without rules.
func TestGrantedToolsWork(t *testing.T) {
	b := grove(t)
	b.client = b.client.As(&policy.Caller{ID: "ci", Name: "ci", Rules: &policytest.Rules{Allow: []string{"default/birch/birch_put"}, ReadOnly: []string{"default/alder"}}})
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
	b.client.As(&policy.Caller{ID: "ci", Name: "ci", Rules: policytest.Allow("default/two")})
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

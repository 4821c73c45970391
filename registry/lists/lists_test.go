package lists

import (
	"strings"
	"testing"

	"mcpx/config"
	"mcpx/internal/policy/policytest"
	"mcpx/internal/tokens"
)

func TestTokensFollowTheTools(t *testing.T) {
	var l Lists
	if got := l.Tokens(); got != 0 {
		t.Errorf("%d tokens before the first list", got)
	}
	one := Item{Key: "one", Raw: []byte(`{"name": "one", "inputSchema": {"type": "object"}}`)}
	two := Item{Key: "two", Raw: []byte(`{"name":"two"}`)}
	for _, test := range []struct {
		name  string
		items []Item
		list  string
	}{
		{"a tool", []Item{one}, `{"tools":[{"name":"one","inputSchema":{"type":"object"}}]}`},
		{"the same tool again", []Item{one}, `{"tools":[{"name":"one","inputSchema":{"type":"object"}}]}`},
		{"one more", []Item{one, two}, `{"tools":[{"name":"one","inputSchema":{"type":"object"}},{"name":"two"}]}`},
		{"none", nil, ""},
	} {
		setTools(&l, test.items)
		if got := string(l.ToolList()); got != test.list {
			t.Errorf("%s: the list is %s, want %s", test.name, got, test.list)
		}
		if got, want := l.Tokens(), tokens.Count(test.list); got != want {
			t.Errorf("%s: %d tokens, want %d", test.name, got, want)
		}
	}
}

// Restrict leaves what the rules grant, and nothing that could name the rest.
func TestRestrict(t *testing.T) {
	l := New(&config.Upstream{Name: "a"}, Views{All: []View{&fakeView{}}})
	l.SetLists(list(OfTools, []Item{{Key: "read", Raw: []byte(`{"name":"read","annotations":{"readOnlyHint":true}}`)}, {Key: "write", Raw: []byte(`{"name":"write"}`)}, {Key: "secret"}}))
	l.SetLists(list(OfPrompts, []Item{{Key: "p", Raw: []byte(`{"name":"p"}`)}}))
	l.SetInstructions("Call write.")
	l.SetNews("changed: write")
	for _, test := range []struct {
		allow          []string
		tools, prompts int
		isWhole        bool // also what may name any tool
	}{
		{[]string{"*"}, 2, 1, true},
		{[]string{"s/a"}, 2, 1, true},
		{[]string{"s/a/*"}, 2, 0, false},
		{[]string{"s/a/read"}, 1, 0, false},
	} {
		part := l.Restrict("s", "a", policytest.Allow(test.allow...))
		if len(part.Tools) != test.tools || len(part.Prompts) != test.prompts {
			t.Errorf("%v: %d tools, %d prompts", test.allow, len(part.Tools), len(part.Prompts))
		}
		if test.prompts == 0 && strings.Contains(part.Note(), "prompts") {
			t.Errorf("%v: %q", test.allow, part.Note())
		}
		isWhole := part.Instructions != "" && part.news != nil && strings.Contains(part.Note(), "tools") && part.Tokens() == l.Tokens()
		if isWhole != test.isWhole {
			t.Errorf("%v: instructions %q, note %q, %d tokens", test.allow, part.Instructions, part.Note(), part.Tokens())
		}
		if isNamed := part.WhyHidden(OfTools, "secret") != ""; isNamed != test.isWhole {
			t.Errorf("%v: it is said why a tool is hidden: %t", test.allow, isNamed)
		}
	}
}

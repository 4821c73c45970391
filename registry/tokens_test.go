package registry

import (
	"testing"

	"mcpx/internal/tokens"
)

func TestTokensFollowTheTools(t *testing.T) {
	u := &Upstream{}
	if got := u.Tokens(); got != 0 {
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
		setTools(u, test.items)
		if got := string(u.ToolList()); got != test.list {
			t.Errorf("%s: the list is %s, want %s", test.name, got, test.list)
		}
		if got, want := u.Tokens(), tokens.Count(test.list); got != want {
			t.Errorf("%s: %d tokens, want %d", test.name, got, want)
		}
	}
}

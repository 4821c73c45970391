package results

import (
	"fmt"
	"strings"
	"testing"

	"mcpx/internal/tokens"
)

func TestShape(t *testing.T) {
	s := New(limits(1000))
	tool := Tool{"a", "tool"}
	for _, test := range []struct{ name, result, want string }{
		{"a short result", `{"structuredContent":{"id":1,"items":[{"a":1}]}}`, "id, items[1]{a}"},
		{"an error does not count", `{"content":[{"type":"text","text":"[]"}],"isError":true}`, "id, items[1]{a}"},
		{"a long result", `{"structuredContent":{"text":"` + strings.Repeat("x", 1000) + `"}}`, "text"},
		{"a text does not count", `{"content":[{"type":"text","text":"plain"}]}`, "text"},
		{"a text with JSON", `{"content":[{"type":"text","text": "{\"a\":[]}"}]}`, "a[0]"},
		{"many keys", `{"structuredContent":{"k":1` + manyMembers(500) + `}}`, "bounded"},
	} {
		remember(s, tool, test.result)
		got := s.Shape("me", tool)
		if test.want == "bounded" {
			if n := tokens.Count(got); n < 100 || n > maxShape {
				t.Errorf("%s: %d bytes", test.name, len(got))
			}
			continue
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
	if got := s.Shape("you", tool); got != "" {
		t.Errorf("another client gets %q", got)
	}
	for i := range 3 * maxShapes {
		remember(s, Tool{"a", fmt.Sprint(i)}, `{}`)
	}
	if n := len(s.clients["me"].shapes); n > maxShapes {
		t.Errorf("%d tools are remembered", n)
	}
	s.Forget("me")
	if got := s.Shape("me", Tool{"a", "1"}); got != "" || len(s.clients) != 0 {
		t.Errorf("a forgotten client has %q", got)
	}
}

func manyMembers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"key_%d":1`, i)
	}
	return b.String()
}

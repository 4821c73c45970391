package e2e

import (
	"fmt"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
	"mcpx/internal/tokens"
)

// TestInspectIsBounded lists more tools than fit, in each of the steps.
func TestInspectIsBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tools int
		line  string // of the first extra tool, or "" if only its name is there
	}{
		{50, "extra_0(query: string, limit?: integer = 10): Extra tool number 0 of many"},
		{300, "extra_0(query, …)"},
		{700, "extra_0"},
		{5000, "extra_0"},
	} {
		t.Run(fmt.Sprint(c.tools), func(t *testing.T) {
			t.Parallel()
			u := mcptest.Upstream(t, "-tools", fmt.Sprint(c.tools), "-page-size", "100")
			u["tools"] = map[string]any{"allow": []string{"extra_*"}}
			p := serve(t, map[string]any{"many": u})
			p.initialize()
			got := p.inspect("many", "")
			lines := strings.Split(got, "\n")
			if lines[0] != fmt.Sprintf("many: %d tools", c.tools) || lines[1] != c.line {
				t.Errorf("the listing begins with %q, want the line %q", lines[:2], c.line)
			}
			if n := tokens.Estimate(got); n > 4000 {
				t.Errorf("the listing has about %d tokens", n)
			}
			last := lines[len(lines)-1]
			if cut := strings.HasPrefix(last, "… "); cut == (len(lines) == c.tools+1) {
				t.Errorf("%d lines for %d tools, the last %q", len(lines)-1, c.tools, last)
			}
			if text := p.inspect("many", "extra_49"); !strings.HasPrefix(text, `{"name":"extra_49",`) {
				t.Errorf("one of many: %s", text)
			}
		})
	}
}

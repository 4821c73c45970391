package plain

import "testing"

func TestCount(t *testing.T) {
	for _, c := range []struct {
		n          int
		noun, want string
	}{
		{0, "line", "0 lines"},
		{1, "line", "1 line"},
		{999, "byte", "999 bytes"},
		{1234567, "tool", "1,234,567 tools"},
		{2, "query", "2 queries"},
		{3, "match", "3 matches"},
		{-100, "token", "-100 tokens"},
		{-1000, "token", "-1,000 tokens"},
	} {
		if got := Count(c.n, c.noun); got != c.want {
			t.Errorf("%d %s: %q, want %q", c.n, c.noun, got, c.want)
		}
	}
}

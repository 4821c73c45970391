package plain

import "testing"

func TestCount(t *testing.T) {
	for _, test := range []struct {
		n          int
		noun, want string
	}{
		{0, "line", "0 lines"},
		{1, "line", "1 line"},
		{999, "line", "999 lines"},
		{1000, "line", "1,000 lines"},
		{1234567, "property", "1,234,567 properties"},
		{2, "match", "2 matches"},
	} {
		if got := Count(test.n, test.noun); got != test.want {
			t.Errorf("%d, %s: %s, want %s", test.n, test.noun, got, test.want)
		}
	}
}

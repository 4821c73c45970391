package listing

import (
	"fmt"
	"strings"
	"testing"
)

// What an error lists is bounded, whatever there is.
func TestListsOfNamesAreBounded(t *testing.T) {
	var names []string
	for i := range 500 {
		names = append(names, fmt.Sprintf("tool_number_%03d", i))
	}
	got := Names(names)
	if want := "tool_number_000, tool_number_001, "; !strings.HasPrefix(got, want) {
		t.Errorf("the list begins with %.40q", got)
	}
	shown := strings.Count(got, "tool_number_")
	if want := fmt.Sprintf(", tool_number_%03d, … and %d more", shown-1, 500-shown); !strings.HasSuffix(got, want) || len(got) > nameList+50 {
		t.Errorf("a list of %d bytes ends with %q, want %q", len(got), got[len(got)-50:], want)
	}
	for _, row := range []struct {
		names []string
		want  string
	}{
		{nil, "none"},
		{[]string{"a"}, "a"},
		{[]string{"a", "b"}, "a, b"},
		{[]string{"line\nbreak", "\x1b[2Jclear", "bidi\u202e", "bad\xff"}, `line\nbreak, \u001b[2Jclear, bidi\u202e, bad` + "\ufffd"},
	} {
		if got := Names(row.names); got != row.want {
			t.Errorf("Names(%q) = %q, want %q", row.names, got, row.want)
		}
	}
	huge := strings.Repeat("x", 100_000)
	if got := Names([]string{"a", huge, "b"}); len(got) > 2*nameList {
		t.Errorf("a name of 100,000 bytes makes a list of %d", len(got))
	}
}

package nearest

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestWord(t *testing.T) {
	known := []string{"command", "args", "startup_timeout", "url", "type"}
	for word, want := range map[string]string{
		"comand": "command", "Command": "command", "startupTimeout": "startup_timeout", "arg": "args",
		"commnad": "command", "agrs": "args", "ulr": "url", "u": "", "TYPE": "type", "typ": "type", "cmd": "", "alwaysAllow": "", "something": "", "": "",
	} {
		if got := Word(word, known); got != want {
			t.Errorf("Word(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestWords(t *testing.T) {
	known := []string{"list_issues", "get_issue", "create_pull_request", "search_issues", "time", "db", "t"}
	for _, c := range []struct {
		word string
		want []string
	}{
		{"list_isues", []string{"list_issues"}},
		{"listIssues", []string{"list_issues"}},
		{"issues", []string{"list_issues", "search_issues"}},
		{"pull", []string{"create_pull_request"}},
		{"current_time", []string{"time"}},
		{"get_pull", []string{"get_issue", "create_pull_request"}},
		{"weather", []string{}},
		{"tme", []string{"time"}},
		{"dbb", []string{"db"}},
		{"T", []string{"t"}},
	} {
		if got := Words(c.word, known, 3); !slices.Equal(got, c.want) {
			t.Errorf("Words(%q) = %q, want %q", c.word, got, c.want)
		}
	}
	if got := Words("issue", known, 1); !slices.Equal(got, []string{"get_issue"}) {
		t.Errorf("the nearest is %q", got)
	}
}

// TestDistance compares the distance within a limit with the plain definition.
func TestDistance(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func() []rune {
		word := make([]rune, r.IntN(7))
		for i := range word {
			word[i] = rune('a' + r.IntN(3))
		}
		return word
	}
	for range 3000 {
		a, b, limit := random(), random(), r.IntN(6)
		if got, want := distance(a, b, limit), min(plainDistance(a, b), limit+1); got != want {
			t.Fatalf("distance(%q, %q, %d) = %d, want %d", string(a), string(b), limit, got, want)
		}
	}
}

func plainDistance(a, b []rune) int {
	if len(a) == 0 || len(b) == 0 {
		return len(a) + len(b)
	}
	x, y := len(a)-1, len(b)-1
	change := plainDistance(a[:x], b[:y])
	if a[x] != b[y] {
		change++
	}
	least := min(change, plainDistance(a[:x], b)+1, plainDistance(a, b[:y])+1)
	if x > 0 && y > 0 && a[x] == b[y-1] && a[x-1] == b[y] {
		least = min(least, plainDistance(a[:x-1], b[:y-1])+1)
	}
	return least
}

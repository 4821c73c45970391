package nearest

import (
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

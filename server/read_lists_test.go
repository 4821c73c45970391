package server

import (
	"fmt"
	"strings"
	"testing"
)

// TestChangesOfReadLists: a change is news to a client that has read the list, if the
// list differs from its last answer and from the last announcement.
func TestChangesOfReadLists(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps string // rN: the client reads list N; N: the list becomes N and is announced
		want  string // of each announcement: + for news
	}{
		{"never read", "1 2", "- -"},
		{"as in the answer", "r1 1", "-"},
		{"changed", "r1 2", "+"},
		{"announced twice", "r1 2 2", "+ -"},
		{"changed twice", "r1 2 3", "+ +"},
		{"back again", "r1 2 1", "+ -"},
		{"read again", "r1 2 r2 2 1", "+ - +"},
	} {
		var now uint64
		l := readLists{current: func(string) uint64 { return now }}
		var got []string
		for _, step := range strings.Fields(c.steps) {
			if _, err := fmt.Sscanf(step, "r%d", &now); err == nil {
				l.remember("resources/templates/list", now)
				continue
			}
			if _, err := fmt.Sscan(step, &now); err != nil {
				t.Fatal(err)
			}
			news := "-"
			if l.isNews("notifications/resources/list_changed") {
				news = "+"
			}
			got = append(got, news)
			if l.isNews("notifications/tools/list_changed") {
				t.Errorf("%s: tools are news", c.name)
			}
			if !l.isNews("notifications/message") {
				t.Errorf("%s: a message is no news", c.name)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %s gives %s, want %s", c.name, c.steps, got, c.want)
		}
	}
}

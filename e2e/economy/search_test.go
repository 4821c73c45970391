package main

import (
	"path"
	"testing"
)

func TestQuerySets(t *testing.T) {
	sets, err := querySets()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{160, 100, 101} {
		if got := len(sets[i].queries); got != want {
			t.Errorf("%d queries %s, want %d", got, sets[i].name, want)
		}
		levels := map[string]int{}
		for _, q := range sets[i].queries {
			levels[q.level]++
			for _, answer := range q.answers {
				if _, err := path.Match(answer, ""); err != nil {
					t.Errorf("%s: %s: %v", q.need, answer, err)
				}
			}
		}
		if n := levels["easy"] + levels["medium"] + levels["hard"]; n != want || levels["hard"] < want/4 {
			t.Errorf("%s: %v", sets[i].name, levels)
		}
	}
	if _, err := parseQueries("easy | no answers\n"); err == nil {
		t.Error("a line without answers is accepted")
	}
}

func TestRank(t *testing.T) {
	q := query{answers: []string{"git*/create_issue", "jira/post"}}
	for answer, want := range map[string]int{
		"github: create_issue(title: string): Opens an issue":                     0,
		"github: list_issues()\njira: post: Sends: a thing":                       1,
		"github: list_issues()\ngithub: create_issue":                             1,
		"github: create_issue_comment(text: string)\njira: posts":                 notFound,
		"jira: only the server's name matches; inspect(\"jira\") lists its tools": notFound,
	} {
		if got := q.rank(answer); got != want {
			t.Errorf("rank(%q) = %d, want %d", answer, got, want)
		}
	}
	if got := recall([]int{0, 4, 5, notFound}, 5); got != 0.5 {
		t.Errorf("recall %v", got)
	}
}

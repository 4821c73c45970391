package search

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

var tools = []document{
	0: {Name: "create_issue", Server: "tracker", Description: "Opens an issue in a repository.", Parameters: "owner repo title labels"},
	1: {Name: "listIssues", Server: "tracker", Description: "Lists the issues of a repository, newest first.", Parameters: "owner repo state"},
	2: {Name: "delete-file", Server: "disk", Description: "Removes a file for good.", Parameters: "path Where the file is"},
	3: {Name: "upload", Server: "OneDrive", Description: "Stores a document in the cloud.", Parameters: "folder name content"},
	4: {Name: "maps_weather", Server: "地图", Description: "根据城市名称查询指定城市的天气", Parameters: "city 城市名称"},
	5: {Name: "ping", Server: "alpha", Description: "", Parameters: ""},
	6: {Name: "ping", Server: "beta", Description: "", Parameters: ""},
	7: {Name: "r2_get_object", Server: "storage", Description: "Reads one object.", Parameters: "bucket key"},
}

func TestRanking(t *testing.T) {
	index := newIndex(tools)
	for _, test := range []struct {
		query string
		want  []int
	}{
		{"create issue", []int{0}},
		{"listing ISSUES", []int{1, 0}},
		{"files", []int{2, 7, 3}},
		{"removing files", []int{2}},
		{"onedrive", []int{3}},
		{"drive", []int{3}},
		{"one drive", []int{3}},
		{"repos", []int{0, 1}},
		{"wea", []int{4}},
		{"we", nil},
		{"天气", []int{4}},
		{"查询城市的天气", []int{4}},
		{"天气 weather", []int{4}},
		{"ping", []int{5, 6}},
		{"ping beta", []int{6, 5}},
		{"R2", []int{7}},
		{"bucket", []int{7}},
		{"where is it", []int{2}}, // only stop words: they have no alternatives
		{"the", []int{3, 1, 2}},
		{"the cloud", []int{3}},
		{"", nil},
		{"?!", nil},
		{"xyzzy plugh", nil},
	} {
		var got []int
		hits, _ := index.search(test.query, 10)
		for _, hit := range hits {
			got = append(got, hit.document)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("Search(%q) = %v, want %v", test.query, got, test.want)
		}
	}
}

func TestSearchKeepsToItsLimit(t *testing.T) {
	index := newIndex(tools)
	for limit, want := range map[int]int{-1: 0, 0: 0, 1: 1, 2: 2, 9: 2} {
		if hits, _ := index.search("ping", limit); len(hits) != want {
			t.Errorf("%d hits for a limit of %d, want %d", len(hits), limit, want)
		}
	}
}

func TestSearchOfNothing(t *testing.T) {
	if hits, _ := newIndex(nil).search("anything", 5); len(hits) != 0 {
		t.Errorf("found %v", hits)
	}
}

func TestNameOutweighsTheRest(t *testing.T) {
	index := newIndex([]document{
		{Parameters: "export"},
		{Description: "export"},
		{Server: "export"},
		{Name: "export"},
	})
	hits, _ := index.search("export", 4)
	for i, hit := range hits {
		if hit.document != 3-i {
			t.Errorf("place %d has document %d", i, hit.document)
		}
	}
}

func TestSearchFromManyGoroutines(t *testing.T) {
	index := newIndex(tools)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if hits, _ := index.search("create issue", 1); len(hits) != 1 || hits[0].document != 0 {
				t.Errorf("found %v", hits)
			}
		})
	}
	all.Wait()
}

func TestTerms(t *testing.T) {
	for text, want := range map[string][]string{
		"":                  nil,
		"list_all-files.v2": {"list", "all", "file", "v", "2", "v2"},
		"HTTPServerError":   {"http", "server", "error", "httpservererror"},
		"createIssue":       {"creat", "issu", "createissu"},
		"Größe straße":      {"größ", "straß"},
		"查询天气 API":          {"查", "询", "查询", "天", "询天", "气", "天气", "api"},
		"v2天气":              {"v", "2", "v2", "天", "气", "天气"},
		"a\xffb":            {"a", "b"},
	} {
		var got []string
		for _, word := range words(text) {
			got = append(got, wordTerms(word)...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("terms of %q: %q, want %q", text, got, want)
		}
	}
}

func TestStem(t *testing.T) {
	for _, family := range [][]string{
		{"file", "files"},
		{"query", "queries"},
		{"box", "boxes"},
		{"branch", "branches"},
		{"create", "creates", "created", "creating"},
		{"stop", "stops", "stopped", "stopping"},
		{"press", "presses", "pressed", "pressing"},
		{"fill", "fills", "filled", "filling"},
		{"move", "moves", "moved", "moving"},
		{"type", "types", "typed", "typing"},
		{"add", "adds", "added", "adding"},
		{"fix", "fixed", "fixing"},
		{"status"},
		{"analysis"},
		{"string", "strings"},
		{"is"},
		{"thing", "things"},
	} {
		for _, word := range family {
			if got, want := stem(word), stem(family[0]); got != want {
				t.Errorf("stem(%q) = %q, and that of %q is %q", word, got, family[0], want)
			}
		}
	}
	for _, pair := range [][2]string{{"status", "state"}, {"string", "str"}, {"bed", "b"}, {"note", "not"}} {
		if stem(pair[0]) == stem(pair[1]) {
			t.Errorf("%q and %q have one stem", pair[0], pair[1])
		}
	}
}

func FuzzSearch(f *testing.F) {
	f.Add("createIssue 天气", "issue", 3)
	f.Add("delete the bill", "get rid of an invoice", 3)
	f.Add("\xff\xfe", "\xff", -1)
	f.Add(strings.Repeat("aB1", 100), strings.Repeat("x y ", 100), 1)
	f.Fuzz(func(t *testing.T, text, query string, limit int) {
		index := newIndex([]document{{Name: text}, {Description: text, Parameters: query}, {Server: query}})
		hits, servers := index.search(query, limit)
		if again, same := index.search(query, limit); !slices.Equal(hits, again) || !slices.Equal(servers, same) {
			t.Errorf("%v %v, and the second time %v %v", hits, servers, again, same)
		}
		if len(servers) > maxNamed {
			t.Errorf("it names %d servers", len(servers))
		}
		if len(hits) > max(limit, 0) {
			t.Errorf("%d hits for a limit of %d", len(hits), limit)
		}
		for i, hit := range hits {
			if hit.document < 0 || hit.document > 2 || !(hit.Score > 0) {
				t.Errorf("odd hit %v", hit)
			}
			if i > 0 && hit.Score > hits[i-1].Score {
				t.Errorf("hits out of order: %v", hits)
			}
		}
	})
}

// manyTools are 2,500 documents as long as those of real servers.
func manyTools() []document {
	vocabulary := strings.Fields(`account address archive attachment balance branch bucket calendar card channel chart
		cluster column comment commit contact customer dashboard database deploy document domain drive email event
		export field file filter folder graph group history image import index invoice issue item job key label line
		list log member merge message metric model note order page payment permission pipeline policy project query
		queue record release report request role room row rule schedule schema search secret segment server session
		share snapshot space status storage stream table tag task team template test thread ticket token topic trace
		transfer user value version view volume webhook window workspace zone`)
	var documents []document
	pick := func(from, count int) string {
		var picked []string
		for i := range count {
			picked = append(picked, vocabulary[(from*31+i*i*17+i)%len(vocabulary)]+strings.Repeat("x", (from+i)%3))
		}
		return strings.Join(picked, " ")
	}
	for i := range 2500 {
		documents = append(documents, document{
			Name:        strings.ReplaceAll(pick(i, 3), " ", "_"),
			Server:      fmt.Sprintf("server-%d", i/25),
			Description: pick(i+1, 40),
			Parameters:  pick(i+2, 60),
		})
	}
	return documents
}

func BenchmarkNew(b *testing.B) {
	documents := manyTools()
	for b.Loop() {
		newIndex(documents)
	}
}

func BenchmarkSearch(b *testing.B) {
	index := newIndex(manyTools())
	for name, query := range map[string]string{
		"usual": "send an invoice to the customer of a project",
		"huge":  strings.Repeat("send an invoice to the customer of a project and the members of every team ", 1000),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				index.search(query, 10)
			}
		})
	}
}

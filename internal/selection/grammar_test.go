package selection

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestPrint: a query is printed in one form, however it was written.
func TestPrint(t *testing.T) {
	for query, want := range map[string]string{
		"a,b.c":                              "a, b.c",
		"SELECT a WHERE b == 1 LIMIT 5":      "a where b = 1 limit 5",
		"count(*) group by a":                "a, count by a",
		"sum(a.b[]) as total, COUNT by c":    "c, sum a.b[] as total, count by c",
		"c, sum a by c order by sum(a) desc": "c, sum a by c order by sum a desc",
		"sum a as n by c order by n asc":     "c, sum a as n by c order by sum a",
		"count where a = 1 by c":             "c, count by c where a = 1",
		"count(a)":                           "count(a)",
		"a, count":                           `a, "count"`,
		"sum, min, max.x where avg = 1":      `"sum", "min", "max".x where "avg" = 1`,
		"a as b order by b":                  "a as b order by a",
		"a where b = '5' and c = null":       `a where b = "5" and c = null`,
		"a where b in (1,'x y', f(x), null)": `a where b in (1, "x y", "f(x)", null)`,
		"a where b not in (1) and not c = 2": "a where not (b in (1)) and not (c = 2)",
		"a where (b=1 or c=f(2)) and (d=3)":  `a where (b = 1 or c = "f(2)") and d = 3`,
		"a where b=1 or (c=2 and d<>3)":      "a where b = 1 or c = 2 and d != 3",
		"a where b = x) ":                    `a where b = "x)"`,
		"a where not = 1":                    `a where "not" = 1`,
		`a where b in { "$r" : "r3/x" }`:     `a where b in {"$r":"r3/x"}`,
		`a where b in {"select": "id where n>5", "$r": "r3"} limit 2`: `a where b in {"$r":"r3","select":"id where n > 5"} limit 2`,
		`/(\d+) (\S+)/ as status, path`:                               `status, path from /(\d+) (\S+)/ as status, path`,
		`/ERROR/ as line where line ~ x`:                              `line from /ERROR/ as line where line ~ x`,
		`count by s from /a (.)/b/ as s`:                              `s, count by s from /a (.)/b/ as s`,
		`/a/ as x where p = /b/`:                                      `x from /a/ as x where p = "/b/"`,
		`/a b/`:                                                       `/a b/`,
		`/foo/ as bar/`:                                               `/foo/ as bar/`,
		`"select", "a\"b\\"`:                                          `"select", "a\"b\\"`,
	} {
		q, err := Parse(query)
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		if got := q.String(); got != want {
			t.Errorf("%s is printed as %s, want %s", query, got, want)
		}
	}
}

// TestDocumentedQueries: the grammar in the docs has at most 25 lines, and its examples are
// queries.
func TestDocumentedQueries(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "agents.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, grammar, _ := strings.Cut(string(page), "```\nSELECT: ")
	grammar, _, _ = strings.Cut(grammar, "\n```")
	if lines := strings.Count(grammar, "\n") + 1; lines > 25 {
		t.Errorf("the grammar has %d lines", lines)
	}
	_, examples, ok := strings.Cut(grammar, "\n\n")
	if !ok {
		t.Fatal("the grammar has no examples")
	}
	for example := range strings.SplitSeq(examples, "\n") {
		if _, err := Parse(example); err != nil {
			t.Errorf("%s: %v", example, err)
		}
	}
}

// FuzzGrammar states the laws of the grammar: an error is one line, and a query that is
// printed is read as the same query.
func FuzzGrammar(f *testing.F) {
	f.Add("number, title, user.login where state = open and comments > 5 limit 20")
	f.Add(`c, count as n, sum "a b".d[] by c order by n desc, c limit 3`)
	f.Add(`/(\d+) (\S+)/ as status, path where not (status >= 500 or path in ("/", x))`)
	f.Add(`a from /x/ as a where a in {"$r": "r3", "select": "id where n = 'null'"}`)
	f.Add(`[].a["b"][0], '*' where "" ~ ")"`)
	f.Fuzz(func(t *testing.T, text string) {
		q, err := Parse(text)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\r\n") {
				t.Errorf("an error on several lines: %q", err)
			}
			return
		}
		printed := q.String()
		if len(printed) > maxQuery {
			t.Skip()
		}
		again, err := Parse(printed)
		if err != nil {
			t.Fatalf("%q is printed as %q: %v", text, printed, err)
		}
		if got := again.String(); got != printed {
			t.Errorf("%q is printed as %q, and that as %q", text, printed, got)
		}
		if !reflect.DeepEqual(q, again) {
			t.Errorf("%q and %q differ", text, printed)
		}
	})
}

package selection

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"mcpx/internal/rawjson"
	"mcpx/internal/tokens"
)

const issues = `{"total_count": 4, "incomplete_results": false, "items": [
 {"number": 9007199254740993, "title": "Crash, on start", "state": "open", "comments": 12, "user": {"login": "ann"}, "labels": [{"name": "bug"}, {"name": "p1"}]},
 {"number": 2, "title": "Say \"hi\"", "state": "closed", "comments": 3, "user": {"login": "bob"}, "labels": []},
 {"number": 1.50, "title": "007", "state": "open", "comments": 5, "user": {"login": "cy"}, "labels": [{"name": "docs"}], "closed_at": null},
 {"number": 4, "title": "", "state": "open", "comments": 7, "user": null, "labels": []}]}`

const people = `[{"name": "Zoe", "city": "Berlin", "email": "zoe@x", "age": 30}, {"name": "Al", "city": "New York", "email": "al@x", "age": 4}, {"name": "Bo", "city": "Berlin", "age": 100}]`

func node(t testing.TB, text string) rawjson.Node {
	t.Helper()
	root, err := rawjson.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// apply selects from a value without a limit.
func apply(t testing.TB, q *Query, value rawjson.Node) *Selection {
	t.Helper()
	s, err := q.Apply(context.Background(), value)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// textOf returns the text of a selection.
func textOf(t testing.TB, s *Selection, budget int) string {
	t.Helper()
	text, err := s.Text(budget, budget)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// jsonOf returns a selection as JSON.
func jsonOf(t testing.TB, s *Selection) []byte {
	t.Helper()
	value, err := s.JSON(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestText(t *testing.T) {
	for _, test := range []struct{ name, value, query, want string }{
		{"a table of fields, with the digits of the numbers", issues, "number, title, user.login",
			"[4]{number,title,user.login}:\n9007199254740993,\"Crash, on start\",ann\n2,\"Say \"\"hi\"\"\",bob\n1.50,\"007\",cy\n4,\"\","},
		{"the rows of the array that all fields name", issues, "items[].number, items[].state where items[].comments >= 5",
			"[3]{number,state}:\n9007199254740993,open\n1.50,open\n4,open\n3 of 4 rows match"},
		{"JSON for few rows", issues, "number, labels[].name where state = open and comments > 5 limit 1",
			`[{"number":9007199254740993,"labels[].name":["bug","p1"]}]` + "\n1 of 4 rows; 2 match"},
		{"arrays in cells are JSON", issues, "labels.name", `[{"labels.name":["bug","p1"]},{"labels.name":[]},{"labels.name":["docs"]},{"labels.name":[]}]`},
		{"an object's own fields", issues, "total_count, items[].number", `{"total_count":4,"items[].number":[9007199254740993,2,1.50,4]}`},
		{"an index", issues, "items[1].title, items.0.number", `{"items.1.title":"Say \"hi\"","items.0.number":9007199254740993}`},
		{"the number of rows", issues, "count", "4"},
		{"the number of rows that match", issues, "count(*) WHERE state = 'open'", "3"},
		{"all fields of an object", `{"a": [1, 2]}`, "*", `{"a":[1,2]}`},
		{"all fields of rows", people, "* where city = Berlin", `[{"name":"Zoe","city":"Berlin","email":"zoe@x","age":30},{"name":"Bo","city":"Berlin","age":100}]` + "\n2 of 3 rows match"},
		{"all fields as a table", people, "*", "[3]{name,city,email,age}:\nZoe,Berlin,zoe@x,30\nAl,New York,al@x,4\nBo,Berlin,,100"},
		{"a missing field is null", people, "[].email where age > 50", `[{"email":null}]` + "\n1 of 3 rows match"},
		{"no row matches", people, "name where age > 500", "[]\n0 of 3 rows match; age is 30, 4, 100"},
		{"limit 0", people, "name limit 0", "[]\n0 of 3 rows"},
		{"a quoted value with spaces", people, `name where city = "New York"`, `[{"name":"Al"}]` + "\n1 of 3 rows match"},
		{"a part of a text", people, `name where city ~ YORK`, `[{"name":"Al"}]` + "\n1 of 3 rows match"},
		{"an element of an array", issues, `number where labels[].name = bug`, `[{"number":9007199254740993}]` + "\n1 of 4 rows match"},
		{"no element of an array", issues, `number where labels.name != bug and number < 3`, `[{"number":2},{"number":1.50}]` + "\n2 of 4 rows match"},
		{"numbers above 2^53", issues, `title where number = 9007199254740992`, "[]\n0 of 4 rows match; number is 9007199254740993, 2, 1.50, 4"},
		{"equal numbers written differently", issues, `title where number = 1.5`, `[{"title":"007"}]` + "\n1 of 4 rows match"},
		{"null", issues, `number where user = null`, `[{"number":4}]` + "\n1 of 4 rows match"},
		{"not null", issues, `count where user != null`, "3"},
		{"dates", `[{"d":"2026-01-02"},{"d":"2025-12-31"}]`, "d where d >= 2026-01-01", `[{"d":"2026-01-02"}]` + "\n1 of 2 rows match"},
		{"a key with a dot", `[{"user.login":"a"}]`, "user.login", `[{"user.login":"a"}]`},
		{"a key with a space", `[{"user name":"a","count":1}]`, `"user name", count`, `[{"user name":"a","count":1}]`},
		{"a field called count", `[{"count":7}]`, `"count"`, `[{"count":7}]`},
		{"rows further down", `{"data":{"search":{"nodes":[{"id":1}],"errors":[]}}}`, "id", `[{"id":1}]`},
		{"an empty array of rows", `{"total":0,"items":[]}`, "id, name", "[]"},
		{"a missing array is null, an empty one is empty", `[{"labels":[]},{},{"labels":[{"name":"x"}]}]`, "labels[].name",
			`[{"labels[].name":[]},{"labels[].name":null},{"labels[].name":["x"]}]`},
		{"a field of null", `[{"license":null},{"license":null}]`, "license.name", `[{"license.name":null},{"license.name":null}]`},
		{"duplicate keys: the last counts", `[{"a":1,"a":2}]`, "a", `[{"a":2}]`},
		{"scalars", `["x","y"]`, "* limit 1", `["x"]` + "\n1 of 2 rows"},
		{"a word of SQL", people, "SELECT name LIMIT 1", `[{"name":"Zoe"}]` + "\n1 of 3 rows"},
		{"cells with line and control characters are quoted", `[{"a":"x\ny"},{"a":"x\u2028y"},{"a":"x\u2029y"},{"a":"x\u0085y"},{"a":"x\u000by"},{"a":"xy"}]`, "a",
			"[6]{a}:\n\"x\ny\"\n\"x\u2028y\"\n\"x\u2029y\"\n\"x\u0085y\"\n\"x\vy\"\nxy"},
		{"names of other scripts", `[{"größe":1,"价格":2}]`, "größe,价格", `[{"größe":1,"价格":2}]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			q, err := Parse(test.query)
			if err != nil {
				t.Fatal(err)
			}
			s := apply(t, q, node(t, test.value))
			if got := textOf(t, s, 0); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if !s.IsKnown() {
				t.Errorf("note: %s", s.Note())
			}
		})
	}
}

func TestUnknownFields(t *testing.T) {
	for _, test := range []struct{ name, value, query, text, note string }{
		{"one of two", people, "nmae, city where age = 4", `[{"city":"New York"}]` + "\n1 of 3 rows match", `no row has "nmae", did you mean "name"?; fields: name, city, email, age`},
		{"the only one", people, "nmae", "", `no row has "nmae", did you mean "name"?; fields: name, city, email, age`},
		{"in a condition", people, "name where town = Berlin", "[]\n0 of 3 rows match", `no row has "town"; fields: name, city, email, age`},
		{"of an object", `{"a":1,"b":2}`, "a, c", `{"a":1}`, `there is no "c"; fields: a, b`},
		{"of scalars", `[1,2]`, "a", "", `no row has "a"; fields: none`},
	} {
		t.Run(test.name, func(t *testing.T) {
			q, err := Parse(test.query)
			if err != nil {
				t.Fatal(err)
			}
			s := apply(t, q, node(t, test.value))
			if textOf(t, s, 0) != test.text || s.Note() != test.note {
				t.Errorf("text %q, want %q\nnote %q, want %q", textOf(t, s, 0), test.text, s.Note(), test.note)
			}
		})
	}
}

func TestSyntaxErrors(t *testing.T) {
	for query, want := range map[string]string{
		"":                             "at character 1: expected a field, found the end",
		"a b":                          `at character 3: expected ",", "as", "by", "from", "where", "order by", "limit" or the end, found "b"`,
		"a,":                           "at character 3: expected a field, found the end",
		"a, , b":                       `at character 4: expected a field, found ","`,
		"价格 where":                     "at character 9: expected a field to compare, found the end",
		"a where b":                    "at character 10: expected one of = != < <= > >= ~ in, found the end",
		"a where b = ":                 `at character 13: expected a value after "=", found the end`,
		"a where b is 5":               `at character 11: expected one of = != < <= > >= ~ in, found "is"`,
		"a where b = New York":         `at character 17: expected "and", "or", "order by", "limit" or the end (quote a value that has spaces), found "York"`,
		"a where (b = 1":               `at character 15: expected "and", "or" or ")", found the end`,
		"a where b not = 1":            `at character 17: expected one of = != < <= > >= ~ in, found "1"`,
		"a where b in c":               `at character 14: expected (a, b) or {"$r": "r7", "select": "id"} after "in", found "c"`,
		"a where b in (c d)":           `at character 17: expected "," or ")", found "d)"`,
		`a where b in {"$r": 1}`:       `at character 14: expected a reference with the members "$r" and "select", both strings, found "{"$r":"`,
		`a where b in {"x": "r1"}`:     `at character 14: expected a reference with the members`,
		`a where b in {"select": "a"}`: `at character 14: expected a reference with "$r"`,
		`a where b in {"$r": "r1", "select": "/x/"}`:                       "a reference cannot have a pattern; select fields",
		`a where b in {"$r":"r1","select":"a where b in {\"$r\":\"r1\"}"}`: "a select in a reference cannot have references",
		"sum":                                    "",
		"a, sum b":                               `expected a function, or "a" after "by"`,
		"a, count by b":                          `expected a function, or "a" after "by"`,
		"* by b":                                 `expected "count by", found "* by"`,
		"sum(a":                                  `at character 6: expected ")", found the end`,
		"sum(*)":                                 `at character 5: expected a field, found "*)"`,
		"a order b":                              `at character 9: expected "by", found "b"`,
		"count by a order by b":                  `at character 21: expected one of the columns a, count, found "b"`,
		"a order by sum b":                       `at character 12: expected one of the columns a, found "sum"`,
		"a from b":                               "at character 8: expected /RE2/ as NAME, NAME, found \"b\"",
		`/(\d) (\d)/ as a`:                       "expected a name for each group of the pattern: it has 2 groups, and there are 1 names",
		`/(\d) (\d)/ as a, a`:                    `expected a new name, found the end`,
		`a from /(/ as a`:                        "not an RE2 pattern",
		"a by " + strings.Repeat("a,", 20):       "expected at most 10 fields after by",
		"a order by " + strings.Repeat("a,", 20): "expected at most 5 fields after order by",
		"having":                                 "",
		`a where b = "x`:                         "at character 13: expected a closing quotation mark",
		"a limit many":                           `at character 9: expected a number of rows, found "many"`,
		"a limit -1":                             `at character 9: expected a number of rows, found "-1"`,
		"a limit 5 where b = 1":                  `at character 11: expected the end, found "where"`,
		"a[":                                     `at character 2: expected a field, found "["`,
		`a["x"b]`:                                `at character 2: expected a field, found "["x"b]"`,
		"a[3b]":                                  `at character 2: expected a field, found "[3b]"`,
		"a.":                                     "at character 3: expected a field, found the end",
		"/a(/":                                   "at character 1: not an RE2 pattern",
		strings.Repeat("a,", 200) + "a":          "expected at most 100 fields",
		strings.Repeat("x", maxQuery+1):          "the query is too long",
		"a where " + strings.Repeat("b=1 and ", 60) + "b=1": "expected at most 50 conditions",
	} {
		_, err := Parse(query)
		if want == "" && err == nil {
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasSuffix(err.Error(), "; "+forms) {
			t.Errorf("%.40q: %v, want %s", query, err, want)
		}
	}
	if strings.Contains(forms, "\n") {
		t.Error("the forms are not on one line")
	}
}

func TestPaths(t *testing.T) {
	for text, want := range map[string]string{
		"items[3].title": "items/3/title",
		"items.3.title":  "items/3/title",
		"items[].a[*].b": "items/*/a/*/b",
		`["a b"].c`:      "a b/c",
		"[0][1]":         "0/1",
		`"x.y".z`:        "x.y/z",
		`a["x]y"].b`:     "a/x]y/b",
		`a['x\'][]'][ ]`: "a/x'][]/*",
		`a[ "b" ][ 3 ]`:  "a/b/3",
	} {
		path, err := ParsePath(text)
		if err != nil || strings.Join(path.Tokens(), "/") != want {
			t.Errorf("%s: %v, %v; want %s", text, path.Tokens(), err, want)
		}
	}
	if _, err := ParsePath("a b"); err == nil {
		t.Error("a path with a space was read")
	}
}

func TestTextKeepsToItsBudget(t *testing.T) {
	rows := "[" + strings.Repeat(`{"id":123456,"text":"word word word"},`, 500) + `{"id":1,"text":"x"}]`
	for _, query := range []string{"id, text", "*", "id, text where id > 5"} {
		q, _ := Parse(query)
		for _, budget := range []int{100, 1000} {
			text := textOf(t, apply(t, q, node(t, rows)), budget)
			if cost := tokens.Count(text); cost > budget || cost < budget*2/3 {
				t.Errorf("%s: %d tokens with a budget of %d", query, cost, budget)
			}
			if !strings.Contains(text, " of 501 rows; ") {
				t.Errorf("%s: the last line is %q", query, text[strings.LastIndexByte(text, '\n'):])
			}
		}
	}
	q, _ := Parse("text")
	if text := textOf(t, apply(t, q, node(t, `{"text":"`+strings.Repeat("word ", 5000)+`"}`)), 200); tokens.Count(text) > 200 || !strings.HasSuffix(text, "…\ncut: 5,004 tokens in all; name fields, or use read_result with path") {
		t.Errorf("a long value: %d tokens, %q", tokens.Count(text), text[len(text)-100:])
	}
}

func TestJSON(t *testing.T) {
	for query, want := range map[string]string{
		"email where city = Berlin": `["zoe@x",null]`,
		"name, age limit 1":         `[{"name":"Zoe","age":30}]`,
		"count":                     "3",
		"* limit 1":                 `[{"name":"Zoe","city":"Berlin","email":"zoe@x","age":30}]`,
	} {
		q, err := Parse(query)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(jsonOf(t, apply(t, q, node(t, people)))); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}

// FuzzApply states the laws of select: it fails only if there are too many groups, JSON is
// valid, it never has more rows than the value, and every selected scalar is a part of the
// original, byte by byte. A table is valid CSV.
func FuzzApply(f *testing.F) {
	f.Add(issues, "number, title, user.login where state = open and comments > 5 limit 20")
	f.Add(people, "* where age >= 4.0")
	f.Add(`{"a":[{"b":1e400},{"b":-0.0},{"b":"\ud800\u0000"}]}`, `b where b != "x"`)
	f.Add(people, "city, count, sum age as years, min name, max age, avg age by city order by years desc limit 1")
	f.Add(people, "name as n where not (age in (30, 4.0) or city ~ x) order by age desc, name")
	f.Add(`[[1,[2]],{"":{"":1}}]`, `[0][1], "".""`)
	f.Fuzz(func(t *testing.T, value, query string) {
		root, err := rawjson.Parse([]byte(value))
		if err != nil {
			t.Skip()
		}
		q, err := Parse(query)
		if err != nil || q.Pattern != "" || q.from != "" {
			t.Skip()
		}
		s, err := q.Apply(t.Context(), root)
		if errors.Is(err, errMemory) {
			t.Skip()
		}
		if err != nil {
			t.Fatal(err)
		}
		if out := jsonOf(t, s); !json.Valid(out) {
			t.Errorf("not JSON: %s", out)
		}
		if s.count() > s.total || s.rows != nil && s.total > max(1, s.rows.matched) {
			t.Errorf("%d of %d rows", s.count(), s.total)
		}
		for row := range s.selected() {
			for _, c := range s.query.columns {
				if s.rows != nil {
					break // functions compute new values
				}
				f := finder{Watch: s.Watch, visit: func(n rawjson.Node) bool {
					if !strings.Contains(value, string(n.Raw())) {
						t.Errorf("%s is not part of %s", n.Raw(), value)
					}
					return true
				}}
				f.find(c.path, row)
			}
		}
		text := textOf(t, s, 0)
		if header, body, ok := strings.Cut(text, "}:\n"); ok && s.columns() != nil && strings.HasPrefix(header, "[") && !strings.Contains(body, "\r") {
			body, _, _ = strings.Cut(body, " rows")
			r := csv.NewReader(strings.NewReader(body))
			r.FieldsPerRecord = -1
			if _, err := r.ReadAll(); err != nil {
				t.Errorf("not CSV: %v: %q", err, body)
			}
		}
	})
}

// TestSelectionsAreBounded: however often a query names a large value, only as much is written
// as is shown.
func TestSelectionsAreBounded(t *testing.T) {
	long := `"` + strings.Repeat("word ", 40_000) + `"`
	value := node(t, `{"x":`+long+`,"list":[`+strings.Repeat(long+",", 20)+`1]}`)
	rows := node(t, "["+strings.Repeat(`{"a":1},`, 100_000)+`{"`+strings.Repeat("n", 3000)+`":1}]`)
	for name, test := range map[string]struct {
		query string
		value rawjson.Node
	}{
		"one value often":         {strings.Repeat("x,", 99) + "x", value},
		"an array often":          {strings.Repeat("list[],", 99) + "list", value},
		"a long name in each row": {"a," + strings.Repeat("n", 3000), rows},
		"all fields":              {"*", value},
	} {
		t.Run(name, func(t *testing.T) {
			q, err := Parse(test.query)
			if err != nil {
				t.Fatal(err)
			}
			s := apply(t, q, test.value)
			if text, err := s.Text(1000, 1000); tokens.Count(text) > 1000 || err != nil {
				t.Errorf("%d tokens, %v", tokens.Count(text), err)
			}
			if got := testing.AllocsPerRun(1, func() { _, _ = s.JSON(100_000) }); got > 1000 {
				t.Errorf("%v allocations", got)
			}
			if _, err := s.JSON(100_000); !errors.Is(err, ErrLong) {
				t.Errorf("as JSON: %v", err)
			}
		})
	}
}

func TestSelectionsStop(t *testing.T) {
	value := node(t, "["+strings.Repeat(`{"a":[1,2]},`, 5000)+"1]")
	q, _ := Parse("a[], b where a > 1")
	ctx, cancel := context.WithCancel(t.Context())
	s, err := q.Apply(ctx, value)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := s.Text(0, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("text: %v", err)
	}
	if _, err := q.Apply(ctx, value); !errors.Is(err, context.Canceled) {
		t.Errorf("apply: %v", err)
	}
}

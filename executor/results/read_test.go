package results

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"mcpx/internal/selection"
	"mcpx/internal/tokens"
	"mcpx/internal/work"
)

const orders = `{"total": 12345678901234567890, "a/b": {"~": true}, "none": [], "orders": [
{"id": 1, "note": "first"}, {"id": 2}, {"id": 3, "note": "third"}]}`

func TestRead(t *testing.T) {
	for _, test := range []struct {
		name, text string
		query      Query
		want       string
	}{
		{"the whole", "hello", Query{}, "hello\n[bytes 0-5 of 5; end]"},
		{"an empty text", "", Query{}, "\n[bytes 0-0 of 0; end]"},
		{"a window", "hello world", Query{Offset: 2, Limit: 4}, "llo \n[bytes 2-6 of 11; next offset 6]"},
		{"from the end", "hello world", Query{Offset: -5}, "world\n[bytes 6-11 of 11; end]"},
		{"from before the start", "hello", Query{Offset: -50, Limit: 1}, "h\n[bytes 0-1 of 5; next offset 1]"},
		{"between two runes", "价格表", Query{Offset: 4, Limit: 4}, "格\n[bytes 3-6 of 9; next offset 6]"},
		{"one rune at least", "价格表", Query{Limit: 1}, "价\n[bytes 0-3 of 9; next offset 3]"},

		{"a path", orders, Query{Path: "/orders/1"}, "{\"id\": 2}\n[bytes 0-9 of 9; end]"},
		{"a large number", orders, Query{Path: "/total"}, "12345678901234567890\n[bytes 0-20 of 20; end]"},
		{"an escaped path", orders, Query{Path: "/a~1b/~0"}, "true\n[bytes 0-4 of 4; end]"},
		{"a path without its slash", orders, Query{Path: "orders/0/id"}, "1\n[bytes 0-1 of 1; end]"},
		{"every element", orders, Query{Path: "/orders/*/note"}, "[\"first\",\"third\"]\n[bytes 0-17 of 17; end]"},
		{"every member", orders, Query{Path: "/a~1b/*"}, "[true]\n[bytes 0-6 of 6; end]"},
		{"a window of a path", orders, Query{Path: "/orders/*/id", Offset: 1, Limit: 3}, "1,2\n[bytes 1-4 of 7; next offset 4]"},

		{"a path with brackets", orders, Query{Path: "orders[2].note"}, "\"third\"\n[bytes 0-7 of 7; end]"},
		{"a key that looks like a path", `{"a.b":{"c":1},"x":{}}`, Query{Path: "a.b"}, "{\"c\":1}\n[bytes 0-7 of 7; end]"},

		{"grep", "one\r\ntwo\nthree\n", Query{Grep: "^t"}, "2: two\n3: three\n[matches 1-2 of 2 in 3 lines; end]"},
		{"grep without a match", "one\ntwo", Query{Grep: "x"}, "[no match in 2 lines]"},
		{"grep without a match in one line", "one", Query{Grep: "x"}, "[no match in 1 line]"},
		{"grep from a match", "one\ntwo\nthree", Query{Grep: "o", Offset: 1}, "2: two\n[matches 2-2 of 2 in 3 lines; end]"},
		{"grep past the end", "one", Query{Grep: "o", Offset: 7}, "[1 match in 1 line; with grep, offset and limit count matches: offset 7 is past the end]"},
		{"grep with a limit", "one\ntwo\nthree", Query{Grep: "e|o", Limit: 2},
			"1: one\n2: two\n[matches 1-2 of 3 in 3 lines; with grep, offset and limit count matches: next offset 2]"},
		{"grep with context", "a\nb\nHIT\nc\nd\ne\nHIT\nHIT\nf", Query{Grep: "HIT", Before: 1, After: 1},
			"2- b\n3: HIT\n4- c\n6- e\n7: HIT\n8: HIT\n9- f\n[matches 1-3 of 3 in 9 lines; end]"},
		{"grep from the end", "one\ntwo\nthree", Query{Grep: "e|o", Offset: -1}, "3: three\n[matches 3-3 of 3 in 3 lines; end]"},
		{"grep from before the first match", "one\ntwo\nthree", Query{Grep: "e|o", Offset: -9, Limit: 1},
			"1: one\n[matches 1-1 of 3 in 3 lines; with grep, offset and limit count matches: next offset 1]"},
		{"grep with lines before", "a\nb\nHIT\nc\nHIT", Query{Grep: "HIT", Before: 2}, "1- a\n2- b\n3: HIT\n4- c\n5: HIT\n[matches 1-2 of 2 in 5 lines; end]"},
		{"grep with lines after", "a\nHIT\nb\nc\nd", Query{Grep: "HIT", After: 2}, "2: HIT\n3- b\n4- c\n[matches 1-1 of 1 in 5 lines; end]"},
		{"only lines around the matches that are shown", "a\nHIT 1\nb\nHIT 2\nc\nd\nHIT 3\ne", Query{Grep: "HIT", Before: 1, After: 1, Offset: 1, Limit: 1},
			"3- b\n4: HIT 2\n5- c\n[matches 2-2 of 3 in 8 lines; with grep, offset and limit count matches: next offset 2]"},
		{"a match that is not shown is near one", "HIT 1\nHIT 2\nHIT 3", Query{Grep: "HIT", Before: 1, After: 1, Offset: 1, Limit: 1},
			"1- HIT 1\n2: HIT 2\n3- HIT 3\n[matches 2-2 of 3 in 3 lines; with grep, offset and limit count matches: next offset 2]"},
		{"grep finds a name", `{"rows":[{"file/name":"x","size":1},{"file/name":"y"}]}`, Query{Grep: "^file"},
			"[no match in 3 values; names are not searched, but these match: /rows/*/file~1name]"},
		{"grep finds a name in a path", orders, Query{Path: "/orders/*", Grep: "^note"},
			"[no match in 5 values; names are not searched, but these match: /orders/*/note]"},
		{"grep in JSON shows pointers", `{"a":[1,{"b/c":12345678901234567890}]}`, Query{Grep: "^123"},
			"/a/1/b~1c: 12345678901234567890\n[matches 1-1 of 1 in 2 values; end]"},
		{"grep in a path shows pointers of the whole", orders, Query{Path: "/orders/*/note", Grep: "ir"},
			"/orders/0/note: first\n/orders/2/note: third\n[matches 1-2 of 2 in 2 values; end]"},
		{"grep in a long line", strings.Repeat("é", 500) + "needle" + strings.Repeat("x", 500), Query{Grep: "needle"},
			"1: …" + strings.Repeat("é", 50) + "needle" + strings.Repeat("x", 194) + "…\n[matches 1-1 of 1 in 1 line; end]"},
		{"grep at the start of a long line", "needle" + strings.Repeat("x", 500), Query{Grep: "needle"},
			"1: needle" + strings.Repeat("x", 294) + "…\n[matches 1-1 of 1 in 1 line; end]"},

		{"select", orders, Query{Select: query("id, note where id > 1")}, "[{\"id\":2,\"note\":null},{\"id\":3,\"note\":\"third\"}]\n2 of 3 rows match"},
		{"select captures of lines", "GET /a 200\nGET /b 404\nPOST /a 500\nx", Query{Select: query(`/(\w+) (\S+) (\d+)/ as method, path, status where status >= 404`)},
			`[{"method":"GET","path":"/b","status":"404"},{"method":"POST","path":"/a","status":"500"}]` + "\n2 of 3 rows match"},
		{"a table of captures", "a 1\nb, 2\nc 3", Query{Select: query(`/(.*) (\d)/ as name, n order by n desc`)}, "[3]{name,n}:\nc,3\n\"b,\",2\na,1"},
		{"groups of captures", "GET 200\nGET 404\nPUT 200\nx", Query{Select: query(`count, max status by method from /(\w+) (\d+)/ as method, status`)},
			`[{"method":"GET","count":2,"max status":"404"},{"method":"PUT","count":1,"max status":"200"}]`},
		{"a pattern without groups", "a1\nb\na2", Query{Select: query(`count from /a./ as a`)}, "2"},
		{"captures of no line", "a\nb", Query{Select: query(`/x(.)/ as x`)}, "[]\n[no line matches the pattern]"},
		{"a group that is not part of the match", "a\nb", Query{Select: query(`/(a)|(b)/ as a, b`)}, `[{"a":"a","b":null},{"a":null,"b":"b"}]`},
		{"captures in the lines of JSON values", `{"log":"GET 200\nGET 404","n":200}`, Query{Select: query(`/(\d+)$/ as n where n = 200`)}, `[{"n":"200"},{"n":"200"}]` + "\n2 of 3 rows match"},
		{"captures in a path", `{"log":"GET 200\nGET 404","n":200}`, Query{Path: "/log", Select: query(`count from /\d+/ as n`)}, "2"},
		{"select in a path", orders, Query{Path: "/orders/*", Select: query("count")}, "3"},
		{"select a pattern", orders, Query{Select: query("/^th/")}, "/orders/2/note: third\n[matches 1-1 of 1 in 7 values; end]"},
		{"select a field that is not there", orders, Query{Select: query("id, notes limit 1")},
			"[{\"id\":1}]\n1 of 3 rows\nnote: no row has \"notes\", did you mean \"note\"?; fields: id, note"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := New(limits(1000))
			test.query.ID = s.save("me", asKept(test.text)).id
			got, err := s.Read(context.Background(), "me", test.query)
			if err != nil || got != test.want {
				t.Errorf("got %q, %v\nwant %q", got, err, test.want)
			}
		})
	}
}

func TestReadFails(t *testing.T) {
	s := New(limits(1000))
	manyKeys := ""
	for i := range 30 {
		manyKeys += fmt.Sprintf(`"k%d":1,`, i)
	}
	for _, text := range []string{"plain", orders, `{"k 1":1,` + manyKeys + `"zebra":1}`} {
		s.save("me", asKept(text))
	}
	for _, test := range []struct {
		query Query
		want  string
	}{
		{Query{ID: "r4"}, `no result "r4": kept are r1, r2, r3; call the tool again for others`},
		{Query{ID: ""}, `no result "": kept are r1, r2, r3; call the tool again for others`},
		{Query{ID: "r1", Offset: 5}, `offset 5 is past the end: there are 5 bytes`},
		{Query{ID: "r1", Path: "/a"}, `r1: the result is not JSON; use offset or grep`},
		{Query{ID: "r1", Select: query("a")}, `the result is not JSON; use offset or grep`},
		{Query{ID: "r1", Grep: "("}, "grep: not an RE2 pattern: error parsing regexp: missing closing ): `(`"},
		{Query{ID: "r2", Path: "/order"}, `path "/order" of r2: no "order" here; there are total, "a/b", none, orders`},
		{Query{ID: "r2", Path: "/"}, `path "/" of r2: no "" here; there are total, "a/b", none, orders`},
		{Query{ID: "r2", Path: "/orders/3"}, `path "/orders/3" of r2: no "3" in an array; use 0 to 2, or *`},
		{Query{ID: "r2", Path: "/orders/*/x"}, `path "/orders/*/x" of r2: no "x" here; there are id, note`},
		{Query{ID: "r2", Path: "/none/*"}, `path "/none/*" of r2: no "*" in []`},
		{Query{ID: "r2", Path: "/total/x"}, `path "/total/x" of r2: no "x" in 12345678901234567890`},
		{Query{ID: "r3", Path: "/zebre"}, `path "/zebre" of r3: no "zebre" here; there are zebra, …`},
		{Query{ID: "r3", Path: "/x"}, `path "/x" of r3: no "x" here; there are "k 1", k0, k1, k2, k3, k4, k5, k6, k7, k8, k9, k10, k11, k12, k13, k14, k15, k16, k17, k18, …`},
	} {
		if got, err := s.Read(context.Background(), "me", test.query); err == nil || err.Error() != test.want {
			t.Errorf("%+v: got %q, %v\nwant %s", test.query, got, err, test.want)
		}
	}
}

var nextOffset = regexp.MustCompile(`[;:] next offset (\d+)\]$`)

// FuzzReadWindows reads a text window by window: together they are the text, and
// none exceeds its limits.
// TestPatternsAreBounded: a pattern that may take minutes is refused.
func TestPatternsAreBounded(t *testing.T) {
	s := New(limits(1000))
	long, short := strings.Repeat("word ", 1<<20), strings.Repeat("word ", 100)
	for _, test := range []struct{ name, text, pattern, want string }{
		{"a long pattern", short, strings.Repeat("(a|b)?", 1000), "grep: the pattern has more than 4096 bytes; use a shorter one"},
		{"many repetitions", long, strings.Repeat(".{1000}", 500), "grep: the pattern is too complex for a text of 5,242,880 bytes; use a simpler one, or fewer repetitions like {100}"},
		{"many repetitions in a short text", short, strings.Repeat("(word.){10}", 5), ""},
		{"a usual pattern", long, `(?i)\b(error|warning|fatal): [\w.-]+@\d{3}`, ""},
	} {
		_, err := s.Read(context.Background(), "me", Query{ID: s.save("me", textOnly(test.text)).id, Grep: test.pattern})
		if fmt.Sprint(err) != cmp.Or(test.want, "<nil>") {
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
		}
	}
}

func FuzzReadWindows(f *testing.F) {
	f.Add("hello world", 3, 200)
	f.Add(strings.Repeat("价格🙂é\n", 200), 5, 0)
	f.Add(strings.Repeat("a b ", 500), 0, 120)
	f.Fuzz(func(t *testing.T, text string, limit, budget int) {
		text = strings.ToValidUTF8(text, "?")
		s := New(limits(min(budget, 5000)))
		q := Query{ID: s.save("me", asKept(text)).id, Limit: limit}
		var all strings.Builder
		for {
			answer, err := s.Read(context.Background(), "me", q)
			if err != nil {
				t.Fatal(err)
			}
			if cost := tokens.Count(answer); cost > s.budget() {
				t.Fatalf("%d tokens for a budget of %d", cost, s.budget())
			}
			end := strings.LastIndexByte(answer, '\n')
			if !utf8.ValidString(answer) || limit > 0 && end > max(limit, utf8.UTFMax) {
				t.Fatalf("limit %d: %q", limit, answer)
			}
			all.WriteString(answer[:end])
			next := nextOffset.FindStringSubmatch(answer[end:])
			if next == nil {
				break
			}
			q.Offset, _ = strconv.Atoi(next[1])
		}
		if all.String() != text {
			t.Errorf("read %q of %q", all.String(), text)
		}
	})
}

// FuzzGrep goes through all matches: each is shown once, within the budget.
func FuzzGrep(f *testing.F) {
	f.Add(strings.Repeat("one\ntwo\n", 100), "o", 3, 100)
	f.Add(strings.Repeat("x价", 500), "价+", 0, 100)
	f.Add(orders, "note|id", 1, 100)
	f.Add("{\"a\":\"\xff\"}", ".", 0, 0)
	f.Fuzz(func(t *testing.T, text, pattern string, limit, budget int) {
		if _, err := regexp.Compile(pattern); err != nil || pattern == "" || len(pattern) > maxPattern {
			t.Skip()
		}
		s := New(limits(min(budget, 5000)))
		q := Query{ID: s.save("me", asKept(text)).id, Limit: limit, Grep: pattern}
		shown := 0
		for {
			answer, err := s.Read(context.Background(), "me", q)
			if err != nil {
				t.Fatal(err)
			}
			if cost := tokens.Count(answer); cost > s.budget() {
				t.Fatalf("%d tokens for a budget of %d: %q", cost, s.budget(), answer)
			}
			last := answer[strings.LastIndexByte(answer, '\n')+1:]
			var from, to, all int
			if _, err := fmt.Sscanf(last, "[matches %d-%d of %d in", &from, &to, &all); err != nil {
				if strings.HasPrefix(last, "[no match in ") {
					return
				}
				t.Fatalf("%v in %q", err, last)
			}
			if from != shown+1 {
				t.Fatalf("match %d after %d", from, shown)
			}
			shown = to
			next := nextOffset.FindStringSubmatch(last)
			if next != nil {
				q.Offset, _ = strconv.Atoi(next[1])
				continue
			}
			if shown != all {
				t.Errorf("%d of %d matches shown", shown, all)
			}
			return
		}
	})
}

// FuzzPath finds or fails, but never panics.
func FuzzPath(f *testing.F) {
	f.Add(orders, "/orders/*/id")
	f.Add(`[[],{"":"\"]"},-1e5]`, "*/")
	f.Add(` [ { } ] `, "/0/~1")
	f.Fuzz(func(t *testing.T, text, path string) {
		r := reading{ctx: t.Context(), kept: asKept(text), lease: &work.Lease{}}
		root, err := r.root()
		if err != nil {
			t.Skip()
		}
		f, err := r.find(root, path)
		if err != nil {
			return
		}
		count := 0
		for n := range f.each() {
			if count++; !strings.Contains(text, string(n.Raw())) {
				t.Errorf("%q is not in %q", n.Raw(), text)
			}
		}
		if count == 0 {
			t.Error("found nothing, without an error")
		}
	})
}

// asKept returns the kept form of a result with one text.
func asKept(text string) kept {
	if isJSON(context.Background(), text) {
		return newKept(text, text)
	}
	return kept{text: text}
}

func query(text string) *selection.Query {
	q, err := selection.Parse(text)
	if err != nil {
		panic(err)
	}
	return q
}

package selection

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"mcpx/internal/rawjson"
	"mcpx/internal/tokens"
)

const deals = `{"deals": [
 {"id": 1, "stage": "won", "amount": 0.1, "owner": "ann", "day": "2026-03-01"},
 {"id": 2, "stage": "lost", "amount": "0.2", "owner": "bob", "day": "2026-01-05"},
 {"id": 3, "stage": "won", "amount": 10.50, "owner": "ann", "day": "2026-02-01"},
 {"id": 4, "stage": "won", "amount": null, "owner": "bob", "day": null},
 {"id": 5, "stage": "open", "amount": 9007199254740993, "owner": "cy"}]}`

func TestFunctions(t *testing.T) {
	for _, test := range []struct{ name, query, want, note string }{
		{"a sum", "sum amount", "9007199254741003.80", "sum amount leaves out 1 row without a number"},
		{"a sum as in SQL", "SELECT sum(amount) WHERE stage = won AND amount != null", "10.60", ""},
		{"several functions", "count, min amount, max day, avg amount as mean where owner = ann", `{"count":2,"min amount":0.1,"max day":"2026-03-01","mean":5.3}`, ""},
		{"groups", "count by stage", "[3]{stage,count}:\nwon,3\nlost,1\nopen,1", ""},
		{"groups in order", "stage, count as n, sum amount by stage order by n desc, stage limit 2", `[{"stage":"won","n":3,"sum amount":10.60},{"stage":"lost","n":1,"sum amount":0.2}]` + "\n2 of 3 groups", "sum amount leaves out 1 row without a number"},
		{"groups of two fields", "count by owner, stage where id < 4", `[{"owner":"ann","stage":"won","count":2},{"owner":"bob","stage":"lost","count":1}]`, ""},
		{"groups by a prefix", "count by deals[].stage where deals[].id = 1", `[{"stage":"won","count":1}]`, ""},
		{"different values", "stage by stage order by stage", "[3]{stage}:\nlost\nopen\nwon", ""},
		{"a count of values", "count(day)", "3", ""},
		{"a function of no rows", "sum amount where id > 9", "0\n0 of 5 rows match; id is 1, 2, 3, 4, 5", ""},
		{"an average of no rows", "avg amount where id > 9", "null\n0 of 5 rows match; id is 1, 2, 3, 4, 5", ""},
		{"no groups", "count by stage where stage = Won", "[]\n0 of 5 rows match; stage is won, lost, open", ""},
		{"texts and numbers: numbers count", "max stage, min id", `{"max stage":"won","min id":1}`, ""},
		{"an unknown field", "sum amonut by stage", "[3]{stage}:\nwon\nlost\nopen", `no row has "amonut", did you mean "amount"?; fields: id, stage, amount, owner, day`},
		{"an unknown group", "count by stgae", "", `no row has "stgae", did you mean "stage"?; fields: id, stage, amount, owner, day`},
		{"names", "id as number, owner as who limit 1", `[{"number":1,"who":"ann"}]` + "\n1 of 5 rows", ""},
		{"order", "id order by day desc limit 4", "[4]{id}:\n1\n3\n2\n4\n4 of 5 rows", ""},
		{"order of numbers", "id order by amount", "[5]{id}:\n1\n2\n3\n5\n4", ""},
		{"order by a name", "amount as a where amount != null order by a desc limit 1", `[{"a":9007199254740993}]` + "\n1 of 5 rows; 4 match", ""},
		{"or", "id where stage = lost or owner = cy", `[{"id":2},{"id":5}]` + "\n2 of 5 rows match", ""},
		{"parentheses", "count where (stage = lost or stage = won) and not owner = ann", "2", ""},
		{"in", "id where stage in (lost, 'open')", `[{"id":2},{"id":5}]` + "\n2 of 5 rows match", ""},
		{"in numbers", "count where id in (1.0, 2e0, 9)", "2", ""},
		{"not in", "id where id not in (1,2,3)", `[{"id":4},{"id":5}]` + "\n2 of 5 rows match", ""},
		{"in null", "id where amount in (null)", `[{"id":4}]` + "\n1 of 5 rows match", ""},
		{"a text in quotes is no number", `id where amount = "0.20"`, "[]\n0 of 5 rows match; amount is 0.1, 0.2, 10.50, null, 9007199254740993", ""},
		{"a text that is a number", `id where amount = 0.20`, `[{"id":2}]` + "\n1 of 5 rows match", ""},
		{"each condition is met alone", "id where stage = lost and owner = cy", "[]\n0 of 5 rows match", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			q, err := Parse(test.query)
			if err != nil {
				t.Fatal(err)
			}
			s := apply(t, q, node(t, deals))
			if got := textOf(t, s, 0); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if s.Note() != test.note {
				t.Errorf("note %q, want %q", s.Note(), test.note)
			}
		})
	}
}

func TestFunctionsAsJSON(t *testing.T) {
	for query, want := range map[string]string{
		"sum amount where id < 4":  "10.80",
		"max day":                  `"2026-03-01"`,
		"count, min id":            `[{"count":5,"min id":1}]`,
		"count by stage limit 1":   `[{"stage":"won","count":3}]`,
		"stage by stage":           `["won","lost","open"]`,
		"id order by id desc":      "[5,4,3,2,1]",
		"avg amount where id = 4":  "null",
		"avg id where id in (1,2)": "1.5",
	} {
		q, err := Parse(query)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(jsonOf(t, apply(t, q, node(t, deals)))); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}

// TestNumbersAreBounded: numbers that cost too much to compute with are left out.
func TestNumbersAreBounded(t *testing.T) {
	value := node(t, `[{"n":1e999999999},{"n":"1e-999999999"},{"n":`+strings.Repeat("9", 2000)+`},{"n":1}]`)
	q, _ := Parse("sum n, max n, count by n order by n")
	if got := textOf(t, apply(t, q, value), 0); !strings.Contains(got, "1,1,1,1") {
		t.Errorf("got %.300s", got)
	}
	q, _ = Parse("sum n")
	s := apply(t, q, value)
	if got := textOf(t, s, 0); got != "1" || s.Note() != "sum n leaves out 3 rows without a number" {
		t.Errorf("the sum is %.100s, note %q", got, s.Note())
	}
}

// TestGroupsAreBounded: groups and ordered rows need no more memory than the query says. With
// a limit, only as many rows are kept.
func TestGroupsAreBounded(t *testing.T) {
	rows := func(yield func(rawjson.Node) bool) {
		for i := range 10_000 {
			if !yield(node(t, fmt.Sprintf(`{"id":%d,"half":%d,"one":1}`, i, i%2))) {
				return
			}
		}
	}
	for query, want := range map[string]error{
		"count by half":               nil,
		"count by id":                 errMemory,
		"id order by id":              errMemory,
		"id order by id desc limit 9": nil,
	} {
		q, err := Parse(query)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := q.ApplyEach(t.Context(), rows, 1000); !errors.Is(err, want) {
			t.Errorf("%s: %v", query, err)
		}
	}
}

func TestBind(t *testing.T) {
	q, err := Parse(`id where id in {"$r": "r1"} and stage in {"$r": "r2", "select": "name"}`)
	if err != nil {
		t.Fatal(err)
	}
	references := q.References()
	if len(references) != 2 || references[0].Text != "r1" || references[1].Select.String() != "name" {
		t.Fatalf("references %+v", references)
	}
	bound, err := q.Bind(map[*SetReference][]byte{references[0]: []byte(`[1.0, "3", {"id":2}, [5], null]`), references[1]: []byte(`"won"`)})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(jsonOf(t, apply(t, bound, node(t, deals)))); got != "[1,3]" {
		t.Errorf("got %s", got)
	}
	many := "[" + strings.Repeat("1,", maxSet) + "1]"
	if _, err := q.Bind(map[*SetReference][]byte{references[0]: []byte(many), references[1]: []byte(`1`)}); err == nil || !strings.Contains(err.Error(), "more than 100,000 values") {
		t.Errorf("many values: %v", err)
	}
}

// TestCut: a selection that is too long is cut to the head, not to the limit.
func TestCut(t *testing.T) {
	var rows strings.Builder
	for i := range 500 {
		fmt.Fprintf(&rows, `{"id":%d,"text":"word word word"},`, i)
	}
	value := node(t, "["+rows.String()+`{"id":500,"text":"x"}]`)
	for query, want := range map[string]string{
		"id, text":                  ` of 501 rows; cut: ~N tokens in all, use where, limit or fewer fields`,
		"id, text limit 400":        ` of 501 rows; cut: ~N tokens in all, use where, limit or fewer fields`,
		"count by id":               ` of 501 groups; cut: ~N tokens in all, use where or limit`,
		"id, text order by id desc": ` of 501 rows; cut: ~N tokens in all, use where, limit or fewer fields`,
		"id, text where id < 400":   ` of 501 rows; 400 match; cut: ~N tokens in all, use where, limit or fewer fields`,
		"id, text where id < 9":     "9 of 501 rows match",
	} {
		q, err := Parse(query)
		if err != nil {
			t.Fatal(err)
		}
		text, err := apply(t, q, value).Text(1000, 200)
		if line := size.ReplaceAllString(text, "~N"); err != nil || !strings.HasSuffix(line, want) {
			t.Errorf("%s: %v, the end is %q", query, err, text[max(0, len(text)-150):])
		}
		if cost := tokens.Count(text); cost > 200 {
			t.Errorf("%s: %d tokens", query, cost)
		}
	}
}

var size = regexp.MustCompile(`~[0-9,]+`)

package results

import (
	"fmt"
	"strings"
	"testing"
)

func TestOutline(t *testing.T) {
	wide := `{"k":1` + strings.Repeat(`,"key":1,"kez":2`, 1) + `}`
	for text, want := range map[string]string{
		``:                          "0 lines",
		`one`:                       "1 line",
		"one\ntwo":                  "2 lines",
		"# A\ntext\n## B\n#no\n":    "4 lines: # A, ## B",
		`{}`:                        "{}",
		`[]`:                        "[0]",
		`[1,"a",null]`:              "[3]",
		`{"a":1,"b":{"c":[1,2]}}`:   "a, b{c[2]}",
		` [ {"a":1}, {"b":2} ] `:    "[2]{a, b}",
		`[null,{"a":[1]},{"a":[]}]`: "[3]{a[]}",
		`[[1,2],[3]]`:               "[2][]",
		`{"items":[{"id":1,"user":{"name":"x","at":{"y":{"z":1}}}},7]}`: "items[2]{id, user{name, at{y{…}}}}",
		`{"a b":1,"x\"y":2,"é":3}`:                                      `"a b", "x\"y", é`,
		`{"` + strings.Repeat("k", 50) + `":1}`:                         strings.Repeat("k", 37) + "…",
		`[[[[[[[[1]]]]]]]]`:                                             "[1][1][1][1][1][1][1][1]",
		`12345`:                                                         "1 line",
		wide:                                                            "k, key, kez",
	} {
		if got := outline(asKept(text), 300); got != want {
			t.Errorf("outline of %s: %q, want %q", text, got, want)
		}
	}
}

// TestOutlineNamesTheRowsFirst: nested keys give way to the fields of the rows.
func TestOutlineNamesTheRowsFirst(t *testing.T) {
	nested := `{"x":{"login":"a","id":1,"url":"u"},"labels":[{"name":"n","color":"c"}]`
	var want []string
	for i := range 40 {
		nested += fmt.Sprintf(`,"field_%d":{"inner":%d,"other":1}`, i, i)
		want = append(want, fmt.Sprintf("field_%d", i))
	}
	got := outline(asKept(`{"total":1,"items":[`+nested+`}]}`), maxOutline)
	for _, name := range append(want, "total", "labels") {
		if !strings.Contains(got, name) {
			t.Errorf("no %s in %s", name, got)
		}
	}
	if strings.Contains(got, "inner") {
		t.Errorf("nested keys in %s", got)
	}
}

func TestOutlineIsBounded(t *testing.T) {
	var b strings.Builder
	for i := range 500 {
		b.WriteString(strings.Repeat("é", i%7+1) + ` `)
	}
	keys := `{"` + strings.Join(strings.Fields(b.String()), `":{"x":[{"y":1}]},"`) + `":1}`
	for _, text := range []string{keys, "# " + strings.ReplaceAll(b.String(), " ", "\n# "), "[" + keys + "]"} {
		got := outline(asKept(text), 300)
		if len(got) > 300 {
			t.Errorf("%d bytes: %s", len(got), got)
		}
	}
}

// TestRowFields: the example of a select has fields of the rows, also if other members come
// before the rows.
func TestRowFields(t *testing.T) {
	for data, want := range map[string]string{
		`[{"id":1,"title":"a"},{"id":2,"n":3}]`:              "id title n",
		`{"total":1,"items":[{"id":1,"title":"a"}]}`:         "id title",
		`{"meta":{"page":1},"items":[{"id":1}]}`:             "id",
		`{"data":{"n":1,"of":{"page":1},"rows":[{"id":1}]}}`: "id",
		`{"a":1,"b":{"c":2}}`:                                "a b",
		`[1,2]`:                                              "",
	} {
		if got := strings.Join(rowFields(data), " "); got != want {
			t.Errorf("%s: %q, want %q", data, got, want)
		}
	}
}

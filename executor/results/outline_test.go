package results

import (
	"fmt"
	"strings"
	"testing"
)

// shaped returns the shape of JSON.
func shaped(t *testing.T, data string) *shape {
	t.Helper()
	s, err := shapeOf(t.Context(), []byte(data))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// outline returns the outline of a text or of JSON.
func outline(t *testing.T, text string, limit int) string {
	t.Helper()
	if isJSON(t.Context(), text) {
		return shaped(t, text).outline(limit)
	}
	got, err := lines(t.Context(), text, limit)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

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
		if got := outline(t, text, 300); got != want {
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
	got := outline(t, `{"total":1,"items":[`+nested+`}]}`, maxOutline)
	for _, name := range append(want, "total", "labels") {
		if !strings.Contains(got, name) {
			t.Errorf("no %s in %s", name, got)
		}
	}
	if strings.Contains(got, "inner") {
		t.Errorf("nested keys in %s", got)
	}
}

// TestOutlineNamesLateFields: an outline has the fields of all rows, also if only the last row
// has them, before any detail.
func TestOutlineNamesLateFields(t *testing.T) {
	row := `{"id":1,"user":{"login":"a"}},`
	rest := `{"id":2,"closed_at":"x","user":{"login":"b","site_admin":true}},{"merged_by":{"login":"c"}}`
	wide := ""
	for i := range 200 {
		wide += fmt.Sprintf(`"beside_%d":{"inner":%d},`, i, i)
	}
	for _, test := range []struct{ name, data, want string }{
		{"rows", `[` + strings.Repeat(row, 5000) + rest + `]`, "[5002]{id, user{login, site_admin}, closed_at, merged_by{login}}"},
		{"rows in an object", `{"total":1,"items":[` + strings.Repeat(row, 30) + rest + `]}`, "total, items[32]{id, user{login, site_admin}, closed_at, merged_by{login}}"},
		{"rows in rows", `[{"a":[` + strings.Repeat(`{"b":1},`, 25) + `{"c":2}]},{"a":[{"d":3}]}]`, "[2]{a[]{b, c, d}}"},
		{"keys in another order", `[{"a":1,"b":2},{"b":1,"c":3,"a":2},{"c":1}]`, "[3]{a, b, c}"},
		{"a key written with an escape", `[{"a":1,"b":2},{"\u0061":[7]}]`, "[2]{a[], b}"},
		{"fields of other objects give way to those of the rows", `{"meta":{` + wide + `"x":1},"items":[` + strings.Repeat(row, 30) + rest + `]}`, "meta{…}, items[32]{id, user{…}, closed_at, merged_by{…}}"},
		{"keys beside the rows give way to their fields", `{` + wide + `"items":[` + strings.Repeat(row, 30) + rest + `]}`, "items[32]{id, user{…}, closed_at, merged_by{…}}, …"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := outline(t, test.data, maxOutline); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestShapeIsBounded: no result can make its shape large.
func TestShapeIsBounded(t *testing.T) {
	var b strings.Builder
	for i := range 300 {
		fmt.Fprintf(&b, `{"a%d":{"b%d":{"c":[[{"d%d":1}]]}},"%d":{`, i, i, i, i)
		for k := range 300 {
			fmt.Fprintf(&b, `"k%d":{"x%d":1},`, k, k)
		}
		b.WriteString(`"z":1}},`)
	}
	s := shaped(t, `[`+b.String()+strings.Repeat("[", 100)+strings.Repeat("]", 100)+`]`)
	if got := countShapes(s); got > maxDepth*maxFields {
		t.Errorf("%d shapes", got)
	}
	if got := s.outline(maxOutline); len(got) > maxOutline {
		t.Errorf("%d bytes", len(got))
	}
}

func countShapes(s *shape) int {
	n := 1
	for _, f := range s.fields {
		n += countShapes(&f.shape)
	}
	return n
}

func TestOutlineIsBounded(t *testing.T) {
	var b strings.Builder
	for i := range 500 {
		b.WriteString(strings.Repeat("é", i%7+1) + ` `)
	}
	keys := `{"` + strings.Join(strings.Fields(b.String()), `":{"x":[{"y":1}]},"`) + `":1}`
	for _, text := range []string{keys, "# " + strings.ReplaceAll(b.String(), " ", "\n# "), "[" + keys + "]"} {
		got := outline(t, text, 300)
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
		if got := strings.Join(shaped(t, data).rowFields(), " "); got != want {
			t.Errorf("%s: %q, want %q", data, got, want)
		}
	}
}

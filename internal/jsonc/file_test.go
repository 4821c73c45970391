package jsonc

import (
	"errors"
	"strings"
	"testing"
)

func TestParseErrors(t *testing.T) {
	for name, row := range map[string]struct{ text, want string }{
		"empty":              {"", `f:1:1: the file is empty; write at least {"mcpServers": {}}`},
		"only a comment":     {"// nothing", `f:1:1: the file is empty; write at least {"mcpServers": {}}`},
		"not an object":      {"\n[]", `f:2:1: expected an object such as {"mcpServers": {}}, got array`},
		"not UTF-8":          {"{\"\xff\": 1}", "f:1:3: not UTF-8; save the file as UTF-8"},
		"too deep":           {`{"a": ` + strings.Repeat("[", 300), "f:1:206: nested deeper than 200 levels"},
		"ends early":         {`{"a": [1, 2`, "f:1:12: the file ends too early; a closing quote, bracket or */ is missing"},
		"single quotes":      {`{'a': 1}`, "f:1:2: a single quote; write texts and keys in double quotes"},
		"bare word":          {`{"a": hunter2}`, "f:1:7: not a JSON value; write texts and keys in double quotes"},
		"tab in a string":    {"{\"a\": \"hunter\t2\"}", `f:1:7: invalid string: a line break or tab in it, an unknown \ escape, or no closing quote`},
		"duplicate key":      {"{\"a\": 1,\n \"a\": 2}", "f:2:2: a: duplicate key; first on line 1"},
		"duplicate, deeper":  {`{"a": [{"b b": 1, "b b": 2}]}`, `f:1:19: a[0]["b b"]: duplicate key; first on line 1`},
		"after a multi-byte": {`{"é": 'x'}`, "f:1:7: a single quote; write texts and keys in double quotes"},
	} {
		t.Run(name, func(t *testing.T) {
			f := New("f", []byte(row.text))
			f.Parse()
			err := f.Err()
			if err == nil || err.Error() != row.want {
				t.Fatalf("got  %v\nwant %s", err, row.want)
			}
			if strings.Contains(err.Error(), "hunter") {
				t.Error("the error repeats a value, which may be a secret")
			}
		})
	}
}

const sample = "\ufeff" + `{
  // A comment.
  "a": {"b c": [true, "t\u00e9xt", 1.50, null]},
}`

func TestNodes(t *testing.T) {
	f := New("f", []byte(sample))
	root, ok := f.Parse()
	if !ok || f.Err() != nil {
		t.Fatal(f.Err())
	}
	a, ok := root.Member("a")
	if _, other := root.Member("b"); !ok || other || len(root.Members()) != 1 {
		t.Fatal("wrong members")
	}
	list := a.Value.Members()[0].Value
	elements := list.Elements()
	for i, want := range []string{"boolean true", "string", "number 1.50", "null"} {
		if got := elements[i].Describe(); got != want {
			t.Errorf("element %d: got %q, want %q", i, got, want)
		}
	}
	if a.Value.Describe() != "object" || list.Describe() != "array" {
		t.Error("objects and arrays have wrong descriptions")
	}
	if elements[1].Text() != "t\u00e9xt" || elements[0].Text() != "" || !elements[0].Literal().Bool() {
		t.Error("wrong values")
	}
	if elements[0].Elements() != nil || elements[0].Members() != nil {
		t.Error("a boolean has elements or members")
	}
	f.Fail(elements[3], "is null")
	f.Fail(a.Value.Missing("d"), "required")
	f.Warn(a.Name, "has line %d", f.Line(a.Name))
	want := `f:3:8: a.d: required
f:3:42: a["b c"][3]: is null`
	err, _ := errors.AsType[*Error](f.Err())
	if err == nil || err.Error() != want || len(err.Warnings) != 1 || err.Warnings[0].String() != "f:3:3: a: has line 3" {
		t.Errorf("got %v and warnings %v, want %s", err, f.Warnings(), want)
	}
}

// Problems that are tolerated are warnings.
func TestTolerate(t *testing.T) {
	f := New("f", []byte(`{}`))
	root, _ := f.Parse()
	f.Fail(root, "one")
	f.Tolerate(func() { f.Fail(root, "two") }, "; using the default")
	if f.ProblemCount() != 1 || len(f.Warnings()) != 1 || f.Warnings()[0].Text != "two; using the default" {
		t.Errorf("got %v and %v", f.Err(), f.Warnings())
	}
}

// Whatever is wrong with a file, the list of problems has an end.
func TestProblemsAreBounded(t *testing.T) {
	f := New("f", []byte(`{}`))
	root, _ := f.Parse()
	for range 2 * maxProblems {
		f.Fail(root, "wrong")
		if f.MayWarn() != (len(f.warnings) <= maxProblems) {
			t.Fatal("MayWarn is wrong")
		}
		f.Warn(root, "odd")
	}
	err, _ := errors.AsType[*Error](f.Err())
	if len(err.Problems) != maxProblems+1 || len(err.Warnings) != maxProblems+1 || f.Line(root) != 0 {
		t.Errorf("%d problems, %d warnings", len(err.Problems), len(err.Warnings))
	}
}

func TestDuplicateKeys(t *testing.T) {
	if got := DuplicateKeys("f", []byte(`{"a": {"b": 1, "b": 2}}`)); len(got) != 1 || got[0].Path != "a.b" {
		t.Errorf("got %v", got)
	}
	if got := DuplicateKeys("f", []byte(`{"a": `)); got != nil {
		t.Errorf("a file that cannot be parsed: got %v", got)
	}
}

// TestManyDuplicateKeys: deep duplicates beyond those that are reported cost little.
func TestManyDuplicateKeys(t *testing.T) {
	const depth, keys = 90, 10_000
	text := []byte(strings.Repeat(`{"k":`, depth) + "{" + strings.Repeat(`"a":1,`, keys) + `"a":1}` + strings.Repeat("}", depth))
	var problems []Problem
	n := testing.AllocsPerRun(1, func() { problems = DuplicateKeys("f.json", text) })
	if len(problems) == 0 || n > 20*keys {
		t.Errorf("%d problems, %v allocations", len(problems), n)
	}
}

func TestCheckDepth(t *testing.T) {
	for text, isTooDeep := range map[string]bool{
		strings.Repeat("[", 200):                       false,
		strings.Repeat("[", 201):                       true,
		strings.Repeat("{}", 300):                      false,
		`"` + strings.Repeat("[", 300) + `\"["`:        false,
		"//" + strings.Repeat("[", 300):                false,
		"/*" + strings.Repeat("[", 300) + "*/ {}":      false,
		"// x\n" + strings.Repeat("[", 201):            true,
		"/* unfinished " + strings.Repeat("[", 201):    false,
		`"a": "unfinished ` + strings.Repeat("[", 201): false,
	} {
		if got := CheckDepth([]byte(text)) != nil; got != isTooDeep {
			t.Errorf("CheckDepth(%.20q…) = %v", text, got)
		}
	}
}

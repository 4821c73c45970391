package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpx/internal/schema"
)

// everything has a parameter of every kind.
const everything = `{"type":"object","properties":{
	"s":{"type":"string"},"i":{"type":"integer"},"n":{"type":"number"},"b":{"type":"boolean"},"z":{"type":"null"},
	"maybe":{"type":["integer","null"]},"text_or_number":{"anyOf":[{"type":"string"},{"type":"number"}]},
	"optional":{"anyOf":[{"type":"integer"},{"type":"null"}]},
	"list_or_null":{"anyOf":[{"type":"array","items":{"type":"number"}},{"type":"null"}]},"object_or_null":{"type":["object","null"]},
	"e":{"enum":[1,2]},"es":{"enum":["1","2"]},"c":{"const":true},
	"a":{"type":"array","items":{"type":"integer"}},"as":{"type":"array","items":{"type":"string"}},"any":{"type":"array"},
	"one_or_many":{"oneOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]},
	"o":{"type":"object","properties":{"in":{"type":"integer"},"deep":{"type":"object","properties":{"er":{"type":"boolean"}}}}},
	"free":{"type":"object"},"map":{"type":"object","additionalProperties":{"type":"number"}},
	"r":{"$ref":"#/$defs/count"},"loop":{"$ref":"#/$defs/loop"},"list":{"type":"array","items":{"$ref":"#/$defs/count"}},
	"dotted.name":{"type":"integer"},"what":{}
},"$defs":{"count":{"type":"integer"},"loop":{"$ref":"#/$defs/loop"}}}`

func TestPairs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "v.json")
	if err := os.WriteFile(file, []byte(" [1, 2]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		pairs []string
		want  string
	}{
		{"a string stays one", []string{"s=5", "es=1"}, `{"s":"5","es":"1"}`},
		{"an empty string", []string{"s="}, `{"s":""}`},
		{"an equals sign", []string{"s=a=b"}, `{"s":"a=b"}`},
		{"at and brackets are text", []string{"s=@x"}, `{"s":"@x"}`},
		{"an integer", []string{"i=-5"}, `{"i":-5}`},
		{"a large integer", []string{"i=9007199254740993"}, `{"i":9007199254740993}`},
		{"a number", []string{"n=1.5e3"}, `{"n":1.5e3}`},
		{"an integer where a number is wanted", []string{"n=3"}, `{"n":3}`},
		{"what is no integer", []string{"i=x"}, `{"i":"x"}`},
		{"a boolean", []string{"b=true"}, `{"b":true}`},
		{"what is no boolean", []string{"b=1"}, `{"b":"1"}`},
		{"null", []string{"z=null"}, `{"z":null}`},
		{"null for an array", []string{"list_or_null=null"}, `{"list_or_null":null}`},
		{"null in an array", []string{"list_or_null=1", "list_or_null=null"}, `{"list_or_null":[1,"null"]}`},
		{"null where an array must be", []string{"as=null"}, `{"as":["null"]}`},
		{"null for an object", []string{"object_or_null=null"}, `{"object_or_null":null}`},
		{"one of two types", []string{"maybe=null"}, `{"maybe":null}`},
		{"the other", []string{"maybe=4"}, `{"maybe":4}`},
		{"alternatives", []string{"optional=4"}, `{"optional":4}`},
		{"text wins where it may be", []string{"text_or_number=4"}, `{"text_or_number":"4"}`},
		{"of an enum", []string{"e=2"}, `{"e":2}`},
		{"a constant", []string{"c=true"}, `{"c":true}`},
		{"a key several times", []string{"a=1", "s=x", "a=2"}, `{"a":[1,2],"s":"x"}`},
		{"an array of one", []string{"a=1"}, `{"a":[1]}`},
		{"an array of numbers as strings", []string{"as=1", "as=2"}, `{"as":["1","2"]}`},
		{"commas are text", []string{"as=1,2"}, `{"as":["1,2"]}`},
		{"an array as JSON", []string{"a=[1, 2]"}, `{"a":[1, 2]}`},
		{"an empty array", []string{"a="}, `{"a":[]}`},
		{"an array of anything", []string{"any=1"}, `{"any":["1"]}`},
		{"one or many: one", []string{"one_or_many=x"}, `{"one_or_many":"x"}`},
		{"one or many: many", []string{"one_or_many=x", "one_or_many=y"}, `{"one_or_many":["x","y"]}`},
		{"an object as JSON", []string{`o={"in": 1}`}, `{"o":{"in": 1}}`},
		{"parts of an object", []string{"o.in=1", "s=x", "o.deep.er=true"}, `{"o":{"in":1,"deep":{"er":true}},"s":"x"}`},
		{"parts of any object", []string{"free.a=1"}, `{"free":{"a":"1"}}`},
		{"parts of a map", []string{"map.a=1"}, `{"map":{"a":1}}`},
		{"a name with a dot", []string{"dotted.name=1"}, `{"dotted.name":1}`},
		{"a dot in what is unknown", []string{"x.y=1"}, `{"x.y":"1"}`},
		{"a dot in what is no object", []string{"s.y=1"}, `{"s.y":"1"}`},
		{"a reference", []string{"r=7", "list=8"}, `{"r":7,"list":[8]}`},
		{"a reference in a circle", []string{"loop=7"}, `{"loop":"7"}`},
		{"nothing known", []string{"what=7", "new=8"}, `{"what":"7","new":"8"}`},
		{"nothing known, several times", []string{"new=8", "new:=9"}, `{"new":["8",9]}`},
		{"JSON as it is", []string{`s:={"a": [1]}`, "i:=null"}, `{"s":{"a": [1]},"i":null}`},
		{"JSON of a file", []string{"a:=@" + file}, `{"a":[1, 2]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := parsePairs(c.pairs)
			if err != nil {
				t.Fatal(err)
			}
			got, err := a.fit(schema.New([]byte(everything)))
			if err != nil || string(got) != c.want {
				t.Errorf("got %s, %v\nwant %s", got, err, c.want)
			}
		})
	}
}

func TestPairsThatCannotBeMeant(t *testing.T) {
	for _, c := range []struct {
		name  string
		pairs []string
		want  string
	}{
		{"no pair", []string{"bad"}, `"bad" is neither key=value nor key:=json; the arguments can also be one JSON object, @FILE, or - for stdin`},
		{"no key", []string{"=x"}, `"=x" is neither key=value nor key:=json; the arguments can also be one JSON object, @FILE, or - for stdin`},
		{"no JSON", []string{"a:={"}, `the value of "a:={" is not JSON; write a=VALUE for text`},
		{"twice", []string{"s=1", "s=2"}, `"s" is given 2 times, but takes one value`},
		{"whole and in parts", []string{"o={}", "o.in=1"}, `"o" is given both whole and in parts`},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := parsePairs(c.pairs)
			if err == nil {
				_, err = a.fit(schema.New([]byte(everything)))
			}
			if err == nil || err.Error() != c.want {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
			if !errors.As(err, &usageError{}) {
				t.Error("not a mistake of the command line")
			}
		})
	}
}

func TestArgumentFilesAreBounded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "large.json")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, maxArguments+1); err != nil {
		t.Fatal(err)
	}
	for _, list := range [][]string{{"@" + file}, {"a:=@" + file, "b=1"}} {
		if _, err := readArguments(nil, list); err == nil || !strings.Contains(err.Error(), "large.json") {
			t.Errorf("%q: %v", list, err)
		}
	}
}

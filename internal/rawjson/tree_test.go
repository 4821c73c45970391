package rawjson

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTree(t *testing.T) {
	root, err := Parse([]byte(` {"a": [1, "x", {"b": null}], "c\n": true, "é": -2.5e3, "": {}} `))
	if err != nil {
		t.Fatal(err)
	}
	tree := root.Tree()
	if tree.Len() != 9 || tree.Depth() != 3 || root.Len() != 4 {
		t.Errorf("%d values, %d deep, %d members", tree.Len(), tree.Depth(), root.Len())
	}
	for name, c := range map[string]struct {
		node Node
		want string
	}{
		"member":                {root.Get("a").At(1), `"x"`},
		"nested member":         {root.Get("a").At(2).Get("b"), `null`},
		"escaped key":           {root.Get("c\n"), `true`},
		"key beyond ASCII":      {root.Get("é"), `-2.5e3`},
		"empty key":             {root.Get(""), `{}`},
		"no such key":           {root.Get("b"), ``},
		"key that is no key":    {root.Get(`a": [1, `), ``},
		"no such element":       {root.Get("a").At(3), ``},
		"element of an object":  {root.At(0), ``},
		"member of an array":    {root.Get("a").Get("0"), ``},
		"member of no value":    {Node{}.Get("a").Get("b"), ``},
		"element of no value":   {Node{}.At(0), ``},
		"the whole, unpadded":   {root, `{"a": [1, "x", {"b": null}], "c\n": true, "é": -2.5e3, "": {}}`},
		"the last of two":       {parse(t, `{"a":1,"a":2}`).Get("a"), `2`},
		"the last of many":      {parse(t, `{`+strings.Repeat(`"a":1,`, 20)+`"a":2}`).Get("a"), `2`},
		"the last, with escape": {parse(t, `{"a":1,"\u0061":2}`).Get("a"), `2`},
	} {
		if got := string(c.node.Raw()); got != c.want || c.node.IsZero() != (c.want == "") {
			t.Errorf("%s: %s", name, got)
		}
	}
	for _, bad := range []string{``, `{`, `{}{}`, `{"a"}`, `[1,]`, `tru`, strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001)} {
		if _, err := Parse([]byte(bad)); err == nil {
			t.Errorf("%.20s is read", bad)
		}
	}
}

func parse(t *testing.T, text string) Node {
	t.Helper()
	root, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// FuzzParse: a tree has the values that encoding/json has.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,{"b":"\u00e9"}],"a":2}`, strings.Repeat("[", 300) + `{"a":1,"a":2}` + strings.Repeat("]", 300),
		`{"\ud800":1,"a\"b":[]}`, "{\"\xff\":1}", `{` + strings.Repeat(`"k":{},`, 40) + `"l":[[]]}`, `"x`, `[1 2]`, "{\"\\ud800\":0,\"\xff\":[]}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		root, err := Parse(text)
		if (err == nil) != json.Valid(text) {
			t.Fatalf("%s: %v", text, err)
		}
		if err != nil {
			return
		}
		decoder := json.NewDecoder(strings.NewReader(string(text)))
		decoder.UseNumber()
		var want any
		if err := decoder.Decode(&want); err != nil {
			t.Fatal(err)
		}
		if got := decodeNode(root); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	})
}

func decodeNode(n Node) any {
	switch n.Kind() {
	case '{':
		object := map[string]any{}
		for key, value := range n.Members() {
			object[key] = decodeNode(n.Get(key))
			if value != n.Get(key) && !strings.ContainsRune(key, utf8.RuneError) { // several keys may be shown as one
				panic("Members and Get differ")
			}
		}
		return object
	case '[':
		list := []any{}
		for _, element := range n.Elements() {
			list = append(list, decodeNode(element))
		}
		return list
	case '"':
		s, _ := n.String()
		return s
	case 't', 'f':
		return n.Kind() == 't'
	case 'n':
		return nil
	}
	return json.Number(n.Raw())
}

func TestTreeMembers(t *testing.T) {
	var got []string
	for key, value := range parse(t, `{"a":[{"b":1},2],"c":{"d":"x"}}`).Tree().Members() {
		got = append(got, key+"="+string(value.Raw()))
	}
	if want := `a=[{"b":1},2] b=1 c={"d":"x"} d="x"`; strings.Join(got, " ") != want {
		t.Errorf("%q", got)
	}
}

// TestEscapedKeysNeedLittleMemory: an object with an escaped key needs no map of its own.
func TestEscapedKeysNeedLittleMemory(t *testing.T) {
	text := []byte("[" + strings.Repeat(`{"\n":1},`, 1000) + `{"\u006e":2}]`)
	if n := testing.AllocsPerRun(10, func() { _, _ = Parse(text) }); n > 100 {
		t.Errorf("%v allocations", n)
	}
	if got := parse(t, string(text)).At(1000).Get("n"); string(got.Raw()) != "2" {
		t.Errorf("the member n is %s", got.Raw())
	}
}

func TestTokens(t *testing.T) {
	for pointer, want := range map[string][]string{"/a~1b/~0~01/0": {"a/b", "~~1", "0"}, "a": {"a"}, "/": {""}, "": {""}} {
		if got := Tokens(pointer); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q", pointer, got)
		}
	}
}

func TestChild(t *testing.T) {
	root := parse(t, `{"list":[10,20],"0":"zero","-1":"minus"}`)
	for _, test := range []struct {
		of          Node
		token, want string
	}{
		{root, "0", `"zero"`},
		{root, "-1", `"minus"`},
		{root, "none", ""},
		{root.Get("list"), "0", "10"},
		{root.Get("list"), "1", "20"},
		{root.Get("list"), "2", ""},
		{root.Get("list"), "-1", ""},
		{root.Get("list"), "x", ""},
		{root.Get("0"), "0", ""},
		{Node{}, "0", ""},
	} {
		if got := string(test.of.Child(test.token).Raw()); got != test.want {
			t.Errorf("%s of %s: %s, want %s", test.token, test.of.Raw(), got, test.want)
		}
	}
}

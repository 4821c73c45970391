package rawjson

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestLongTextsStop: reading a long text ends soon after its context.
func TestLongTextsStop(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("canceled by the client")
	cancel(why)
	members := make([]string, 2000)
	for i := range members {
		members[i] = fmt.Sprintf(`"k%d":%d`, i, i)
	}
	text := []byte(`{` + strings.Join(members, ",") + `}`)
	for name, read := range map[string]func() error{
		"check": func() error { return CheckContext(ctx, text) },
		"parse": func() error { _, err := ParseContext(ctx, text); return err },
		"walk": func() error {
			return Walk(ctx, text, func(int, []byte, byte) bool { return true }, func(int, int) {})
		},
	} {
		if err := read(); !errors.Is(err, why) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLargeObjects: members of a large object are found by their decoded keys, the last one of
// several.
func TestLargeObjects(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"é":0,"\u0061":1`)
	for i := range 1000 {
		fmt.Fprintf(&b, `,"k%d":%d`, i, i)
	}
	unique := parse(t, b.String()+`}`)
	double := parse(t, b.String()+`,"k7":"last","\u006b8":"last"}`)
	for _, test := range []struct {
		root      Node
		key, want string
	}{
		{unique, "é", "0"}, {unique, "a", "1"}, {unique, "k0", "0"}, {unique, "k999", "999"}, {unique, "k1000", ""}, {unique, "", ""},
		{double, "k7", `"last"`}, {double, "k8", `"last"`}, {double, "k9", "9"},
	} {
		if got := string(test.root.Get(test.key).Raw()); got != test.want {
			t.Errorf("%q is %s, want %s", test.key, got, test.want)
		}
	}
	for root, want := range map[Node]int{unique: 1002, double: 1002} {
		count := 0
		for range root.Members() {
			count++
		}
		if count != want {
			t.Errorf("%d members, want %d", count, want)
		}
	}
}

func TestDuplicatesInTrees(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":1,"b":2}`:                  `1 2`,
		`{"a":1,"b":2,"a":3}`:            `2 3`,
		`{"a":1,"\u0061":2}`:             `2`,
		`[{"a":1},{"a":2}]`:              ``,
		`{"x":{"a":1,"a":2},"a":3}`:      `{"a":1,"a":2} 3`,
		`{"a":{"a":1},"b":{"b":{}}}`:     `{"a":1} {"b":{}}`,
		`{"\ud800":1,"\ud801":2}`:        `1 2`,
		`{"":1,"":2}`:                    `2`,
		`{"\ud83d\ude00":1,"` + "😀\":2}": `2`,
	} {
		var got []string
		for _, n := range parse(t, text).Members() {
			got = append(got, string(n.Raw()))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestAppendCompact(t *testing.T) {
	const text = ` { "a b" : [ 1 , "x \" y" , { } ] , "c" : null } `
	want := string(Compact([]byte(text)))
	for limit := range len(want) + 3 {
		got := string(AppendCompact(nil, []byte(text), limit))
		if got != want[:min(limit+1, len(want))] {
			t.Errorf("up to %d bytes: %s", limit, got)
		}
	}
}

func TestEqualCompact(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{`{"a":[1,2]}`, " {\n\t\"a\" : [ 1 , 2 ] } ", true},
		{`"a b"`, `"ab"`, false},
		{`"\" x"`, `"\" x"`, true},
		{`"\\" `, `"\\"`, true},
		{`["\\ ",1]`, `["\\",1]`, false},
		{`["\"",1]`, `["\"", 1]`, true},
		{`[1]`, `[1,2]`, false},
		{`[12]`, `[1]`, false},
		{`1`, `1.0`, false},
		{`"\u0061"`, `"a"`, false},
	} {
		if EqualCompact([]byte(test.a), []byte(test.b)) != test.want || EqualCompact([]byte(test.b), []byte(test.a)) != test.want {
			t.Errorf("%s and %s: want %v", test.a, test.b, test.want)
		}
	}
}

func TestWalk(t *testing.T) {
	var b bytes.Buffer
	err := Walk(t.Context(), []byte(` {"a": [1, {"skipped": {"x": 1}}, []], "b": "y"} `), func(depth int, key []byte, kind byte) bool {
		fmt.Fprintf(&b, "%d%s%c ", depth, key, kind)
		return depth < 2 || kind == '['
	}, func(depth, count int) { fmt.Fprintf(&b, "%d/%d ", depth, count) })
	if want := `0{ 1"a"[ 21 2{ 2[ 2/0 1/3 1"b"" 0/2 `; b.String() != want || err != nil {
		t.Errorf("got  %s, %v\nwant %s", b.String(), err, want)
	}
}

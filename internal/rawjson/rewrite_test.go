package rawjson

import (
	"slices"
	"strings"
	"testing"
)

func TestRewrite(t *testing.T) {
	upper := func(text string) string { return strings.ReplaceAll(text, "x", "X") }
	for _, test := range []struct{ value, want, withKeys string }{
		{`{}`, `{}`, `{}`},
		{` [ ] `, ` [ ] `, ` [ ] `},
		{`"x"`, `"X"`, `"X"`},
		{` { "x" : [ "x" , {"a":"\u0078\n"} , true , null, 1.0 ] , "b":"\u0041" } `, ` { "x" : [ "X" , {"a":"X\n"} , true , null, 1.0 ] , "b":"\u0041" } `, ` { "X" : [ "X" , {"a":"X\n"} , true , null, 1.0 ] , "b":"\u0041" } `},
		{`{"a":`, ``, ``},
		{`{"a":1} x`, ``, ``},
	} {
		if got := string(Rewrite([]byte(test.value), nil, func(_ []string, text string) string { return upper(text) })); got != test.want {
			t.Errorf("Rewrite(%s) = %s, want %s", test.value, got, test.want)
		}
		if got := string(Rewrite([]byte(test.value), upper, func(_ []string, text string) string { return upper(text) })); got != test.withKeys {
			t.Errorf("Rewrite(%s) with keys = %s, want %s", test.value, got, test.withKeys)
		}
	}
}

func TestRewritePaths(t *testing.T) {
	var got []string
	value := []byte(`{"a":{"b":["1",[2]],"c":{}},"d":"3","\u0065":-4e5}`)
	changed := Rewrite(value, nil, func(path []string, text string) string {
		got = append(got, strings.Join(path, ".")+"="+text)
		return text + "!"
	})
	if want := []string{"a.b=1", "a.b=2", "d=3", "e=-4e5"}; !slices.Equal(got, want) {
		t.Errorf("visited %q, want %q", got, want)
	}
	if want := `{"a":{"b":["1!",["2!"]],"c":{}},"d":"3!","\u0065":"-4e5!"}`; string(changed) != want {
		t.Errorf("got %s, want %s", changed, want)
	}
}

// FuzzRewrite: what nothing changes keeps its bytes, and the result is valid JSON.
func FuzzRewrite(f *testing.F) {
	for _, text := range samples {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		isValid := Check(value) == nil
		same := Rewrite(value, func(key string) string { return key }, func(_ []string, text string) string { return text })
		if isValid && string(same) != string(value) || !isValid && same != nil {
			t.Fatalf("Rewrite(%q) = %q", value, same)
		}
		changed := Rewrite(value, func(key string) string { return key + "\"" }, func(_ []string, text string) string { return text + "\\" })
		if isValid && Check(changed) != nil {
			t.Fatalf("Rewrite(%q) = %q, which is not valid", value, changed)
		}
	})
}

func TestSplice(t *testing.T) {
	text := []byte(`{"a":1,"b":[2]}`)
	edits := []Edit{{12, 13, []byte("30")}, {5, 6, nil}, {1, 1, []byte(`"c":0,`)}}
	if got, want := string(Splice(text, edits)), `{"c":0,"a":,"b":[30]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := string(Splice(text, nil)); got != string(text) {
		t.Errorf("without edits: %s", got)
	}
}

package rawjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestTwice(t *testing.T) {
	var many []string
	for i := range 40 {
		many = append(many, fmt.Sprintf(`"k%d":{"k%d":1}`, i, i))
	}
	for text, want := range map[string]string{
		``:                                  "",
		`{}`:                                "",
		` { "a" : 1 , "b" : { "a" : 2 } }`:  "",
		`{"a":1,"a":2}`:                     "a",
		`{"a":1,"A":2}`:                     "",
		`{"a":1,"\u0061":2}`:                "a",
		`{"\u0061":1,"a":2}`:                "a",
		`{"\u0061":1,"\u0061":2}`:           "a",
		`{"":1,"":2}`:                       "",
		`[1,{"x":[{},{"y":1,"y":1}]}]`:      "1/x/1/y",
		`{"a":{"b":1},"b":{"b":1}}`:         "",
		`{"a":{"c":{}},"b":{"c":1,"c":2}}`:  "b/c",
		`"a"`:                               "",
		`{"a":1,"a"`:                        "",
		`{"a" 1,"a":2}`:                     "",
		`{"a":tru,"a":2}`:                   "",
		`{` + strings.Join(many, ",") + `}`: "",
		`{` + strings.Join(many, ",") + `,"k17":0}`:           "k17",
		`{` + strings.Join(many, ",") + `,"x":{"y":1,"y":1}}`: "x/y",
		strings.Repeat("[", 300) + strings.Repeat("]", 300):   "",
	} {
		path := Twice([]byte(text))
		if got := strings.Join(path, "/"); got != want || want != "" && path == nil {
			t.Errorf("Twice(%.80s) = %q, want %q", text, got, want)
		}
	}
	if path := Twice([]byte(`{"":1,"":2}`)); len(path) != 1 {
		t.Errorf("an empty key: %q", path)
	}
}

// Arguments of an ordinary size cost the room for their keys, and no map.
func TestTwiceAllocatesOnce(t *testing.T) {
	arguments := []byte(`{"path":"/tmp/a","options":{"tail":5,"follow":true,"filters":[{"a":1},{"a":2}]},"text":"some \"quoted\" text"}`)
	if n := testing.AllocsPerRun(100, func() {
		if Twice(arguments) != nil {
			t.Fatal("found one")
		}
	}); n > 1 {
		t.Errorf("%g allocations, want 1 at most", n)
	}
}

// FuzzTwice: encoding/json's tokens show a key twice in one object exactly where
// Twice says so.
func FuzzTwice(f *testing.F) {
	for _, text := range samples {
		f.Add([]byte(text))
	}
	for _, text := range []string{`{"a":1,"\u0061":2}`, `[{"a":{"b":1,"b":1}}]`, `{"a":[{"a":1},{"a":1}],"b":{"a":{}}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if Check(text) != nil {
			_ = Twice(text) // it only must not panic
			return
		}
		got := Twice(text)
		if want := repeats(json.NewDecoder(bytes.NewReader(text))); (got != nil) != want {
			t.Fatalf("Twice(%q) = %q, encoding/json sees one: %v", text, got, want)
		}
	})
}

// repeats reports whether the next value gives a key twice.
func repeats(d *json.Decoder) (found bool) {
	start, _ := d.Token()
	keys := map[string]bool{}
	switch start {
	case json.Delim('{'):
		for d.More() {
			key, _ := d.Token()
			found = found || keys[key.(string)]
			keys[key.(string)] = true
			found = repeats(d) || found
		}
	case json.Delim('['):
		for d.More() {
			found = repeats(d) || found
		}
	default:
		return false
	}
	_, _ = d.Token()
	return found
}

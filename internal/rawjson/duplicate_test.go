package rawjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

func TestDuplicateKey(t *testing.T) {
	var many []string
	for i := range 40 {
		many = append(many, fmt.Sprintf(`"k%d":{"k%d":1}`, i, i))
	}
	for text, want := range map[string]string{
		``:                                     "",
		`{}`:                                   "",
		` { "a" : 1 , "b" : { "a" : 2 } }`:     "",
		`{"a":1,"a":2}`:                        "a",
		`{"a":1,"A":2}`:                        "",
		`{"a":1,"\u0061":2}`:                   "a",
		`{"\u0061":1,"a":2}`:                   "a",
		`{"\u0061":1,"\u0061":2}`:              "a",
		`{"":1,"":2}`:                          "",
		`[1,{"x":[{},{"y":1,"y":1}]}]`:         "1/x/1/y",
		`{"a":{"b":1},"b":{"b":1}}`:            "",
		`{"a":{"c":{}},"b":{"c":1,"c":2}}`:     "b/c",
		`{"\ud800":1,"\ud801":2}`:              "",
		`{"\ud800":1,"\udc00":2}`:              "",
		`{"\ud800":1,"\ufffd":2}`:              "",
		`{"\ud800":1,"�":2}`:                   "",
		`{"\ud800x":1,"\ud800\u0078":2}`:       "�x",
		`{"\uD800":1,"\ud800":2}`:              "�",
		`{"\ud83d\ude00":1,"😀":2}`:             "😀",
		`{"\ud83d\ud83d\ude00":1,"\ud83d😀":2}`: "�😀",
		`{"\ud83d0ude00":1,"😀":2}`:             "", // the second half has no backslash
		`{"\n\b\f\r\t\/\\\"":1,"\u000a\u0008\u000c\u000d\u0009/\u005c\u0022":2}`: "\n\b\f\r\t/\\\"",
		`"a"`:                               "",
		`{"a":1,"a"`:                        "",
		`{"a" 1,"a":2}`:                     "",
		`{"a":tru,"a":2}`:                   "",
		`{` + strings.Join(many, ",") + `}`: "",
		`{` + strings.Join(many, ",") + `,"k17":0}`:               "k17",
		`{"\ud800":1,` + strings.Join(many, ",") + `,"\ud801":0}`: "",
		`{"\ud800":1,` + strings.Join(many, ",") + `,"\uD800":0}`: "�",
		`{` + strings.Join(many, ",") + `,"x":{"y":1,"y":1}}`:     "x/y",
		strings.Repeat("[", 300) + strings.Repeat("]", 300):       "",
	} {
		path := DuplicateKey([]byte(text))
		if got := strings.Join(path, "/"); got != want || want != "" && path == nil {
			t.Errorf("DuplicateKey(%.80s) = %q, want %q", text, got, want)
		}
	}
	if path := DuplicateKey([]byte(`{"":1,"":2}`)); len(path) != 1 {
		t.Errorf("an empty key: %q", path)
	}
}

// Arguments of an ordinary size cost no memory.
func TestDuplicateKeyDoesNotAllocate(t *testing.T) {
	arguments := []byte(`{"path":"/tmp/a","options":{"tail":5,"follow":true,"filters":[{"a":1},{"a":2}]},"text":"some \"quoted\" text"}`)
	if n := testing.AllocsPerRun(100, func() {
		if DuplicateKey(arguments) != nil {
			t.Fatal("found one")
		}
	}); n > 0 {
		t.Errorf("%g allocations", n)
	}
}

// FuzzDuplicateKey: encoding/json's tokens show a key twice in one object exactly where
// DuplicateKey says so, keys compared as UTF-16.
func FuzzDuplicateKey(f *testing.F) {
	for _, text := range samples {
		f.Add([]byte(text))
	}
	for _, text := range []string{
		`{"a":1,"\u0061":2}`, `[{"a":{"b":1,"b":1}}]`, `{"a":[{"a":1},{"a":1}],"b":{"a":{}}}`,
		`{"\ud800":1,"\ud801":2}`, `{"\ud83d\ude00":1,"😀":2}`, `{"\\ud800":1,"\\ud801":{"\uDC00":1,"\udc00":2}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if Check(text) != nil || !utf8.Valid(text) {
			_ = DuplicateKey(text) // it only must not panic
			return
		}
		got := DuplicateKey(text)
		r := keyReader{text, json.NewDecoder(bytes.NewReader(text))}
		if want := r.repeats(); (got != nil) != want {
			t.Fatalf("DuplicateKey(%q) = %q, encoding/json sees one: %v", text, got, want)
		}
	})
}

// keyReader reads a JSON text with encoding/json.
type keyReader struct {
	text []byte
	*json.Decoder
}

// repeats reports whether the next value gives a key twice.
func (r keyReader) repeats() (found bool) {
	start, _ := r.Token()
	keys := map[string]bool{}
	switch start {
	case json.Delim('{'):
		for r.More() {
			key := r.key()
			found = found || keys[key]
			keys[key] = true
			found = r.repeats() || found
		}
	case json.Delim('['):
		for r.More() {
			found = r.repeats() || found
		}
	default:
		return false
	}
	_, _ = r.Token()
	return found
}

var keyParts = regexp.MustCompile(`\\u[0-9a-fA-F]{4}|\\.|[^\\]+`)

// key reads a key and returns its UTF-16 units, printed.
func (r keyReader) key() string {
	before := r.InputOffset()
	_, _ = r.Token()
	raw := strings.TrimLeft(string(r.text[before:r.InputOffset()]), ", \t\r\n")
	var units []uint16
	for _, part := range keyParts.FindAllString(raw[1:len(raw)-1], -1) {
		if hex, ok := strings.CutPrefix(part, `\u`); ok {
			unit, _ := strconv.ParseUint(hex, 16, 16)
			units = append(units, uint16(unit))
			continue
		}
		var text string
		_ = json.Unmarshal([]byte(`"`+part+`"`), &text)
		units = append(units, utf16.Encode([]rune(text))...)
	}
	return fmt.Sprint(units)
}

package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestCheckAgreesWithEncodingJSON(t *testing.T) {
	for _, text := range samples {
		got := Check([]byte(text))
		if want := json.Valid([]byte(text)); (got == nil) != want {
			t.Errorf("Check(%q) = %v, encoding/json says valid = %v", text, got, want)
		}
	}
}

// FuzzCheck holds the scanner against encoding/json: the same texts are valid,
// and an object's members are the same.
func FuzzCheck(f *testing.F) {
	for _, text := range samples {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		err := Check(text)
		if errors.Is(err, ErrDepth) {
			return
		}
		if valid := json.Valid(text); (err == nil) != valid {
			t.Fatalf("Check(%q) = %v, encoding/json says valid = %v", text, err, valid)
		}
		var want map[string]json.RawMessage
		if json.Unmarshal(text, &want) != nil || want == nil {
			return
		}
		got := map[string]json.RawMessage{}
		if err := Object(text, func(key string, value []byte) bool { got[key] = value; return true }); err != nil {
			t.Fatalf("Object(%q): %v", text, err)
		}
		if !maps.EqualFunc(got, want, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
			t.Fatalf("Object(%q) = %q, encoding/json has %q", text, got, want)
		}
	})
}

var samples = []string{
	``, ` `, `null`, `nul`, `nullx`, `true`, `tru`, `false`, `fals`, `0`, `-0`, `01`, `-`, `1.`, `1.5`, `.5`, `1e`, `1e5`, `1E+5`, `1e-`,
	`9007199254740993`, `""`, `"a`, `"a\"b"`, `"\u00e9"`, `"\u00g9"`, `"\x"`, `"\u12"`, `"\`, "\"\n\"", "\"\x7f\"", "\"\xff\"", `"日本語日本語"`,
	`"12345678"`, `"1234567\\"`, `"1234567890123456789012345678901234567890"`, "\"1234567\x01\"", `"é234567"x`,
	`[]`, `[ ]`, `[1]`, `[1,]`, `[,1]`, `[1 2]`, `[1,2`, `[[[]]]`, `[}`,
	`{}`, `{ }`, `{"a":1}`, `{"a":1,}`, `{"a"}`, `{"a":}`, `{a:1}`, `{"a":1 "b":2}`, `{"a":1,"a":2}`, `{"\u0061":1}`, `{"a":{"b":[1,"x",null]}} `,
	`{"a":1}x`, `{"A":1,"a":2}`, "\t{\r\n\"k\" : \"v\" }\n", `{1:2}`, `{"a":1]`,
}

func TestDepth(t *testing.T) {
	if err := Check([]byte(strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth))); err != nil {
		t.Errorf("%d levels: %v", MaxDepth, err)
	}
	for _, open := range []string{"[", `{"a":`} {
		if err := Check([]byte(strings.Repeat(open, 1_000_000))); !errors.Is(err, ErrDepth) {
			t.Errorf("a million %q: %v, want ErrDepth", open, err)
		}
	}
}

func TestObjectRefusesOthers(t *testing.T) {
	for _, text := range []string{``, `[]`, `"x"`, `{"a":1} 2`, `{"a"`} {
		if err := Object([]byte(text), func(string, []byte) bool { return true }); err == nil {
			t.Errorf("Object(%q) succeeded", text)
		}
	}
}

func TestMembersAndElements(t *testing.T) {
	var got []string
	for key, value := range Members([]byte(` {"b": [1, 2] , "a":"x"}`)) {
		got = append(got, key+"="+string(value))
	}
	if want := []string{"b=[1, 2]", `a="x"`}; !slices.Equal(got, want) {
		t.Errorf("members %q, want %q", got, want)
	}
	for range Members([]byte(`{"a":1,"b":2}`)) {
		break // the iterator must accept that
	}
	for range Members([]byte(`[]`)) {
		t.Error("an array has no members")
	}
	got = nil
	for value := range Elements([]byte(` [1, {"a":2} ,"x"]`)) {
		got = append(got, string(value))
	}
	if want := []string{"1", `{"a":2}`, `"x"`}; !slices.Equal(got, want) {
		t.Errorf("elements %q, want %q", got, want)
	}
	for range Elements([]byte(`[1,2]`)) {
		break
	}
	for range Elements([]byte(`{}`)) {
		t.Error("an object has no elements")
	}
}

func TestRawMembers(t *testing.T) {
	var got []string
	for key, value := range RawMembers([]byte(` {"\u0062" : [1, 2] , "a":"x"}`)) {
		got = append(got, string(key)+"="+string(value))
	}
	if want := []string{`"\u0062"=[1, 2]`, `"a"="x"`}; !slices.Equal(got, want) {
		t.Errorf("members %q, want %q", got, want)
	}
	for range RawMembers([]byte(`{"a":1,"b":2}`)) {
		break
	}
	for _, text := range []string{``, `[]`, `{}`, `{"a"`} {
		for range RawMembers([]byte(text)) {
			t.Errorf("%s has a member", text)
		}
	}
}

func TestHasLoneSurrogate(t *testing.T) {
	for text, want := range map[string]bool{
		``:                             false,
		`{"a":"\u00e9\n"}`:             false,
		`"\ud83d\ude00"`:               false,
		`["\ud83d"]`:                   true,
		`"\ude00\ud83d"`:               true,
		`"\ud83d\ud83d\ude00"`:         true,
		`"\ud83d\n"`:                   true,
		`"\ud83d0ude00"`:               true,
		`{"\uDFFF":1}`:                 true,
		`"\\ud800"`:                    false,
		`"\\\ud800"`:                   true,
		"\"\xed\xa0\x80 is no UTF-8\"": false,
	} {
		if got := HasLoneSurrogate([]byte(text)); got != want {
			t.Errorf("HasLoneSurrogate(%s) = %v", text, got)
		}
	}
}

func TestGet(t *testing.T) {
	object := []byte(`{"a":1,"A":2,"a":3,"\u0062":4}`)
	for key, want := range map[string]string{"a": "3", "A": "2", "b": "4", "c": ""} {
		if got := string(Get(object, key)); got != want {
			t.Errorf("Get(%q) = %q, want %q", key, got, want)
		}
	}
}

func TestGetString(t *testing.T) {
	object := []byte(`{"a":"x\ny","b":2,"c":null}`)
	for key, want := range map[string]string{"a": "x\ny", "b": "", "c": "", "d": ""} {
		if got := GetString(object, key); got != want {
			t.Errorf("GetString(%q) = %q, want %q", key, got, want)
		}
	}
}

func TestWith(t *testing.T) {
	for _, c := range []struct{ object, key, value, want string }{
		{`{}`, "a", "1", `{"a":1}`},
		{` { "a" : 1 , "b" : [ 2 ] } `, "a", `"x"`, `{"a":"x","b":[ 2 ]}`},
		{`{"a":1,"b":2}`, "c", "3", `{"a":1,"b":2,"c":3}`},
		{`{"a":1,"b":2}`, "a", "", `{"b":2}`},
		{`{"a":1,"b":2,"a":3}`, "a", "4", `{"a":4,"b":2}`},
		{`{"a":1}`, "c", "", `{"a":1}`},
		{`{"\ud800":1,"\u0061":2}`, "a", "3", `{"\ud800":1,"\u0061":3}`},
		{`null`, "c", "1", `{"c":1}`},
		{``, "c", "1", `{"c":1}`},
	} {
		var value []byte
		if c.value != "" {
			value = []byte(c.value)
		}
		if got := string(With([]byte(c.object), c.key, value)); got != c.want {
			t.Errorf("With(%s, %s, %s) = %s, want %s", c.object, c.key, c.value, got, c.want)
		}
	}
}

func TestStrings(t *testing.T) {
	for _, s := range []string{"", "plain", "quote\"", "back\\slash", "tab\t", "é", "<script>&", "\x7f", "\u2028"} {
		quoted := AppendString(nil, s)
		if err := Check(quoted); err != nil {
			t.Errorf("AppendString(%q) = %s: %v", s, quoted, err)
		}
		if got, ok := String(quoted); !ok || got != s {
			t.Errorf("String(%s) = %q, %v", quoted, got, ok)
		}
	}
	for _, value := range []string{"", "1", "null", `{}`} {
		if got, ok := String([]byte(value)); ok {
			t.Errorf("String(%q) = %q, want none", value, got)
		}
	}
}

func TestAppendStringEscapesWhatItMust(t *testing.T) {
	for in, want := range map[string]string{
		"<a href=\"x\">&": `"<a href=\"x\">&"`,
		"a\nb\tc\rd\x01":  `"a\nb\tc\u000dd\u0001"`,
		"bad\xffbyte\xf0": "\"bad\ufffdbyte\ufffd\"",
		"\ufffd":          "\"\ufffd\"",
		"日本語😀":            `"日本語😀"`,
	} {
		if got := string(AppendString(nil, in)); got != want {
			t.Errorf("AppendString(%q) = %s, want %s", in, got, want)
		}
	}
}

// FuzzAppendString: a decoder reads back what was written, made valid.
func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "a\"b", "\x00\x1f\x7f", "\xff\xfe", "\u2028"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		if err := json.Unmarshal(AppendString(nil, s), &got); err != nil || got != strings.ToValidUTF8(s, "\ufffd") && got != string([]rune(s)) {
			t.Fatalf("AppendString(%q) reads as %q, %v", s, got, err)
		}
	})
}

func TestKind(t *testing.T) {
	for text, want := range map[string]byte{"": 0, " {": '{', "\n[1]": '[', "-1": '-'} {
		if got := Kind([]byte(text)); got != want {
			t.Errorf("Kind(%q) = %q, want %q", text, got, want)
		}
	}
	if !IsNull(nil) || !IsNull([]byte("null")) || IsNull([]byte(`""`)) {
		t.Error("IsNull")
	}
}

func TestOrObject(t *testing.T) {
	for text, want := range map[string]string{"": "{}", "null": "{}", `"{"`: "{}", "[{}]": "{}", "{}": "{}", ` {"a": 1} `: ` {"a": 1} `} {
		if got := string(OrObject([]byte(text))); got != want {
			t.Errorf("OrObject(%q) = %q, want %q", text, got, want)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	text := []byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"` + strings.Repeat("some text of a result, ", 45_000) + `"}]}}`)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if Check(text) != nil {
			b.Fatal("invalid")
		}
	}
}

// BenchmarkObject: the members of a small call, as the server and the executor read them.
func BenchmarkObject(b *testing.B) {
	call := []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"exec","arguments":{"server_name":"files","tool_name":"read_file","arguments":{"path":"notes/today.md"}}}}`)
	b.SetBytes(int64(len(call)))
	b.ReportAllocs()
	for b.Loop() {
		if Get(call, "params") == nil {
			b.Fatal("no params")
		}
	}
}

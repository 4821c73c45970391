package lockfile

import (
	"bytes"
	"encoding/json"
	"testing"

	"mcpx/internal/rawjson"
)

// The examples of RFC 8785, and the values that it excludes.
func TestCanonical(t *testing.T) {
	for _, test := range []struct{ name, value, want string }{
		{"section 3.2.2", `{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
			"string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/", "literals": [null, true, false]}`,
			`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`},
		{"section 3.2.3", `{"\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh", "1": "One",
			"\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control", "\u00f6": "Latin Small Letter O With Diaeresis"}`,
			"{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u0080\":\"Control\",\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\"," +
				"\"😀\":\"Emoji: Grinning Face\",\"\ufb33\":\"Hebrew Letter Dalet With Dagesh\"}"},
		{"numbers", `[0, -0, 0.0, 1.0, 10e1, 1e21, 1e20, 1e-6, 1e-7, -1.5e-10, 5e-324, 1.7976931348623157e308, 9007199254740992, 295147905179352830000]`,
			`[0,0,0,1,100,1e+21,100000000000000000000,0.000001,1e-7,-1.5e-10,5e-324,1.7976931348623157e+308,9007199254740992,295147905179352830000]`},
		{"large integers stay different", `[9007199254740993, 9007199254740995, 1e400]`, `[9007199254740993,9007199254740995,1e400]`},
		{"half of a pair", `["\ud83d", "\ude00x", "\ud83d\ud83d\ude00"]`, `["\ud83d","\ude00x","\ud83d😀"]`},
		{"duplicate keys", `{"b": 1, "a": 2, "b": 3}`, `{"a":2,"b":1,"b":3}`},
		{"escapes", `"\b\f\n\r\t\u0000\u007f<>&"`, `"\b\f\n\r\t\u0000` + "\u007f" + `<>&"`},
		{"empty", ` { } `, `{}`},
		{"nested", `[ [ ] , { "a" : [ { } ] } ]`, `[[],{"a":[{}]}]`},
	} {
		if got := string(Canonical([]byte(test.value))); got != test.want {
			t.Errorf("%s: got\n%s\nwant\n%s", test.name, got, test.want)
		}
	}
}

// FuzzCanonical: the canonical form is valid, is its own canonical form, and does not
// depend on white space.
func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{`{"b":[1.0,"\ud83d\ude00"],"a":null}`, `"\ud800"`, `-0`, `1e5`, `{"a":1,"a":2}`, `123456789012345678901234567890`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		if rawjson.Check(value) != nil {
			return
		}
		got := Canonical(value)
		if err := rawjson.Check(got); err != nil {
			t.Fatalf("%q: %q is invalid: %v", value, got, err)
		}
		if again := Canonical(got); !bytes.Equal(again, got) {
			t.Errorf("%q: %q, and again %q", value, got, again)
		}
		var indented bytes.Buffer
		if json.Indent(&indented, value, "", "\t") == nil {
			if other := Canonical(indented.Bytes()); !bytes.Equal(other, got) {
				t.Errorf("%q: %q, and indented %q", value, got, other)
			}
		}
	})
}

package lockfile

import (
	"strings"
	"testing"
	"time"
)

func TestReview(t *testing.T) {
	pinned := func(definition string) string { return Pin(Tools, []byte(definition)) }
	for _, test := range []struct {
		name   string
		change Change
		want   string
	}{
		{"description",
			Change{"github", Tools, "create", pinned(`{"name":"create","description":"Creates an issue now."}`), pinned(`{"name":"create","description":"Deletes an issue and all others."}`)},
			"github: changed tool \"create\"\n  ~ description: [-Creates-]{+Deletes+} an issue [-now-]{+and all others+}.\n"},
		{"schema paths",
			Change{"github", Tools, "create", pinned(`{"name":"a","inputSchema":{"properties":{"x":{"type":"string"},"a b":{}},"required":["x"],"maximum":1}}`),
				pinned(`{"name":"a","inputSchema":{"properties":{"x":{"type":"number"},"note":{"description":"why"}},"required":["x","note"],"maximum":2}}`)},
			"github: changed tool \"create\"\n  ~ inputSchema.maximum: [-1-] {+2+}\n  + inputSchema.properties.note.description: why\n" +
				"  ~ inputSchema.properties.x.type: [-string-]{+number+}\n  - inputSchema.properties[\"a b\"]: {}\n  + inputSchema.required[1]: note\n"},
		{"hidden characters and a URL",
			Change{"s", Tools, "t", pinned(`{"name":"t","description":"See https://good.example/x for more."}`),
				pinned(`{"name":"t","description":"See https://good.example/x or https://evil.example/?q=1 for\u200b \u202emore\udb40\udc41.\ufe0f\n"}`)},
			"s: changed tool \"t\"\n  ~ description: See https://good.example/x {+or https://evil.example/?q=1 +}for{+\\u200b+} {+\\u202e+}more{+\\U000e0041+}.{+\\ufe0f\\n+}\n" +
				"  ! new URL: https://evil.example/?q=1\n  ! 4 hidden characters, shown as escapes\n"},
		{"new tool",
			Change{"s", Tools, "t\x1b", "", pinned(`{"name":"t","description":"Does.","inputSchema":{"type":"object"}}`)},
			"s: new tool \"t\\u001b\"\n  + name: t\n  + description: Does.\n  + inputSchema.type: object\n"},
		{"gone", Change{"s", Tools, "t", pinned(`{"name":"t"}`), ""}, "s: gone tool \"t\"\n  - name: t\n"},
		{"instructions", Change{"s", instructions, "", `"Be kind."`, `"Be evil."`}, "s: changed instructions\n  ~ Be [-kind-]{+evil+}.\n"},
		{"command", Change{"s", origin, "", `["npx","a"]`, `["npx","b"]`}, "s: changed command or url\n  ~ [1]: [-a-]{+b+}\n"},
		{"duplicate keys", Change{"s", Tools, "t", `{"a":1,"a":2}`, `{"a":3,"a":2}`}, "s: changed tool \"t\"\n  ~ [-{\"a\":1,\"a\":2}-] {+{\"a\":3,\"a\":2}+}\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.change.Review(false); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain é 日本語":        "plain é 日本語",
		"a\u200db":           `a\u200db`, // plain.Line keeps the joiner
		"a\u00a0b\u3000c":    `a\u00a0b\u3000c`,
		"x\u3164\u2800":      `x\u3164\u2800`,
		"\U000e0100\ue000":   `\U000e0100\ue000`,
		"\x00\x7f\u0085\r":   `\u0000\u007f\u0085\u000d`,
		"line\nbreak\ttab":   `line\nbreak\ttab`,
		"\u2028\u2066\ufeff": `\u2028\u2066\ufeff`,
	} {
		if got := visible(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

// FuzzWordDiff: the old and the new text can be read from the difference.
func FuzzWordDiff(f *testing.F) {
	f.Add("a b c", "a x c")
	f.Add("", "new text")
	f.Add("one two  three", "two three four\n")
	f.Fuzz(func(t *testing.T, old, now string) {
		var a, b strings.Builder
		for _, e := range wordDiff(old, now) {
			if e.state != '+' {
				a.WriteString(e.text)
			}
			if e.state != '-' {
				b.WriteString(e.text)
			}
		}
		if a.String() != old || b.String() != now {
			t.Errorf("%q and %q became %q and %q", old, now, a.String(), b.String())
		}
	})
}

// A long text costs limited time.
func TestWordDiffIsBounded(t *testing.T) {
	old, now := strings.Repeat("a b ", 1<<15), strings.Repeat("c d ", 1<<15)
	begin := time.Now()
	if edits := wordDiff(old, now); len(edits) == 0 {
		t.Error("no difference")
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
}

package plain

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestLine(t *testing.T) {
	for in, want := range map[string]string{
		"":                       "",
		"plain text":             "plain text",
		"two\nlines\r\n":         `two\nlines\u000d\n`,
		"tab\there":              "tab here",
		"\x1b[31mred\x1b[0m":     `\u001b[31mred\u001b[0m`,
		"evil\u202etxt.exe":      `evil\u202etxt.exe`,
		"zero\u200bwidth":        `zero\u200bwidth`,
		"tag\U000e0041":          `tag\U000e0041`,
		"line\u2028sep":          `line\u2028sep`,
		"日本語 é":                  "日本語 é",
		"👩\u200d👩":               "👩\u200d👩",
		"bad \xff byte":          "bad \ufffd byte",
		"del\x7f":                `del\u007f`,
		"é then newline\nsecond": `é then newline\nsecond`,
	} {
		if got := Line(in); got != want {
			t.Errorf("Line(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestJoined(t *testing.T) {
	for in, want := range map[string]string{
		"":                                  "",
		"one line":                          "one line",
		"\n    # AWS\r\n\n\tUse it.  \n":    "# AWS Use it.",
		"line\u2028sep\x1b[31m\nevil\u202e": `line sep\u001b[31m evil\u202e`,
	} {
		if got := Joined(in); got != want {
			t.Errorf("Joined(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                     "plain",
		"two\r\nlines\n\tand tab\n": "two\nlines\n\tand tab\n",
		"a\x1b[2Jb\nc\rd":           `a\u001b[2Jb` + "\n" + `c\u000dd`,
		"evil\u202etxt\n":           `evil\u202etxt` + "\n",
		"\u009b31m":                 `\u009b31m`,
	} {
		if got := Text(in); got != want {
			t.Errorf("Text(%q) = %q, want %q", in, got, want)
		}
	}
}

// What JSON returns shows everything, and means the same.
func TestJSON(t *testing.T) {
	for in, want := range map[string]string{
		"{\n  \"a\": 1\n}":                   "{\n  \"a\": 1\n}",
		"[\"\u009b31m\", \"\u202e\", \"é\"]": `["\u009b31m", "\u202e", "é"]`,
		"\"tag\U000e0041 del\x7f\"":          `"tag\udb40\udc41 del\u007f"`,
	} {
		got := string(JSON([]byte(in)))
		if got != want {
			t.Errorf("JSON(%q) = %q, want %q", in, got, want)
		}
		var before, after any
		if json.Unmarshal([]byte(in), &before) != nil || json.Unmarshal([]byte(got), &after) != nil || !reflect.DeepEqual(before, after) {
			t.Errorf("%q means %v, %q means %v", in, before, got, after)
		}
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		in    string
		limit int
		want  string
	}{
		{"short", 5, "short"},
		{"longer", 5, "lo…"},
		{"éééé", 7, "éé…"},
		{"éééé", 6, "é…"},
		{"abc", 1, "…"},
	} {
		if got := Cut(c.in, c.limit); got != c.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", c.in, c.limit, got, c.want)
		}
	}
}

// FuzzLine: a line stays a line, valid, and is not changed a second time.
func FuzzLine(f *testing.F) {
	for _, s := range []string{"a\nb", "\x1b[0m", "\xff", "\u202e", "日本語"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Line(s)
		if strings.ContainsAny(got, "\n\r\x1b\x00\u2028") || !utf8.ValidString(got) {
			t.Fatalf("Line(%q) = %q", s, got)
		}
		if again := Line(got); again != got {
			t.Fatalf("Line(%q) = %q, but Line of that is %q", s, got, again)
		}
	})
}

func TestShell(t *testing.T) {
	for word, want := range map[string]string{
		"":           "''",
		"plain-1.2":  "plain-1.2",
		"two words":  "'two words'",
		"it's":       `'it'\''s'`,
		"$(rm -rf)":  "'$(rm -rf)'",
		"a://b?c=d":  "'a://b?c=d'",
		"./a/b:c=@d": "./a/b:c=@d",
	} {
		if got := Shell(word); got != want {
			t.Errorf("%q: got %s, want %s", word, got, want)
		}
	}
}

package plain

import (
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

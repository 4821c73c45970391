package reference

import (
	"slices"
	"strings"
	"testing"
)

func TestSplit(t *testing.T) {
	for _, test := range []struct {
		text string
		want []Part
	}{
		{"", nil},
		{"plain $VAR $$", []Part{{Text: "plain $VAR $$"}}},
		{"a ${B} c", []Part{{Text: "a "}, {Text: "${B}", Name: "B"}, {Text: " c"}}},
		{"${env:B}", []Part{{Text: "${env:B}", Name: "B"}}},
		{"${B:-}", []Part{{Text: "${B:-}", Name: "B", HasFallback: true}}},
		{"${B:-x:y}", []Part{{Text: "${B:-x:y}", Name: "B", Fallback: "x:y", HasFallback: true}}},
		{"${file:a/b}", []Part{{Text: "${file:a/b}", Name: "a/b", Place: File}}},
		{"${keyring:token}", []Part{{Text: "${keyring:token}", Name: "token", Place: Keyring}}},
		{"${input:token}", []Part{{Text: "${input:token}", IsForeign: true}}},
		{"${MCPX}", []Part{{Text: "${MCPX}", Name: "MCPX", IsSelf: true}}},
		{"${env:MCPX}", []Part{{Text: "${env:MCPX}", Name: "MCPX"}}},
	} {
		got, err := Split(test.text)
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("Split(%q) = %+v, %v; want %+v", test.text, got, err, test.want)
		}
		isStored := slices.ContainsFunc(test.want, func(p Part) bool { return p.Place != "" })
		if HasStored(test.text) != isStored {
			t.Errorf("HasStored(%q) = %v", test.text, !isStored)
		}
	}
}

func TestCheck(t *testing.T) {
	for text, want := range map[string]string{
		"a ${B":           `"${" without "}"`,
		"${}":             "is no reference",
		"${a b:-hunter2}": `"${a b}" is no reference`,
		"${A:-${B}}":      "cannot hold another reference",
		"${file:}":        "needs the path of a file",
		"${keyring:}":     "name",
	} {
		if err := Check(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Check(%q) = %v; want %q", text, err, want)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error repeats a default, which may be a secret: %v", err)
		}
	}
}

func TestCheckName(t *testing.T) {
	for name, ok := range map[string]bool{
		"github": true, "work/github.com": true, "me@x": true, "A_1-b": true,
		"": false, "-x": false, "a b": false, "a\n": false, "ä": false, "a}": false, strings.Repeat("a", 129): false,
	} {
		if got := CheckName(name) == nil; got != ok {
			t.Errorf("%q: %t, want %t", name, got, ok)
		}
	}
}

// The law: the parts of a text are the whole text.
func FuzzMap(f *testing.F) {
	for _, seed := range []string{"", "a ${B} c", "${B:-x}${file:y}", "$${{}}", "${input:x}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Map(text, func(p Part) string { return p.Text })
		if err == nil && got != text {
			t.Errorf("Map(%q) = %q", text, got)
		}
	})
}

package config

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

const pem = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq/hkiG9w0B+AQEFAASC\nBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\nabcdefgh\nA==\n-----END PRIVATE KEY-----\n"

// upstreamWith returns an upstream with one environment variable.
func upstreamWith(t testing.TB, name, value string) *Upstream {
	t.Helper()
	text, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"a": map[string]any{"command": "x", "env": map[string]string{name: "${VALUE}"}}}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse("x.json", text, variables("VALUE="+value))
	if err != nil {
		t.Fatal(err)
	}
	return &c.Profiles[0].Upstreams[0]
}

func TestRedactLines(t *testing.T) {
	folder := t.TempDir()
	tests := []struct{ name, variable, value, text, want string }{
		{"whole", "PRIVATE_KEY", pem, "key: " + pem + ".", "key: ***."},
		{"whole without the last line break", "PRIVATE_KEY", pem, "key: " + strings.TrimSpace(pem) + ".", "key: ***."},
		{"first line", "PRIVATE_KEY", pem, "-----BEGIN PRIVATE KEY-----", "***"},
		{"middle line", "PRIVATE_KEY", pem, "  MIIEvQIBADANBgkq/hkiG9w0B+AQEFAASC\r", "  ***\r"},
		{"line of letters", "PRIVATE_KEY", pem, "abcdefgh", "***"},
		{"line of under six characters", "PRIVATE_KEY", pem, "A==", "A=="},
		{"carriage returns", "PRIVATE_KEY", "first-line-1\r\nsecond-line-2\r\n", "first-line-1\nsecond-line-2", "***\n***"},
		{"line with a backslash", "PASSWORDS", "first-1\nC:\\new-2", "at C:\\new-2", "at ***"},
		{"indented line", "NOTES", "a:\n    s3cret-value\n", "s3cret-value", "***"},
		{"line breaks written as \\n", "PRIVATE_KEY", strings.ReplaceAll(pem, "\n", `\n`), "BKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj", "***"},
		{"in JSON in a variable", "ACCOUNT", `{"type": "service", "private_key": "-----BEGIN KEY-----\nMIIEvQIBADANBgkq4\n-----END KEY-----"}`, "MIIEvQIBADANBgkq4", "***"},
		{"words under a plain name", "ACTIONS", "search\nupdate\nremove all", "search update remove all", "search update remove all"},
		{"words under a secret name", "PASSWORDS", "swordfish\nopensesame", "opensesame", "***"},
		{"common words", "AUTH_MODES", "default\nproduction\n" + folder, "default production " + folder, "default production " + folder},
		{"no letters and no digits", "API_KEYS", "--------\nfirst-key-1", "-------- first-key-1", "-------- ***"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := upstreamWith(t, test.variable, test.value).Redact(test.text); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	c := mustParse(t, `{"mcpServers": {"a": {"command": "x", "args": ["--api-key", "first-1\nsecond-2"]}}}`)
	if got := c.Profiles[0].Upstreams[0].Redact("second-2"); got != "***" {
		t.Errorf("a line of an argument: got %q", got)
	}
}

func TestRedactEscaped(t *testing.T) {
	const password = "pa\"ss\\wörd'<987>/😀"
	quoted := func(text string) string { return text[1 : len(text)-1] }
	asJSON := func(text string) string {
		b, _ := json.Marshal(text)
		return quoted(string(b))
	}
	tests := []struct{ name, secret, text string }{
		{"JSON", password, `pa\"ss\\wörd'<987>/😀`},
		{"JSON of Go", password, asJSON(password)},
		{"JSON in ASCII", password, `pa\"ss\\w\u00f6rd'<987>\/\ud83d\ude00`},
		{"JSON in ASCII, upper case", password, `pa\"ss\\w\u00F6rd'<987>\/\uD83D\uDE00`},
		{"JSON in JSON", password, asJSON(asJSON(password))},
		{"JSON in JSON in JSON", password, asJSON(asJSON(asJSON(password)))},
		{"Python repr", password, `pa"ss\\wörd\'<987>/😀`},
		{"Python ascii", password, `pa"ss\\w\xf6rd\'<987>/\U0001f600`},
		{"Python bytes", password, `pa"ss\\w\xc3\xb6rd\'<987>/\xf0\x9f\x98\x80`},
		{"Go %q", password, quoted(strconv.Quote(password))},
		{"Go %+q", password, quoted(strconv.QuoteToASCII(password))},
		{"octal", password, `pa"ss\\w\303\266rd'<987>/\360\237\230\200`},
		{"shell", "pass word$1", `pass\ word\$1`},
		{"query", password, url.QueryEscape(password)},
		{"query in lower case", password, strings.ToLower(url.QueryEscape(password))},
		{"path", password, url.PathEscape(password)},
		{"query with a space", "pass word+1&2", url.QueryEscape("pass word+1&2")},
		{"query in JSON", "pass/word\n123", asJSON("a\n" + url.QueryEscape("pass/word\n123"))[len(`a\n`):]},
		{"several lines", pem, asJSON(pem)},
		{"one of several lines", pem, `MIIEvQIBADANBgkq\/hkiG9w0B+AQEFAASC`},
		{"one of several lines in a query", pem, url.QueryEscape("MIIEvQIBADANBgkq/hkiG9w0B+AQEFAASC")},
		{"as it is", `C:\new\"x"`, `C:\new\"x"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			u := upstreamWith(t, "PASSWORD", test.secret)
			for _, around := range []string{"", " ", "x", `\n`, "ö", `\u00f6`, `"`, "%41"} {
				text := around + test.text + around
				if got, want := u.Redact(text), around+Hidden+around; got != want {
					t.Errorf("Redact(%q) = %q, want %q", text, got, want)
				}
			}
		})
	}
}

// TestRedactKeepsOtherEscapes: escapes without a secret do not change, valid or not.
func TestRedactKeepsOtherEscapes(t *testing.T) {
	u := upstreamWith(t, "PASSWORD", "s3cret-value")
	for _, text := range []string{`C:\new\table`, `\`, `\u`, `\u00`, `\ud83d`, `\ud83d\u0041`, `\x`, `\xc3`, `\xc3\x`, `\U0001f6`, `\U99999999`, `\303`, `%`, `%4`, `%zz`, `100%`} {
		for _, secret := range []string{"", "s3cret-value"} {
			want := text + strings.ReplaceAll(secret, "s3cret-value", Hidden) + text
			if got := u.Redact(text + secret + text); got != want {
				t.Errorf("Redact(%q) = %q, want %q", text+secret+text, got, want)
			}
		}
	}
}

// The law: however a program escapes a secret, no text shows it. The text before must not
// end in half an escape, which would include the start of the secret.
func FuzzRedactEscaped(f *testing.F) {
	f.Add("s3cret-value", "before ", " after")
	f.Add("pa\"ss\\wörd 😀", "é", "é")
	f.Add("line-1\nline-2", "{", "}")
	f.Fuzz(func(t *testing.T, secret, before, after string) {
		secret = strings.ToValidUTF8(secret, "")
		if isTrivial(secret) || strings.ContainsRune(secret, 0) || strings.ContainsAny(before[max(0, len(before)-len(`\U0001f60`)):], `\%`) {
			t.Skip()
		}
		u := upstreamWith(t, "PASSWORD", secret)
		asJSON, err := json.Marshal(secret)
		if err != nil {
			t.Fatal(err)
		}
		for _, escaped := range []string{string(asJSON), fmt.Sprintf("%q", secret), fmt.Sprintf("%+q", secret), url.QueryEscape(secret), url.PathEscape(secret)} {
			escaped = strings.TrimSuffix(strings.TrimPrefix(escaped, `"`), `"`)
			if got := u.Redact(before + escaped + after); len(before+after)+len(Hidden) < len(got) {
				t.Errorf("%q, written as %q, is shown in %q", secret, escaped, got)
			}
		}
	})
}

func BenchmarkRedact(b *testing.B) {
	lines := make([]string, 50)
	for i := range lines {
		lines[i] = strings.Repeat(string(rune('A'+i)), 8) + fmt.Sprintf("%056d", i)
	}
	u := upstreamWith(b, "PRIVATE_KEY", strings.Join(lines, "\n"))
	for name, text := range map[string]string{
		"line":    "2026-07-28T12:00:00Z INFO MESSAGE of a server: request ABC was handled in 12 ms by worker 7",
		"escapes": strings.Repeat(`{"level":"INFO","text":"a \"quoted\" text\n"}`, 20),
		"4 KiB":   strings.Repeat("INFO MESSAGE of a server: ABC. ", 128),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				u.Redact(text)
			}
		})
	}
}

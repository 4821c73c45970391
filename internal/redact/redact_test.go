package redact

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const pem = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq/hkiG9w0B+AQEFAASC\nBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\nabcdefgh\nA==\n-----END PRIVATE KEY-----\n"

// setOf returns a Set with a secret and its lines.
func setOf(secret string) *Set { return NewSet(WithLines(secret)) }

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
			set := setOf(test.secret)
			for _, around := range []string{"", " ", "x", `\n`, "ö", `\u00f6`, `"`, "%41"} {
				text := around + test.text + around
				if got, want := set.Redact(text), around+Hidden+around; got != want {
					t.Errorf("Redact(%q) = %q, want %q", text, got, want)
				}
			}
		})
	}
}

// TestRedactKeepsOtherEscapes: escapes without a secret do not change, valid or not.
func TestRedactKeepsOtherEscapes(t *testing.T) {
	set := setOf("s3cret-value")
	for _, text := range []string{`C:\new\table`, `\`, `\u`, `\u00`, `\ud83d`, `\ud83d\u0041`, `\x`, `\xc3`, `\xc3\x`, `\U0001f6`, `\U99999999`, `\303`, `%`, `%4`, `%zz`, `100%`} {
		for _, secret := range []string{"", "s3cret-value"} {
			want := text + strings.ReplaceAll(secret, "s3cret-value", Hidden) + text
			if got := set.Redact(text + secret + text); got != want {
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
		if IsTrivial(secret) || strings.ContainsRune(secret, 0) || strings.ContainsAny(before[max(0, len(before)-len(`\U0001f60`)):], `\%`) {
			t.Skip()
		}
		set := setOf(secret)
		asJSON, err := json.Marshal(secret)
		if err != nil {
			t.Fatal(err)
		}
		for _, escaped := range []string{string(asJSON), fmt.Sprintf("%q", secret), fmt.Sprintf("%+q", secret), url.QueryEscape(secret), url.PathEscape(secret)} {
			escaped = strings.TrimSuffix(strings.TrimPrefix(escaped, `"`), `"`)
			if got := set.Redact(before + escaped + after); len(before+after)+len(Hidden) < len(got) {
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
	set := setOf(strings.Join(lines, "\n"))
	for name, text := range map[string]string{
		"line":    "2026-07-28T12:00:00Z INFO MESSAGE of a server: request ABC was handled in 12 ms by worker 7",
		"escapes": strings.Repeat(`{"level":"INFO","text":"a \"quoted\" text\n"}`, 20),
		"4 KiB":   strings.Repeat("INFO MESSAGE of a server: ABC. ", 128),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				set.Redact(text)
			}
		})
	}
}

// Secrets of earlier starts stay hidden, up to a limit.
func TestAddIsBounded(t *testing.T) {
	set := setOf("first-secret")
	for i := range 2 * maxAdded {
		set.Add([]string{fmt.Sprintf("secret-%d", i)})
		next := setOf("first-secret")
		next.AddSet(set)
		set = next
	}
	if n := len(*set.all.Load()); n > maxAdded+1 {
		t.Errorf("%d secrets are kept, want at most %d", n, maxAdded+1)
	}
	newest := fmt.Sprintf("secret-%d", 2*maxAdded-1)
	if got := set.Redact("first-secret " + newest); got != "*** ***" {
		t.Error(got)
	}
}

func TestNewSet(t *testing.T) {
	set := NewSet([]string{"with a space", "short", "production", "with a space", "a-secret"})
	if want := []string{"a-secret", "with a space", "with+a+space"}; !slices.Equal(set.first, want) {
		t.Errorf("got %q, want %q", set.first, want)
	}
	var none *Set
	if none.Redact("text") != "text" {
		t.Error("a nil Set has secrets")
	}
}

// What a server issued is hidden, even if it is an existing path or a common word.
func TestNewTokens(t *testing.T) {
	path := t.TempDir()
	set := NewTokens(path, "production", "short")
	if got := set.Redact(path + " production short"); got != "*** *** short" {
		t.Error(got)
	}
}

func TestLikely(t *testing.T) {
	for _, name := range []string{"API_KEY", "--password", "Authorization", "aws_secret_access_key"} {
		if !IsSecretName(name) {
			t.Errorf("%s is not a secret's name", name)
		}
	}
	if IsSecretName("region") {
		t.Error("region is a secret's name")
	}
	for text, want := range map[string]bool{
		"sk-abcdefgh": true, "ghp_abcdefgh": true, "a1b2c3d4e5f6g7h8i9j0": true, "abcdefghijklmnopqrstuvwxyz": false, "12345678901234567890": false, "mcp-server-time": false,
	} {
		if LooksLikeToken(text) != want {
			t.Errorf("LooksLikeToken(%q) = %v", text, !want)
		}
	}
}

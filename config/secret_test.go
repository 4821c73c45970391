package config

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"mcpx/internal/redact"
	"mcpx/internal/reference"
)

func TestRedact(t *testing.T) {
	existing := t.TempDir()
	tests := []struct{ name, upstream, text, want string }{
		{"env", `"command": "x", "env": {"A": "s3cret-value"}`, "got s3cret-value.", "got ***."},
		{"env expanded", `"command": "x", "env": {"A": "${KEY}"}`, "key-from-outside", "***"},
		{"env inside a text", `"command": "x", "env": {"DSN": "user ${KEY}"}`, "key-from-outside", "***"},
		{"env default", `"command": "x", "env": {"A": "${NONE:-fallback-1}"}`, "fallback-1", "***"},
		{"url in env", `"command": "x", "env": {"DATABASE": "postgres://me:pass-word@db/main"}`,
			"dial postgres://me:pass-word@db/main, pass-word", "dial postgres://***@db/main, ***"},
		{"word under a secret name", `"command": "x", "env": {"DB_PASSWORD": "swordfish"}`, "swordfish", "***"},
		{"word under a plain name", `"command": "x", "env": {"FLAVOR": "strawberry"}`, "strawberry", "strawberry"},
		{"short", `"command": "x", "env": {"TZ": "UTC", "API_KEY": "abc"}`, "UTC abc", "UTC abc"},
		{"common", `"command": "x", "env": {"MODE_KEY": "production"}`, "in production", "in production"},
		{"number", `"command": "x", "env": {"TIMEOUT": "120000"}`, "after 120000", "after 120000"},
		{"locale", `"command": "x", "env": {"ZONE": "Europe/Berlin"}`, "Europe/Berlin", "Europe/Berlin"},
		{"plain url", `"command": "x", "env": {"BASE": "https://api1.example.com/v1"}`, "https://api1.example.com/v1", "https://api1.example.com/v1"},
		{"path that exists", `"command": "x", "env": {"AUTH_FILE": "${FOLDER}"}`, existing, existing},
		{"path that does not", `"command": "x", "env": {"AUTH_FILE": "/no/such/file"}`, "/no/such/file", "***"},

		{"header", `"url": "https://example.com", "headers": {"Authorization": "Bearer abcdef123"}`,
			"Bearer abcdef123 and abcdef123", "*** and ***"},
		{"header expanded", `"url": "https://example.com", "headers": {"X": "Token ${KEY}"}`, "key-from-outside", "***"},

		{"arg expanded", `"command": "x", "args": ["${KEY}"]`, "key-from-outside", "***"},
		{"command expanded", `"command": "${KEY}"`, "key-from-outside", "***"},
		{"arg after a flag", `"command": "x", "args": ["--api-key", "letters"]`, "letters", "***"},
		{"flag after a flag", `"command": "x", "args": ["--no-auth", "--verbose"]`, "--verbose", "--verbose"},
		{"arg with =", `"command": "x", "args": ["--token=letters"]`, "--token=letters", "--token=***"},
		{"assignment", `"command": "x", "args": ["-e", "DB_PASSWORD=letters"]`, "letters", "***"},
		{"header arg", `"command": "x", "args": ["--header", "Authorization: Bearer letters"]`, "Bearer letters", "***"},
		{"json arg", `"command": "x", "args": ["{\"apiKey\": \"letters\", \"region\": \"northern\"}"]`, "letters northern", "*** northern"},
		{"token lookalike", `"command": "x", "args": ["ghp_abcdefgh"]`, "ghp_abcdefgh", "***"},
		{"ordinary args", `"command": "x", "args": ["--region", "northern", "mcp-server-time@1.2.3"]`,
			"northern mcp-server-time@1.2.3", "northern mcp-server-time@1.2.3"},

		{"url user", `"url": "https://me:pass-word@example.com/mcp"`, "me:pass-word pass-word", "*** ***"},
		{"url parameter", `"url": "https://example.com/mcp?api_key=ab%2Fcdef&page=second"`,
			"ab%2Fcdef ab/cdef second", "*** *** second"},
		{"url path", `"url": "https://example.com/s/a1b2c3d4e5f6g7h8i9j0/mcp"`, "/s/a1b2c3d4e5f6g7h8i9j0/mcp", "/s/***/mcp"},
		{"url expanded", `"url": "https://example.com/${KEY}"`, "https://example.com/key-from-outside", "https://example.com/***"},

		{"overlap", `"command": "x", "env": {"A_KEY": "abcdefg", "B_KEY": "efghijkl"}`, "<abcdefghijkl>", "<***>"},
		{"one in another", `"command": "x", "env": {"A_KEY": "abcdefgh", "B_KEY": "abcdef"}`, "abcdefgh abcdef", "*** ***"},
		{"overlaps itself", `"command": "x", "env": {"A_KEY": "ababab"}`, "abababab", "***"},
		{"nothing to hide", `"command": "x"`, "text", "text"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := mustParse(t, `{"mcpServers": {"a": {`+test.upstream+`}}}`, "KEY=key-from-outside", "FOLDER="+existing)
			if got := c.Profiles[0].Upstreams[0].Redact(test.text); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func BenchmarkRedactNothing(b *testing.B) {
	var u Upstream
	text := string(make([]byte, 1<<16))
	for b.Loop() {
		u.Redact(text)
	}
}

// The law: no text shows a secret, whatever the secret and its place are.
func FuzzRedact(f *testing.F) {
	f.Add("s3cret-value", "before ", " after")
	f.Add("ababab", "ab", "ab")
	f.Add("***abc", "*", "*")
	f.Fuzz(func(t *testing.T, secret, before, after string) {
		value, err := json.Marshal(secret)
		if err != nil || redact.IsTrivial(secret) || reference.Check(secret) != nil {
			t.Skip()
		}
		c, err := Parse("x.json", []byte(`{"mcpServers": {"a": {"command": "x", "env": {"API_KEY": `+string(value)+`}}}}`), variables())
		if err != nil {
			t.Fatal(err)
		}
		u := c.Profiles[0].Upstreams[0]
		held := u.Env["API_KEY"]
		if redact.IsTrivial(held) {
			t.Skip() // a reference to an unset variable
		}
		if got := u.Redact(before + held + after); len(before+after)+len(redact.Hidden) < len(got) {
			t.Errorf("%q is shown in %q", held, got)
		}
	})
}

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

func TestLiteralSecrets(t *testing.T) {
	c := mustParse(t, `{"mcpServers": {
		"a": {"command": "x", "args": ["--port", "80", "--token", "hunter22", "--key=${KEY:-}"],
			"env": {"API_KEY": "abcdefgh", "OTHER_KEY": "${OTHER_KEY}", "TZ": "Europe/Paris", "X": "ghp_0123456789abcdef"}},
		"b": {"url": "https://x/?key=12345678", "headers": {"Authorization": "Bearer ${T}", "X-Auth": "Bearer abcdefgh"}},
		"c": {"url": "https://x", "headers": {"Accept": "text/html"}}
	}}`)
	var got []string
	for i := range c.Profiles[0].Upstreams {
		got = append(got, strings.Join(c.Profiles[0].Upstreams[i].LiteralSecrets(), " "))
	}
	want := []string{"env.API_KEY env.X args[3]", "headers.X-Auth url", ""}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

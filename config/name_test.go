package config

import (
	"strings"
	"testing"
)

// TestForCommand: a server that is in no config gets the name of its program, not of the
// launcher.
func TestForCommand(t *testing.T) {
	for command, want := range map[string]string{
		"npx -y @modelcontextprotocol/server-memory":   "server-memory",
		"npx -y some-server@1.2.3 --flag":              "some-server",
		"uvx mcp-server-time":                          "mcp-server-time",
		"uv run server.py":                             "server.py",
		"python3 -m my_server":                         "my_server",
		"/usr/local/bin/my server":                     "my",
		"docker run -i --rm ghcr.io/github/github-mcp": "github-mcp",
		"npx":                    "npx",
		"mcpx demo time":         "server",
		"a__b":                   "a_b",
		strings.Repeat("x", 100): strings.Repeat("x", 64),
	} {
		c := ForCommand(strings.Fields(command))
		u := c.Profiles[0].Upstreams[0]
		if u.Name != want || u.Transport != TransportStdio || !u.InheritAll || u.StartupTimeout == 0 {
			t.Errorf("%s: %+v, want the name %q", command, u, want)
		}
		if strings.Join(append([]string{u.Command}, u.Args...), " ") != command {
			t.Errorf("%s became %s %q", command, u.Command, u.Args)
		}
	}
}

// TestForURL: references are not expanded, and secrets in the address or a header are
// hidden.
func TestForURL(t *testing.T) {
	c := ForURL("https://user:pass-word-1@example.com/mcp?x=${HOME}")
	u := &c.Profiles[0].Upstreams[0]
	if u.Name != "example.com" || u.Transport != TransportRemote || !strings.HasSuffix(u.URL, "${HOME}") || u.Err != nil {
		t.Errorf("%+v", u)
	}
	u.SetHeaders(map[string]string{"Authorization": "Bearer sentinel-7"})
	if got := u.Redact("pass-word-1 and sentinel-7"); strings.Contains(got, "word") || strings.Contains(got, "sentinel") {
		t.Errorf("got %s", got)
	}
	if u.SetHeaders(map[string]string{"A": "b\r\nC: d"}); u.Err == nil {
		t.Error("a header with a line break is accepted")
	}
	if broken := ForURL("https://"); broken.Profiles[0].Upstreams[0].Err == nil {
		t.Error("a url without a host is accepted")
	}
}

// TestValidName: any text becomes a valid name, and a valid name stays.
func TestValidName(t *testing.T) {
	long := strings.Repeat("é", 80)
	for name, want := range map[string]string{
		"plain":     "plain",
		"日本 1.a-b_": "日本 1.a-b_",
		"a/b@c":     "a-b-c",
		"a____b":    "a_b",
		"  a ":      "a",
		"":          "server",
		"mcpx":      "mcpx server",
		long:        long[:2*64],
		"a\nb":      "a-b",
	} {
		if got := ValidName(name); got != want || CheckName(got) != nil {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

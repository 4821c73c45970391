package config

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"mcpx/internal/jsonc"
)

// fakeSecrets is a keyring, by name. Its commands print their arguments; "false" fails.
type fakeSecrets map[string]string

func (f fakeSecrets) Get(_ context.Context, name string) (string, error) {
	if value, ok := f[name]; ok {
		return value, nil
	}
	return "", errors.New("not there")
}

func (f fakeSecrets) Run(_ context.Context, words []string, _ string) (string, error) {
	if words[0] == "false" {
		return "", errors.New("it failed")
	}
	return strings.Join(words[1:], " "), nil
}

// folderWith returns a folder with files for their owner alone.
func folderWith(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// parseIn parses a config in a folder.
func parseIn(t *testing.T, folder, source string) *Config {
	t.Helper()
	h := Hooks{Secrets: fakeSecrets{"github": "correct horse battery"}}
	c, err := h.Parse(filepath.Join(folder, "mcpx.json"), []byte(source), variables("HOME="+folder, "KEY=from the environment"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestStoredSecrets(t *testing.T) {
	folder := folderWith(t, map[string]string{"token": "file-sentinel\r\n", "lines": "line-one-sentinel\nline-two-sentinel\n"})
	c := parseIn(t, folder, `{"mcpServers": {
		"local": {"command": "${file:token}", "args": ["--x=${file:./token}", "${KEY}"], "cwd": "${file:~/token}",
			"env": {"A": "Bearer ${keyring:github}", "B": {"cmd": ["echo", "cmd-sentinel", "${KEY}"]}, "C": "${file:lines}", "D": "plain"}},
		"remote": {"url": "https://example.com/${file:token}", "headers": {"X-A": "${keyring:github}", "X-B": {"cmd": ["printf", "header-sentinel"]}}},
	}}`)
	local, remote := &c.Profiles[0].Upstreams[0], &c.Profiles[0].Upstreams[1]
	before := local.CacheKey(1)
	if local.Err != nil || local.Env["A"] != "Bearer ${keyring:github}" || local.Env["B"] != "" {
		t.Errorf("secrets were read before the start: %v, %q", local.Err, local.Env)
	}
	u, err := local.Resolve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r, err := remote.Resolve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, check := range []struct{ name, got, want string }{
		{"command", u.Command, "file-sentinel"},
		{"args[0]", u.Args[0], "--x=file-sentinel"},
		{"args[1]", u.Args[1], "from the environment"},
		{"cwd", u.Dir, filepath.Join(folder, "file-sentinel")},
		{"keyring", u.Env["A"], "Bearer correct horse battery"},
		{"cmd", u.Env["B"], "cmd-sentinel from the environment"},
		{"lines", u.Env["C"], "line-one-sentinel\nline-two-sentinel"},
		{"plain", u.Env["D"], "plain"},
		{"url", r.URL, "https://example.com/file-sentinel"},
		{"header", r.Headers["X-A"], "correct horse battery"},
		{"header cmd", r.Headers["X-B"], "header-sentinel"},
		{"hidden in a copy", local.Redact("x correct horse battery, cmd-sentinel from the environment, line-two-sentinel, file-sentinel"), "x ***, ***, ***, ***"},
		{"hidden by the resolved one", u.Redact("correct horse battery"), "***"},
		{"the upstream stays as it was", local.Env["A"], "Bearer ${keyring:github}"},
		{"cache key", local.CacheKey(1), before},
	} {
		if check.got != check.want {
			t.Errorf("%s: got %q, want %q", check.name, check.got, check.want)
		}
	}
	shown := string(c.Show())
	for _, want := range []string{`"Bearer ${keyring:github}"`, `"${file:lines}"`, `"cmd-sentinel"`, `"${KEY}"`, `"cmd": [`} {
		if !strings.Contains(shown, want) {
			t.Errorf("Show lacks %s:\n%s", want, shown)
		}
	}
	for _, secret := range []string{"correct horse", "file-sentinel", "line-one"} {
		if strings.Contains(shown, secret) {
			t.Errorf("Show has %q", secret)
		}
	}
}

// Each start reads the secrets again. Those of earlier starts stay hidden.
func TestStoredSecretsRotate(t *testing.T) {
	folder := folderWith(t, map[string]string{"token": "first-sentinel"})
	u := &parseIn(t, folder, `{"mcpServers": {"a": {"command": "x", "env": {"A": "${file:token}"}}}}`).Profiles[0].Upstreams[0]
	for _, value := range []string{"first-sentinel", "second-sentinel", "first-sentinel"} {
		if err := os.WriteFile(filepath.Join(folder, "token"), []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
		if resolved, err := u.Resolve(t.Context()); err != nil || resolved.Env["A"] != value {
			t.Fatalf("%v, %v; want %s", resolved, err, value)
		}
	}
	if got := u.Redact("first-sentinel second-sentinel"); got != "*** ***" {
		t.Error(got)
	}
}

func TestStoredSecretsFail(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the paths are those of a POSIX system")
	}
	folder := folderWith(t, map[string]string{"empty": "\n", "large": strings.Repeat("x", 64<<10+2), "nul": "a\x00b", "lines": "sentinel\nb"})
	for _, test := range []struct{ name, server, want string }{
		{"no file", `"command": "x", "env": {"A": "${file:none}"}`, "${file:none} (used in env.A): " + folder + "/none does not exist"},
		{"an empty file", `"command": "x", "env": {"A": "${file:empty}"}`, "${file:empty} (used in env.A): " + folder + "/empty is empty"},
		{"a folder", `"command": "x", "env": {"A": "${file:.}"}`, "${file:.} (used in env.A): read " + folder + ": is a directory"},
		{"a large file", `"command": "x", "env": {"A": "${file:large}"}`, "${file:large} (used in env.A): " + folder + "/large has more than 64 KiB; check that this is the right file"},
		{"not in the keyring", `"command": "x", "args": ["${keyring:none}"]`, "${keyring:none} (used in args[0]): not there"},
		{"a command fails", `"command": "x", "env": {"A": {"cmd": ["false"]}}`, `{"cmd": …} (used in env.A): it failed`},
		{"two", `"url": "https://x", "headers": {"A": "${file:none}", "B": {"cmd": ["false"]}}`, "${file:none} (used in headers.A): " + folder + `/none does not exist; {"cmd": …} (used in headers.B): it failed`},
		{"no variable", `"command": "x", "env": {"A": "${file:nul}"}`, "env.A: the value has a NUL byte; variables cannot have one"},
		{"no header", `"url": "https://x", "headers": {"A": "${file:lines}"}`, "headers.A: the value has a line break; headers cannot have one"},
		{"no url", `"url": "${file:lines}"`, "url: not an absolute http or https url once its variables are expanded; check their values"},
	} {
		t.Run(test.name, func(t *testing.T) {
			u := &parseIn(t, folder, `{"mcpServers": {"a": {`+test.server+`}}}`).Profiles[0].Upstreams[0]
			if u.Err != nil {
				t.Errorf("an error before the start: %v", u.Err)
			}
			if got := u.Redact(test.want); got != test.want {
				t.Errorf("Redact hides a reference: %s", got)
			}
			if _, err := u.Resolve(t.Context()); err == nil || err.Error() != test.want {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
}

// Without the hook, only files can be read.
func TestStoredSecretsWithoutHook(t *testing.T) {
	const source = `{"mcpServers": {"a": {"command": "x", "env": {"A": "${keyring:k}", "B": {"cmd": ["x"]}}}}}`
	c, err := Parse("mcpx.json", []byte(source), variables())
	if err != nil {
		t.Fatal(err)
	}
	const want = `${keyring:k} (used in env.A): only secrets in files can be read here; use ${file:PATH}; ` +
		`{"cmd": …} (used in env.B): only secrets in files can be read here; use ${file:PATH}`
	if _, err := c.Profiles[0].Upstreams[0].Resolve(t.Context()); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestFileWarnings(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no mode")
	}
	folder := folderWith(t, map[string]string{"mine": "x", "open": "x"})
	if err := os.Chmod(filepath.Join(folder, "open"), 0o640); err != nil {
		t.Fatal(err)
	}
	c := parseIn(t, folder, `{"mcpServers": {
		"a": {"command": "x", "args": ["${file:mine}"], "env": {"A": "${file:open}", "B": {"cmd": ["x", "${file:none}"]}}, "description": "${file:none}"},
		"b": {"command": "x", "args": ["${file:none}"], "disabled": true},
		"c": {"url": "https://x", "auth": {"client_id": "${file:mine}", "private_key": "${file:none}"}},
		"d": {"url": "https://x", "auth": {"client_id": "x", "client_secret": "${file:open}"}}}, "server": {"token": "${file:open}"}}`)
	var got []string
	for _, w := range c.Warnings {
		got = append(got, w.Path+": "+strings.ReplaceAll(w.Text, folder, "FOLDER"))
	}
	want := []string{
		"mcpServers.a.env.A: other users can read FOLDER/open; run chmod 600 on it",
		"mcpServers.a.env.B.cmd[1]: FOLDER/none does not exist; create it before the server starts",
		"mcpServers.c.auth.private_key: FOLDER/none does not exist; create it before the server starts",
		"mcpServers.d.auth.client_secret: other users can read FOLDER/open; run chmod 600 on it",
		"server.token: other users can read FOLDER/open; run chmod 600 on it",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The token of the front is read with the file, and a failure is an error of the file.
func TestStoredToken(t *testing.T) {
	hooks := Hooks{Secrets: fakeSecrets{"front": "keyring-sentinel"}}
	folder := folderWith(t, map[string]string{"token": "file-sentinel\n"})
	for reference, want := range map[string]string{
		"${keyring:front}": "keyring-sentinel",
		"${file:token}":    "file-sentinel",
		"${keyring:none}":  "server.token: ${keyring:none} (used in server.token): not there",
		"${file:none}":     "server.token: ${file:none} (used in server.token): " + folder + "/none does not exist",
	} {
		text := []byte(`{"mcpServers": {}, "server": {"token": "` + reference + `"}}`)
		c, err := hooks.Parse(filepath.Join(folder, "mcpx.json"), text, variables())
		var problems *jsonc.Error
		switch {
		case errors.As(err, &problems):
			if got := problems.Problems[0].Path + ": " + problems.Problems[0].Text; got != want {
				t.Errorf("%s: got %s\nwant %s", reference, got, want)
			}
		case err != nil:
			t.Error(err)
		case c.Server.Token != want:
			t.Errorf("%s: %q, want %q", reference, c.Server.Token, want)
		case strings.Contains(string(c.Show()), want):
			t.Errorf("%s: shown", reference)
		}
		// A secret that cannot be read is no reason not to edit the file.
		if err := (Hooks{}).Check(filepath.Join(folder, "mcpx.json"), text); err != nil {
			t.Errorf("%s: %v", reference, err)
		}
	}
}

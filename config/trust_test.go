package config

import (
	"path/filepath"
	"strings"
	"testing"

	"mcpx/internal/lockfile"
	"mcpx/internal/redact"
)

// What a lock says about each server, by its "pin".
func TestReadLock(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("MCPX_CONFIG", "")
	const source = `{"mcpServers": {
		"same": {"command": "npx", "args": ["-y", "x"]},
		"changed": {"command": "npx", "args": ["-y", "evil"]},
		"unknown": {"url": "https://x"},
		"warned": {"url": "https://x", "pin": "warn"},
		"blocked": {"command": "npx", "args": ["-y", "x"], "pin": "block"},
		"off": {"url": "https://x", "pin": "off"},
		"broken": {"command": "${NONE}"},
	}}`
	command := lockfile.Origin{Command: []string{"npx", "-y", "x"}}
	lock := lockfile.Lock{
		"same": {Origin: command}, "changed": {Origin: command}, "blocked": {Origin: command}, "broken": {Origin: command},
	}
	type outcome struct {
		pin        Pin
		isApproved bool
		err        string // a part of it
	}
	for name, test := range map[string]struct {
		write func(t *testing.T, path string)
		want  map[string]outcome
	}{
		"a lock": {func(t *testing.T, path string) {
			if err := lock.Write(path); err != nil {
				t.Fatal(err)
			}
		}, map[string]outcome{
			"same": {PinBlock, true, ""}, "changed": {PinBlock, true, "its command or url is not the one in mcpx.lock; review it: mcpx pin "},
			"unknown": {PinBlock, false, "it is not in mcpx.lock; review it: mcpx pin "}, "warned": {PinWarn, true, ""},
			"blocked": {PinBlock, true, ""}, "off": {PinOff, false, ""}, "broken": {PinBlock, true, "NONE is not set"},
		}},
		"no lock": {func(*testing.T, string) {}, map[string]outcome{
			"same": {PinWarn, false, ""}, "changed": {PinWarn, false, ""}, "unknown": {PinWarn, false, ""}, "warned": {PinWarn, false, ""},
			"blocked": {PinBlock, false, "there is no mcpx.lock; run mcpx pin"}, "off": {PinOff, false, ""}, "broken": {PinWarn, false, "NONE is not set"},
		}},
		"a damaged lock": {func(t *testing.T, path string) { writeText(t, path, "{") }, map[string]outcome{
			"same": {PinBlock, false, "restore the lock file"}, "changed": {PinBlock, false, "not a lock file"}, "unknown": {PinBlock, false, "not a lock file"},
			"warned": {PinWarn, false, "not a lock file"}, "blocked": {PinBlock, false, "not a lock file"}, "off": {PinOff, false, ""}, "broken": {PinBlock, false, "NONE is not set"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			test.write(t, filepath.Join(folder, lockfile.Name))
			c := parseIn(t, folder, source)
			c.ReadLock()
			for _, u := range c.Profiles[0].Upstreams {
				want, err := test.want[u.Name], ""
				if u.Err != nil {
					err = u.Err.Error()
				}
				if u.Trust.Pin != want.pin || (u.Trust.Approved != nil) != want.isApproved || (err == "") != (want.err == "") || !strings.Contains(err, want.err) {
					t.Errorf("%s: %s, approved %t, %q\nwant %+v", u.Name, u.Trust.Pin, u.Trust.Approved != nil, err, want)
				}
			}
		})
	}
}

// Secrets in the command or URL are hashed, so that their change is noticed.
func TestOrigin(t *testing.T) {
	c := mustParse(t, `{"mcpServers": {
		"a": {"command": "npx", "args": ["x", "--token", "hunter2-secret", "--key=${KEY}", "PASSWORD=abcdef"]},
		"b": {"url": "https://me:password1@x.example/mcp?api_key=abcdefgh&page=1"},
		"c": {"url": "https://x.example/${KEY}"},
	}}`, "KEY=value-of-key")
	got := []string{}
	for _, u := range c.Profiles[0].Upstreams {
		got = append(got, u.Origin().URL+strings.Join(u.Origin().Command, " "))
	}
	text := strings.Join(got, "\n")
	for _, secret := range []string{"hunter2", "abcdef\n", "password1", "abcdefgh", "value-of-key"} {
		if strings.Contains(text+"\n", secret) {
			t.Errorf("%s is in\n%s", secret, text)
		}
	}
	for _, want := range []string{"npx x --token sha256:", "--key=${KEY} PASSWORD=sha256:", "@x.example/mcp?api_key=sha256:", "&page=1", "https://x.example/${KEY}"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	other := mustParse(t, `{"mcpServers": {"a": {"command": "npx", "args": ["x", "--token", "hunter3-secret", "--key=${KEY}", "PASSWORD=abcdef"]}}}`, "KEY=x")
	if c.Profiles[0].Upstreams[0].Origin().Equal(other.Profiles[0].Upstreams[0].Origin()) {
		t.Error("a changed secret is not noticed")
	}
}

// The review command names the config and the profile if that is necessary.
func TestReviewCommand(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "mcpx.json")
	writeText(t, file, "{}")
	c := &Config{File: file}
	t.Setenv("MCPX_CONFIG", file)
	if got := c.reviewCommand("default", "github"); got != "mcpx pin github --diff" {
		t.Error(got)
	}
	if got := c.reviewCommand("work", "my server"); got != "mcpx pin 'my server' --schema work --diff" {
		t.Error(got)
	}
	t.Setenv("MCPX_CONFIG", "/other.json")
	if got := c.reviewCommand("default", "github"); got != "mcpx pin "+file+" github --diff" {
		t.Error(got)
	}
}

// A config that replaces another in place hides the secrets of the session that goes on.
func TestKeepHiding(t *testing.T) {
	folder := folderWith(t, map[string]string{"token": "stored-sentinel"})
	const source = `{"mcpServers": {"a": {"command": "x", "env": {"A": "${file:token}"}}}}`
	old, next := &parseIn(t, folder, source).Profiles[0].Upstreams[0], &parseIn(t, folder, source).Profiles[0].Upstreams[0]
	if _, err := old.Resolve(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !old.KeepsSession(next) {
		t.Error("the same config needs another session")
	}
	next.KeepHiding(old)
	if got := next.Redact("stored-sentinel"); got != redact.Hidden {
		t.Error(got)
	}
	changed := &parseIn(t, folder, strings.Replace(source, `"${file:token}"`, `{"cmd": ["x"]}`, 1)).Profiles[0].Upstreams[0]
	if old.KeepsSession(changed) {
		t.Error("another source of a secret keeps the session")
	}
}

package lock

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpx/config"
	"mcpx/internal/parts/lock/lockfile"
)

// parse returns the config in a text, in a folder, with these variables.
func parse(t *testing.T, folder, source string, pairs ...string) *config.Config {
	t.Helper()
	lookup := func(name string) (string, bool) {
		for _, pair := range pairs {
			if value, ok := strings.CutPrefix(pair, name+"="); ok {
				return value, true
			}
		}
		return "", false
	}
	c, err := config.Hooks{Sections: []config.Section{Section}}.Parse(filepath.Join(folder, "mcpx.json"), []byte(source), lookup)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func writeText(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// What a lock says about each server, by its "pin".
func TestRead(t *testing.T) {
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
			c := parse(t, folder, source)
			approvals := Read(c)
			for _, u := range c.Profiles[0].Upstreams {
				want, err := test.want[u.Name], ""
				if u.Err != nil {
					err = u.Err.Error()
				}
				v := approvals.views[u.Name]
				if v == nil {
					v = &view{pin: PinOff}
				}
				if v.pin != want.pin || (v.approved != nil) != want.isApproved || (err == "") != (want.err == "") || !strings.Contains(err, want.err) {
					t.Errorf("%s: %s, approved %t, %q\nwant %+v", u.Name, v.pin, v.approved != nil, err, want)
				}
				views := approvals.Views("default", &u)
				if views.IsStrict != (want.pin == PinBlock) || len(views.All) == 0 != (want.pin == PinOff) {
					t.Errorf("%s: its views are %+v", u.Name, views)
				}
			}
		})
	}
}

// Secrets in the command or URL are hashed, so that their change is noticed.
func TestOrigin(t *testing.T) {
	c := parse(t, t.TempDir(), `{"mcpServers": {
		"a": {"command": "npx", "args": ["x", "--token", "hunter2-secret", "--key=${KEY}", "PASSWORD=abcdef"]},
		"b": {"url": "https://me:password1@x.example/mcp?api_key=abcdefgh&page=1"},
		"c": {"url": "https://x.example/${KEY}"},
	}}`, "KEY=value-of-key")
	got := []string{}
	for _, u := range c.Profiles[0].Upstreams {
		got = append(got, Origin(&u).URL+strings.Join(Origin(&u).Command, " "))
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
	other := parse(t, t.TempDir(), `{"mcpServers": {"a": {"command": "npx", "args": ["x", "--token", "hunter3-secret", "--key=${KEY}", "PASSWORD=abcdef"]}}}`, "KEY=x")
	if Origin(&c.Profiles[0].Upstreams[0]).Equal(Origin(&other.Profiles[0].Upstreams[0])) {
		t.Error("a changed secret is not noticed")
	}
}

// The review command names the config and the profile if that is necessary.
func TestReviewCommand(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "mcpx.json")
	writeText(t, file, "{}")
	c := &config.Config{File: file}
	t.Setenv("MCPX_CONFIG", file)
	if got := reviewCommand(c, "default", "github"); got != "mcpx pin github --diff" {
		t.Error(got)
	}
	if got := reviewCommand(c, "work", "my server"); got != "mcpx pin 'my server' --schema work --diff" {
		t.Error(got)
	}
	t.Setenv("MCPX_CONFIG", "/other.json")
	if got := reviewCommand(c, "default", "github"); got != "mcpx pin "+file+" github --diff" {
		t.Error(got)
	}
}

// A pin that mcpx does not know is a problem of the file.
func TestUnknownPin(t *testing.T) {
	_, err := config.Hooks{Sections: []config.Section{Section}}.Parse("mcpx.json", []byte(`{"mcpServers": {"a": {"command": "x", "pin": "hide"}}}`), os.LookupEnv)
	if err == nil || !strings.Contains(err.Error(), `mcpServers.a.pin: expected one of "off", "warn", "block", got "hide"`) {
		t.Errorf("the problem is %v", err)
	}
}

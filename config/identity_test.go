package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpx/internal/redact"
)

func TestKeepsSession(t *testing.T) {
	const entry = `"command":"x","args":["sesame99"],"env":{"KEY":"hunter2"}`
	for name, test := range map[string]struct {
		next  string
		keeps bool
	}{
		"the same":           {entry, true},
		"order of keys":      {`"env":{"KEY":"hunter2"},"args":["sesame99"],"command":"x"`, true},
		"description":        {entry + `,"description":"new"`, true},
		"filter":             {entry + `,"tools":{"deny":["a*"]}`, true},
		"time limits":        {entry + `,"startup_timeout":"1s","timeout":"2s","max_timeout":"3s","idle_stop":"4m"`, true},
		"argument":           {`"command":"x","args":["2"],"env":{"KEY":"hunter2"}`, false},
		"isolation":          {entry + `,"isolation":"client"`, false},
		"start":              {entry + `,"start":"lazy"`, false},
		"a variable not set": {`"command":"x","args":["sesame99"],"env":{"KEY":"${NOT_SET}"}`, false},
		"another secret":     {`"command":"x","args":["${PASSWORD}"],"env":{"KEY":"hunter2"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			one, next := upstreamOf(t, entry), upstreamOf(t, test.next)
			if got := one.KeepsSession(next); got != test.keeps {
				t.Errorf("%v, want %v", got, test.keeps)
			}
		})
	}
}

// TestKeepsSessionOfFile: a server keeps its session if the file that its env names is created.
func TestKeepsSessionOfFile(t *testing.T) {
	for _, name := range []string{"DB", "AUTH_DB"} {
		path := filepath.Join(t.TempDir(), "data 1.db")
		value, err := json.Marshal(path)
		if err != nil {
			t.Fatal(err)
		}
		entry := `"command":"x","env":{"` + name + `":` + string(value) + `}`
		before := upstreamOf(t, entry)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if after := upstreamOf(t, entry); !before.KeepsSession(after) || !after.KeepsSession(before) {
			t.Errorf("the file in %s decides whether the session is kept", name)
		}
	}
}

// upstreamOf returns the upstream of a config with this entry.
func upstreamOf(t *testing.T, entry string) *Upstream {
	t.Helper()
	c, err := Parse("x.json", []byte(`{"mcpServers":{"a":{`+entry+`}}}`), variables("PASSWORD=sesame99"))
	if err != nil {
		t.Fatal(err)
	}
	return &c.Profiles[0].Upstreams[0]
}

func TestCacheKey(t *testing.T) {
	key := func(u Upstream) string {
		t.Helper()
		return u.CacheKey(1)
	}
	base := Upstream{Name: "a", Transport: TransportStdio, Command: "npx", Args: []string{"-y", "x"}, Env: map[string]string{"TZ": "UTC", "API_KEY": "secret-1", "REF": "${A}"}}
	same := func(change func(u *Upstream)) bool {
		other := base
		other.Env = map[string]string{"TZ": "UTC", "API_KEY": "secret-1", "REF": "${A}"}
		change(&other)
		return key(other) == key(base)
	}
	for name, test := range map[string]struct {
		change func(u *Upstream)
		same   bool
	}{
		"another name":              {func(u *Upstream) { u.Name = "b" }, true},
		"a rotated secret":          {func(u *Upstream) { u.Env["API_KEY"] = "secret-2" }, true},
		"another reference":         {func(u *Upstream) { u.Env["REF"] = "${B}" }, true},
		"other timeouts":            {func(u *Upstream) { u.Timeout = 1 }, true},
		"start on first use":        {func(u *Upstream) { u.Start = StartLazy }, true},
		"another filter":            {func(u *Upstream) { u.Tools.Deny = []string{"x"} }, true},
		"another argument":          {func(u *Upstream) { u.Args = []string{"-y", "y"} }, false},
		"another plain value":       {func(u *Upstream) { u.Env["TZ"] = "CET" }, false},
		"another variable":          {func(u *Upstream) { u.Env["MORE"] = "${A}" }, false},
		"another folder":            {func(u *Upstream) { u.Dir = "/x" }, false},
		"an address, not a command": {func(u *Upstream) { u.URL = "https://x" }, false},
	} {
		if got := same(test.change); got != test.same {
			t.Errorf("%s: same key: %t, want %t", name, got, test.same)
		}
	}
	if base.CacheKey(1) == base.CacheKey(2) {
		t.Error("the version does not count")
	}
}

func TestIdleStop(t *testing.T) {
	for _, test := range []struct{ top, server, start, idle string }{
		{``, ``, "eager", "0s"},
		{`"start":"lazy",`, ``, "lazy", "15m0s"},
		{`"start":"lazy",`, `,"start":"eager"`, "eager", "0s"},
		{`"start":"lazy","idle_stop":"1h",`, ``, "lazy", "1h0m0s"},
		{`"start":"lazy","idle_stop":"1h",`, `,"idle_stop":"never"`, "lazy", "0s"},
		{`"idle_stop":60,`, ``, "eager", "1m0s"},
		{`"start":"lazy",`, `,"idle_stop":"never"`, "lazy", "0s"},
	} {
		c, err := Parse("x.json", []byte(`{`+test.top+`"mcpServers":{"a":{"command":"x"`+test.server+`}}}`), variables())
		if err != nil {
			t.Fatal(err)
		}
		if u := c.Profiles[0].Upstreams[0]; string(u.Start) != test.start || u.IdleStop.String() != test.idle {
			t.Errorf("%s%s: %s, %s; want %s, %s", test.top, test.server, u.Start, u.IdleStop, test.start, test.idle)
		}
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

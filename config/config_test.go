package config

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"mcpx/internal/jsonc"
)

func TestParse(t *testing.T) {
	got := mustParse(t, `{
		"schemas": {
			"work": {"expose": "flat", "mcp_servers": [
				{"name": "z", "command": "uvx", "args": ["a", "b"], "tools": {"deny": ["x*"]}, "timeout": "20m"},
				{"name": "off", "command": "x", "disabled": true},
				{"name": "a", "type": "streamable_http", "url": "https://example.com/mcp", "isolation": "client"},
				{"name": "any", "url": "https://example.com/mcp", "startup_timeout": 0.5}
			]},
			"later": {"enabled": false, "servers": {}}
		},
		"server": {"port": 0},
		"cli": {"stdio": {"encoding": "utf-8", "delimiter": "\n", "timeout": 1500}},
		"limits": {"body_bytes": "1 KiB", "message_bytes": 4096}
	}`)
	for i := range got.Profiles {
		clearPrivate(&got.Profiles[i])
	}
	want := &Config{
		File: "/etc/mcpx/mcpx.json",
		Profiles: []Profile{{
			Name: "work", Enabled: true, Expose: Flat, Prefix: true, FlatWait: 10 * time.Second,
			Upstreams: []Upstream{{
				Name: "z", Transport: TransportStdio, Command: "uvx", Args: []string{"a", "b"},
				Tools:          Filter{Deny: []string{"x*"}},
				StartupTimeout: 30 * time.Second, Timeout: 20 * time.Minute, MaxTimeout: 20 * time.Minute, Isolation: Shared, Auth: Auth{Flow: "auto"}, Start: StartEager,
			}, {
				Name: "a", Transport: TransportHTTP, URL: "https://example.com/mcp",
				StartupTimeout: 30 * time.Second, Timeout: time.Minute, MaxTimeout: 15 * time.Minute, Isolation: PerClient, Auth: Auth{Flow: "auto"}, Start: StartEager,
			}, {
				Name: "any", Transport: TransportRemote, URL: "https://example.com/mcp",
				StartupTimeout: 500 * time.Millisecond, Timeout: time.Minute, MaxTimeout: 15 * time.Minute, Isolation: Shared, Auth: Auth{Flow: "auto"}, Start: StartEager,
			}},
		}, {
			Name: "later", Expose: Lazy, Prefix: true, FlatWait: 10 * time.Second,
		}},
		Server:     Server{Host: "127.0.0.1", Console: ConsoleView},
		Stdio:      Stdio{Encoding: "utf8", Delimiter: "\n", Timeout: 1500 * time.Millisecond},
		Logging:    Logging{Level: "info", Format: "console"},
		Auth:       Vault{Place: "auto"},
		Start:      StartEager,
		IdleStop:   unset,
		AlwaysLoad: true,
		Limits: Limits{
			InspectTokens: 4000, ResultTokens: 10000, ResultHead: 2000, Sessions: 1000, SessionIdle: 30 * time.Minute,
			BodyBytes: 1024, MessageBytes: 4096, CallsPerClient: 256, UnreadBytes: 64 << 20, KeptBytes: 256 << 20, WorkBytes: 512 << 20,
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// clearPrivate clears the fields that other packages cannot see.
func clearPrivate(p *Profile) {
	p.all = nil
	for i := range p.Upstreams {
		u := &p.Upstreams[i]
		u.written, u.secrets, u.commands, u.environment = nil, nil, nil, environment{}
	}
}

// TestStdioFallsBack: invalid values in cli.stdio keep their defaults.
func TestStdioFallsBack(t *testing.T) {
	for _, cli := range []string{
		`{"stdio": {"encoding": "latin1", "delimiter": ";", "timeout": -5}}`, `{"stdio": {"encoding": 1, "timeout": "soon"}}`, `{"stdio": []}`, `5`,
	} {
		c := mustParse(t, `{"mcpServers": {}, "cli": `+cli+`}`)
		if c.Stdio != defaults().Stdio || len(c.Warnings) == 0 {
			t.Errorf("%s: %+v, warnings %v", cli, c.Stdio, c.Warnings)
		}
	}
}

func TestProfile(t *testing.T) {
	c := mustParse(t, `{"schemas": {
		"default": {"mcpServers": {}}, "work": {"mcpServers": {}}, "later": {"enabled": false, "mcpServers": {}}
	}}`)
	tests := []struct{ name, err string }{
		{"default", ""},
		{"work", ""},
		{"later", `profile "later": not enabled; /etc/mcpx/mcpx.json has: default, work, later (not enabled)`},
		{"home", `profile "home": no such profile; /etc/mcpx/mcpx.json has: default, work, later (not enabled)`},
	}
	for _, test := range tests {
		p, err := c.Profile(test.name)
		switch {
		case test.err != "":
			if err == nil || err.Error() != test.err {
				t.Errorf("%s: got %v, want %s", test.name, err, test.err)
			}
		case err != nil || p.Name != test.name:
			t.Errorf("%s: got %+v, %v", test.name, p, err)
		}
	}
}

func TestErrorHoldsWarnings(t *testing.T) {
	_, err := Parse("x.json", []byte(`{"mcpServers": {"a": {"comand": "x"}}}`), variables())
	got, ok := errors.AsType[*jsonc.Error](err)
	want := &jsonc.Error{
		Problems: []jsonc.Problem{{File: "x.json", Line: 1, Column: 22, Path: "mcpServers.a", Text: "needs command or url"}},
		Warnings: []jsonc.Problem{{File: "x.json", Line: 1, Column: 23, Path: "mcpServers.a.comand", Text: `unknown key; did you mean "command"?`}},
	}
	if !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

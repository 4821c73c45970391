package config

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestExpand(t *testing.T) {
	set := []string{"KEY=value", "EMPTY=", "SPACED=two words", "NESTED=${KEY}", "ProgramFiles(x86)=C:"}
	tests := []struct{ name, text, want, err string }{
		{"plain", "${KEY}", "value", ""},
		{"inside", "a${KEY}b${KEY}", "avaluebvalue", ""},
		{"env prefix", "${env:KEY}", "value", ""},
		{"env prefix with default", "${env:NONE:-x}", "x", ""},
		{"windows name", "${env:ProgramFiles(x86)}", "C:", ""},
		{"default unused", "${KEY:-x}", "value", ""},
		{"default used", "${NONE:-x y}", "x y", ""},
		{"default for empty", "${EMPTY:-x}", "x", ""},
		{"empty default", "${NONE:-}", "", ""},
		{"default holds :-", "${NONE:-a:-b}", "a:-b", ""},
		{"empty", "[${EMPTY}]", "[]", ""},
		{"one argument", "${SPACED}", "two words", ""},
		{"not again", "${NESTED}", "${KEY}", ""},
		{"no braces", "$KEY $$ $", "$KEY $$ $", ""},
		{"dollar before", "$${KEY}", "$value", ""},
		{"missing", "${NONE}", "", "environment variable NONE is not set (used in args[0]); set it, or write ${NONE:-default}"},
		{"missing twice", "${NONE}${NONE}", "", "environment variable NONE is not set (used in args[0], args[0]); set it, or write ${NONE:-default}"},
		{"two missing", "${A}-${B}", "-", "environment variable A is not set (used in args[0]); set it, or write ${A:-default}; environment variable B is not set (used in args[0]); set it, or write ${B:-default}"},
		{"editor", "${input:token}", "", "${input:token} (used in args[0]) cannot be resolved outside the editor it was written for; write ${VAR} and set VAR"},
		{"editor's folder", "${workspaceFolder}", "", "environment variable workspaceFolder is not set (used in args[0]); set it, or write ${workspaceFolder:-default}"},
		{"both", "${A}${input:b}", "", "environment variable A is not set (used in args[0]); set it, or write ${A:-default}; " +
			"${input:b} (used in args[0]) cannot be resolved outside the editor it was written for; write ${VAR} and set VAR"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			args, _ := json.Marshal([]string{test.text})
			c := mustParse(t, `{"mcpServers": {"a": {"command": "x", "args": `+string(args)+`}}}`, set...)
			u := c.Profiles[0].Upstreams[0]
			err := ""
			if u.Err != nil {
				err = u.Err.Error()
			}
			if !slices.Equal(u.Args, []string{test.want}) || err != test.err {
				t.Errorf("got %q, error %q\nwant %q, error %q", u.Args, err, test.want, test.err)
			}
		})
	}
}

func TestExpandEverywhere(t *testing.T) {
	c := mustParse(t, `{"mcpServers": {
		"local": {"command": "~/bin/${X}", "args": ["${X}", "~/x"], "env": {"A": "${X}"}, "cwd": "../${X}"},
		"home": {"command": "x", "cwd": "~/${X}"},
		"absolute": {"command": "./x", "cwd": "/srv/${X}/"},
		"tilde from a variable": {"command": "${TILDE}", "cwd": "${TILDE}"},
		"remote": {"url": "https://${X}.example.com/${X}", "headers": {"A": "b ${X}"}},
	}, "logging": {"file": "log/mcpx.log"}, "server": {"token": "${X}-${NONE:-y}"}}`, "X=val", "HOME=/home/me", "TILDE=~/x")
	us := c.Profiles[0].Upstreams
	checks := []struct{ name, got, want string }{
		{"command", us[0].Command, "/home/me/bin/val"},
		{"args[0]", us[0].Args[0], "val"},
		{"args[1]", us[0].Args[1], "~/x"},
		{"env", us[0].Env["A"], "val"},
		{"cwd", us[0].Dir, "/etc/val"},
		{"cwd at home", us[1].Dir, "/home/me/val"},
		{"relative command", us[2].Command, "./x"},
		{"absolute cwd", us[2].Dir, "/srv/val"},
		{"command from a variable", us[3].Command, "~/x"},
		{"cwd from a variable", us[3].Dir, "/etc/mcpx/~/x"},
		{"no cwd", us[4].Dir, ""},
		{"url", us[4].URL, "https://val.example.com/val"},
		{"headers", us[4].Headers["A"], "b val"},
		{"logging.file", c.Logging.File, "/etc/mcpx/log/mcpx.log"},
		{"server.token", c.Server.Token, "val-y"},
	}
	for _, check := range checks {
		if check.got != check.want {
			t.Errorf("%s: got %q, want %q", check.name, check.got, check.want)
		}
	}
}

// TestExpandSelf: ${MCPX} is the running program, whatever the environment has, and is
// not a secret.
func TestExpandSelf(t *testing.T) {
	self, err := os.Executable()
	if err != nil || !filepath.IsAbs(self) {
		t.Fatalf("%q: %v", self, err)
	}
	c := mustParse(t, `{"mcpServers": {
		"local": {"command": "${MCPX}", "args": ["${MCPX}", "--at=${MCPX}", "${MCPX:-x}", "${env:MCPX}"], "env": {"A": "${MCPX}"}, "cwd": "${MCPX}.d"},
		"remote": {"url": "https://example.com/${MCPX}", "headers": {"A": "b ${MCPX}"}},
	}, "server": {"token": "${MCPX}"}}`, "MCPX=/elsewhere")
	us := c.Profiles[0].Upstreams
	for _, check := range []struct{ name, got, want string }{
		{"command", us[0].Command, self},
		{"args[0]", us[0].Args[0], self},
		{"args[1]", us[0].Args[1], "--at=" + self},
		{"with a default", us[0].Args[2], self},
		{"the variable", us[0].Args[3], "/elsewhere"},
		{"env", us[0].Env["A"], self},
		{"cwd", us[0].Dir, self + ".d"},
		{"url", us[1].URL, "https://example.com/" + self},
		{"headers", us[1].Headers["A"], "b " + self},
		{"server.token", c.Server.Token, self},
		{"redacted", us[0].Redact("no such file: " + self), "no such file: " + self},
	} {
		if check.got != check.want {
			t.Errorf("%s: got %q, want %q", check.name, check.got, check.want)
		}
	}
	for _, u := range us {
		if u.Err != nil {
			t.Errorf("%s: %v", u.Name, u.Err)
		}
	}
}

// TestUpstreamErrors: a variable that is missing or cannot be used fails only its
// upstream.
func TestUpstreamErrors(t *testing.T) {
	c := mustParse(t, `{"mcpServers": {
		"fine": {"command": "x"},
		"missing": {"url": "https://example.com/${B}", "headers": {"Authorization": "Bearer ${A}", "X": "${B}"}},
		"no url": {"url": "${FILE}"},
		"line break": {"url": "https://example.com", "headers": {"B": "${LINES}"}},
		"no secret": {"url": "https://example.com", "auth": {"client_id": "x", "client_secret": "${EMPTY}"}},
		"no client": {"url": "https://example.com", "auth": {"client_id": "${EMPTY}"}},
		"no key": {"url": "https://example.com", "auth": {"client_id": "x", "private_key": "${EMPTY:-}"}},
		"off": {"command": "${A}", "disabled": true},
	}}`, "FILE=/etc/passwd", "LINES=a\nb", "EMPTY=")
	got := map[string]string{}
	for _, u := range c.Profiles[0].Upstreams {
		got[u.Name] = ""
		if u.Err != nil {
			got[u.Name] = u.Err.Error()
		}
	}
	want := map[string]string{
		"fine": "",
		"missing": "environment variable B is not set (used in url, headers.X); set it, or write ${B:-default}; " +
			"environment variable A is not set (used in headers.Authorization); set it, or write ${A:-default}",
		"no url":     "url: not an absolute http or https url once its variables are expanded; check their values",
		"no secret":  "auth.client_secret: is empty once its variables are expanded; set them",
		"no client":  "auth.client_id: is empty once its variables are expanded; set them",
		"no key":     "auth.private_key: is empty once its variables are expanded; set them",
		"line break": "headers.B: the value has a line break; headers cannot have one",
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

package console

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"mcpx/config"
	"mcpx/config/edit"
	"mcpx/internal/policy/policytest"
	"mcpx/registry/live"
	"mcpx/server"
	"mcpx/server/servertest"
)

// TestConsoleRoutes: each route answers, or says what is wrong.
func TestConsoleRoutes(t *testing.T) {
	secret := servertest.Upstream(t, "one", "-instructions", "Use it well.")
	secret["env"].(map[string]string)["API_KEY"] = "sesame-open-1234"
	secret["description"] = "the first"
	off := servertest.Upstream(t, "off")
	off["disabled"] = true
	s := serve(t, secret, off)
	if _, err := s.Registry.For(nil).Ready(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	result := url.QueryEscape("echo")
	for _, v := range []struct{ name, method, path, body, want string }{
		{"details", "GET", "/console/default/server?server=one", "", `"API_KEY":"***"`},
		{"revision", "GET", "/console/default/server?server=one", "", `"revision":"2025-11-25","software":"mcptest 1","instructions":"Use it well."`},
		{"sign-in", "GET", "/console/default/server?server=one", "", `"sign_in":{"account":"ann at one"}`},
		{"review", "GET", "/console/default/server?server=one", "", `"review":"default/one"`},
		{"settings", "GET", "/console/default/server?server=one", "", `"settings":{"description":"the first","allow":null,"deny":null,"startup_timeout":"30s","timeout":"1m","max_timeout":"15m"}`},
		{"a disabled server", "GET", "/console/default/server?server=off", "", `200 {"command":"`},
		{"an unknown server", "GET", "/console/default/server?server=two", "", "404 "},
		{"what the agent reads", "GET", "/console/default/tool?server=one&tool=" + result, "", `"line":"echo(text: string, times?: integer`},
		{"an unknown tool", "GET", "/console/default/tool?server=one&tool=two", "", "404 "},
		{"messages", "GET", "/console/default/messages?server=one", "", "200 []"},
		{"messages of an unknown server", "GET", "/console/default/messages?server=two", "", "404 "},
		{"tokens", "POST", "/console/default/preview", `{"result": {"content": [{"type": "text", "text": "hello world"}, {"type": "image", "data": "aaaaaaaaaaaaaaaaaaaaaaaaaaaa", "mimeType": "image/png"}]}}`, `200 {"tokens":2}`},
		{"select", "POST", "/console/default/preview", `{"select": "a", "result": {"structuredContent": {"x": [{"a": 1, "b": 2}, {"a": 3, "b": 4}]}}}`, `[{\"a\":1},{\"a\":3}]`},
		{"a wrong select", "POST", "/console/default/preview", `{"select": "a where", "result": {"content": []}}`, "422 "},
		{"no JSON", "POST", "/console/default/preview", `{`, "400 "},
		{"stop", "POST", "/console/default/stop?server=one", "{}", "204 "},
		{"start", "POST", "/console/default/start?server=one", "{}", "204 "},
		{"restart an unknown server", "POST", "/console/default/restart?server=two", "{}", "404 "},
		{"an unknown profile", "GET", "/console/none/server?server=x", "", "404 "},
		{"add without permission", "POST", "/console/default/add?server=two", "{}", "403 "},
		{"disable without permission", "POST", "/console/default/disable?server=one", "{}", "403 "},
		{"change without permission", "POST", "/console/default/change?server=one", "{}", "403 "},
		{"check without permission", "POST", "/console/default/check?server=two", "{}", "403 "},
	} {
		if got := s.do(t, v.method, v.path, v.body); !strings.Contains(got, v.want) || strings.Contains(got, "sesame") {
			t.Errorf("%s: %s, want %s", v.name, got, v.want)
		}
	}
}

// TestConsoleEdits: the edits of the console reach the config file, and errors the console.
func TestConsoleEdits(t *testing.T) {
	text := []byte(`{"mcpServers": {"one": {"command": "x", "timeout": "5s"}}}`)
	editing := Editing{
		Edit: func(change func(e *edit.Editor) error) error {
			changed, err := edit.Text(config.Hooks{}, "mcpx.json", text, change)
			if err == nil {
				text = changed
			}
			return err
		},
		Check: func(context.Context, string, string, []byte) (*live.Upstream, []string, error) {
			return nil, nil, errors.New("not now")
		},
	}
	web := front(servertest.Bare("one"))
	web.Guard.Token, web.Guard.Console = "all", config.ConsoleEdit
	s := open(t, &Console{Front: web, Editing: editing}, nil)
	for _, v := range []struct{ path, body, want, file string }{
		{"add?server=two", `{"command": "y", "args": ["-v"]}`, "204 ", `"two": {"command": "y", "args": ["-v"]}`},
		{"add?server=one", `{"command": "y"}`, `422 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"server \"one\" exists already"}}`, ""},
		{"add?server=three", `{"command": 7}`, "422 ", ""},
		{"add?server=three", `[]`, "400 ", ""},
		{"change?server=one", `{"description": "now", "timeout": null, "tools": {"deny": ["x*"]}, "command": "evil"}`, "204 ", `"one": {"command": "x", "description": "now", "tools": {"deny": ["x*"]}}`},
		{"change?server=none", `{"description": "now"}`, "404 ", ""},
		{"change?server=one", `{"timeout": "soon"}`, "422 ", ""},
		{"disable?server=two", `{}`, "204 ", `"disabled": true`},
		{"enable?server=two", `{}`, "204 ", `"two": {"command": "y", "args": ["-v"]}`},
		{"check?server=three", `{"command": "z"}`, "not now", ""},
	} {
		got := s.do(t, "POST", "/console/default/"+v.path, v.body, "Authorization", "Bearer all")
		if !strings.Contains(got, v.want) || !strings.Contains(string(text), v.file) {
			t.Errorf("%s: %s, want %s; the file is %s", v.path, got, v.want, text)
		}
	}
}

// TestConsoleRights: a caller with rules sees only its tools, and neither commands nor
// messages, and controls nothing.
func TestConsoleRights(t *testing.T) {
	running := servertest.Start(t, server.Options{}, servertest.Upstream(t, "one"), servertest.Upstream(t, "two"))
	for _, name := range []string{"one", "two"} {
		if _, err := running.Registry.For(nil).Ready(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	web := front(running.Server)
	web.Guard.Token, web.Guard.Console = "all", config.ConsoleEdit
	web.Guard.Callers = servertest.Callers{"some": policytest.Allow("default/one/echo")}
	s := open(t, &Console{Front: web}, running)
	for _, v := range []struct{ name, token, method, path, want, never string }{
		{"its own server", "some", "GET", "server?server=one", `"software":"mcptest 1"`, `"command"`},
		{"with all rights", "all", "GET", "server?server=one", `"command":"`, ""},
		{"a hidden server", "some", "GET", "server?server=two", "404 ", ""},
		{"its own tool", "some", "GET", "tool?server=one&tool=echo", `"line":"echo(`, ""},
		{"a hidden tool", "some", "GET", "tool?server=one&tool=crash", "404 ", ""},
		{"messages", "some", "GET", "messages?server=one", "403 ", ""},
		{"restart", "some", "POST", "restart?server=one", "403 ", ""},
		{"stop", "some", "POST", "stop?server=one", "403 ", ""},
		{"start", "some", "POST", "start?server=one", "403 ", ""},
		{"add", "some", "POST", "add?server=x", "403 ", ""},
		{"change", "some", "POST", "change?server=one", "403 ", ""},
		{"disable", "some", "POST", "disable?server=one", "403 ", ""},
		{"enable", "some", "POST", "enable?server=one", "403 ", ""},
		{"check", "some", "POST", "check?server=x", "403 ", ""},
		{"no token", "", "GET", "server?server=one", "401 ", ""},
	} {
		got := s.do(t, v.method, "/console/default/"+v.path, "{}", "Authorization", "Bearer "+v.token)
		if !strings.Contains(got, v.want) || v.never != "" && strings.Contains(got, v.never) {
			t.Errorf("%s: %s, want %s", v.name, got, v.want)
		}
	}
}

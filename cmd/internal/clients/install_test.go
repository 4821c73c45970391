package clients

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/rawjson"
)

var (
	mcpxEntry    = Entry{Name: "mcpx", Command: "/bin/mcpx", Args: []string{"/etc/mcpx.json"}}
	changedEntry = Entry{Name: "mcpx", Command: "/opt/mcpx", Args: []string{"/new.json", "--schema", "work"}}
)

func place(client string) Place {
	s := System{OS: "linux", Home: "/home/me", Lookup: lookup(nil)}
	return s.UserFile(client)
}

func TestInstall(t *testing.T) {
	for _, row := range []struct {
		name, client string
		entry        Entry
		move         []string
		in, want     string
		lines        string
	}{
		{"new file", "claude-desktop", mcpxEntry, nil, "",
			"{\n  \"mcpServers\": {\n    \"mcpx\": {\n      \"command\": \"/bin/mcpx\",\n      \"args\": [\"/etc/mcpx.json\"]\n    }\n  }\n}\n",
			`+ "mcpx": {"command": "/bin/mcpx", "args": ["/etc/mcpx.json"]}`},
		{"other settings", "claude-desktop", mcpxEntry, nil, "{\n  \"globalShortcut\": \"\"\n}",
			"{\n  \"globalShortcut\": \"\",\n  \"mcpServers\": {\n    \"mcpx\": {\n      \"command\": \"/bin/mcpx\",\n      \"args\": [\"/etc/mcpx.json\"]\n    }\n  }\n}",
			`+ "mcpx": {"command": "/bin/mcpx", "args": ["/etc/mcpx.json"]}`},
		{"typed, all expanded", "claude-code", mcpxEntry, nil,
			"{\n  \"mcpServers\": {\n    \"a\": {\n      \"args\": [\n        \"x\"\n      ]\n    }\n  },\n  \"projects\": {\"/p\": {\"mcpServers\": {}}}\n}",
			"{\n  \"mcpServers\": {\n    \"a\": {\n      \"args\": [\n        \"x\"\n      ]\n    },\n    \"mcpx\": {\n      \"type\": \"stdio\",\n      \"command\": \"/bin/mcpx\",\n      \"args\": [\n        \"/etc/mcpx.json\"\n      ]\n    }\n  },\n  \"projects\": {\"/p\": {\"mcpServers\": {}}}\n}",
			`+ "mcpx": {"type": "stdio", "command": "/bin/mcpx", "args": ["/etc/mcpx.json"]}`},
		{"one line", "cursor", mcpxEntry, nil, `{"mcpServers": {"a": {"command": "x"}}}`,
			`{"mcpServers": {"a": {"command": "x"}, "mcpx": {"command": "/bin/mcpx", "args": ["/etc/mcpx.json"]}}}`,
			`+ "mcpx": {"command": "/bin/mcpx", "args": ["/etc/mcpx.json"]}`},
		{"comments and CRLF", "vscode", mcpxEntry, nil, "{\r\n\t// mine\r\n\t\"servers\": {\r\n\t\t\"a\": {\"type\": \"http\", \"url\": \"http://x\"}, // a\r\n\t},\r\n\t\"inputs\": []\r\n}\r\n",
			"{\r\n\t// mine\r\n\t\"servers\": {\r\n\t\t\"a\": {\"type\": \"http\", \"url\": \"http://x\"}, // a\r\n\t\t\"mcpx\": {\"type\": \"stdio\", \"command\": \"/bin/mcpx\", \"args\": [\"/etc/mcpx.json\"]},\r\n\t},\r\n\t\"inputs\": []\r\n}\r\n",
			`+ "mcpx": {"type": "stdio", "command": "/bin/mcpx", "args": ["/etc/mcpx.json"]}`},
		{"empty file", "windsurf", mcpxEntry, nil, "\n",
			"{\n  \"mcpServers\": {\n    \"mcpx\": {\n      \"command\": \"/bin/mcpx\",\n      \"args\": [\"/etc/mcpx.json\"]\n    }\n  }\n}\n",
			`+ "mcpx": {"command": "/bin/mcpx", "args": ["/etc/mcpx.json"]}`},
		{"update", "cursor", changedEntry, nil,
			`{"mcpServers": {"mcpx": {"command": "/old/mcpx", "args": ["/etc/mcpx.json"], "env": {"A_KEY": "secret"}} /* c */}}`,
			`{"mcpServers": {"mcpx": {"command": "/opt/mcpx", "args": ["/new.json", "--schema", "work"], "env": {"A_KEY": "secret"}} /* c */}}`,
			`- "mcpx": {"command": "/old/mcpx", "args": ["/etc/mcpx.json"]}` + "\n" + `+ "mcpx": {"command": "/opt/mcpx", "args": ["/new.json", "--schema", "work"]}`},
		{"move", "cursor", mcpxEntry, []string{"a", "c"},
			"{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"},\n    // kept\n    \"b\": {\"command\": \"x\"},\n    \"c\": {\"command\": \"x\"}\n  }\n}\n",
			"{\n  \"mcpServers\": {\n    // kept\n    \"b\": {\"command\": \"x\"},\n    \"mcpx\": {\"command\": \"/bin/mcpx\", \"args\": [\"/etc/mcpx.json\"]}\n  }\n}\n",
			`+ "mcpx": {"command": "/bin/mcpx", "args": ["/etc/mcpx.json"]}` + "\n" + `- "a" (moved to /etc/mcpx.json)` + "\n" + `- "c" (moved to /etc/mcpx.json)`},
		{"new TOML", "codex", mcpxEntry, nil, "", "[mcp_servers.mcpx]\ncommand = \"/bin/mcpx\"\nargs = [\"/etc/mcpx.json\"]\n",
			"+ [mcp_servers.mcpx]\n+ command = \"/bin/mcpx\"\n+ args = [\"/etc/mcpx.json\"]"},
		{"TOML", "codex", mcpxEntry, nil, "model = \"x\" # mine\r\n\r\n[mcp_servers.a]\r\ncommand = \"x\"",
			"model = \"x\" # mine\r\n\r\n[mcp_servers.a]\r\ncommand = \"x\"\r\n\r\n[mcp_servers.mcpx]\r\ncommand = \"/bin/mcpx\"\r\nargs = [\"/etc/mcpx.json\"]\r\n",
			"+ [mcp_servers.mcpx]\n+ command = \"/bin/mcpx\"\n+ args = [\"/etc/mcpx.json\"]"},
		{"TOML, odd name", "codex", Entry{Name: `my "proxy"`, Command: `C:\mcpx.exe`, Args: []string{"x"}}, nil, "",
			"[mcp_servers.\"my \\\"proxy\\\"\"]\ncommand = \"C:\\\\mcpx.exe\"\nargs = [\"x\"]\n",
			"+ [mcp_servers.\"my \\\"proxy\\\"\"]\n+ command = \"C:\\\\mcpx.exe\"\n+ args = [\"x\"]"},
		{"TOML update", "codex", changedEntry, nil,
			"[mcp_servers.mcpx]\n# where\ncommand = '/bin/mcpx'\nargs = [\n  \"/etc/mcpx.json\", # one\n]\nstartup_timeout_sec = 20\n\n[other]\nx = 1\n",
			"[mcp_servers.mcpx]\n# where\ncommand = \"/opt/mcpx\"\nargs = [\"/new.json\", \"--schema\", \"work\"]\nstartup_timeout_sec = 20\n\n[other]\nx = 1\n",
			"- [mcp_servers.mcpx]\n- command = \"/bin/mcpx\"\n- args = [\"/etc/mcpx.json\"]\n+ [mcp_servers.mcpx]\n+ command = \"/opt/mcpx\"\n+ args = [\"/new.json\", \"--schema\", \"work\"]"},
		{"TOML update without args", "codex", mcpxEntry, nil, "mcp_servers.mcpx.enabled = true\n[mcp_servers.mcpx]\n", "", ""},
		{"TOML update, no args yet", "codex", mcpxEntry, nil, "[mcp_servers.mcpx]\ncommand = \"mcpx\"", "[mcp_servers.mcpx]\ncommand = \"/bin/mcpx\"\nargs = [\"/etc/mcpx.json\"]\n",
			"- [mcp_servers.mcpx]\n- command = \"mcpx\"\n+ [mcp_servers.mcpx]\n+ command = \"/bin/mcpx\"\n+ args = [\"/etc/mcpx.json\"]"},
		{"TOML update, only args are missing", "codex", mcpxEntry, nil, "[mcp_servers.mcpx]\ncommand = \"/bin/mcpx\"", "[mcp_servers.mcpx]\ncommand = \"/bin/mcpx\"\nargs = [\"/etc/mcpx.json\"]\n",
			"- [mcp_servers.mcpx]\n- command = \"/bin/mcpx\"\n+ [mcp_servers.mcpx]\n+ command = \"/bin/mcpx\"\n+ args = [\"/etc/mcpx.json\"]"},
		{"TOML move", "codex", mcpxEntry, []string{"a"},
			"model = \"x\"\n\n# about a\n[mcp_servers.a]\ncommand = \"x\"\ntext = \"\"\"\n[mcp_servers.b]\n\"\"\"\n\n[mcp_servers.a.env]\nK = \"v\"\n\n# about b\n[mcp_servers.b]\ncommand = \"y\"\n",
			"model = \"x\"\n\n# about a\n\n# about b\n[mcp_servers.b]\ncommand = \"y\"\n\n[mcp_servers.mcpx]\ncommand = \"/bin/mcpx\"\nargs = [\"/etc/mcpx.json\"]\n",
			"+ [mcp_servers.mcpx]\n+ command = \"/bin/mcpx\"\n+ args = [\"/etc/mcpx.json\"]\n- \"a\" (moved to /etc/mcpx.json)"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if row.want == "" { // invalid TOML
				if _, err := Install(place(row.client), []byte(row.in), row.entry, nil, ""); err == nil {
					t.Error("no error")
				}
				return
			}
			c, err := Install(place(row.client), []byte(row.in), row.entry, row.move, "/etc/mcpx.json")
			if err != nil {
				t.Fatal(err)
			}
			if string(c.After) != row.want {
				t.Errorf("got\n%s\nwant\n%s", c.After, row.want)
			}
			if got := strings.Join(c.Lines, "\n"); got != row.lines {
				t.Errorf("lines\n%s\nwant\n%s", got, row.lines)
			}
			again, err := Install(place(row.client), c.After, row.entry, nil, "")
			if err != nil || !again.IsEmpty() || string(again.After) != string(c.After) {
				t.Errorf("twice: %v, %v\n%s", err, again.Lines, again.After)
			}
		})
	}
}

// TestUninstall: Uninstall restores the bytes from before Install.
func TestUninstall(t *testing.T) {
	for _, client := range Names() {
		for _, in := range map[bool][]string{
			false: {"{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"} // c\n  },\n  \"servers\": {}\n}\n", "{\"mcpServers\":{},\"servers\":{\"a\":{\"url\":\"http://x\"}}}"},
			true:  {"", "# mine\nmodel = \"x\"\n\n[mcp_servers.a]\ncommand = \"x\"\n", "x = 1\r\n"},
		}[client == "codex"] {
			t.Run(fmt.Sprintf("%s %q", client, in), func(t *testing.T) {
				p := place(client)
				with, err := Install(p, []byte(in), mcpxEntry, nil, "")
				if err != nil {
					t.Fatal(err)
				}
				c, err := Uninstall(p, with.After, "mcpx")
				if err != nil || string(c.After) != in || len(c.Lines) == 0 {
					t.Errorf("%v, %v, got\n%s\nwant\n%s", err, c.Lines, c.After, in)
				}
				again, err := Uninstall(p, c.After, "mcpx")
				if err != nil || !again.IsEmpty() {
					t.Errorf("twice: %v, %v", err, again.Lines)
				}
			})
		}
	}
}

func TestInstallRefuses(t *testing.T) {
	for _, row := range []struct{ name, client, in, want string }{
		{"broken JSON", "cursor", `{"mcpServers": `, "not valid JSON: "},
		{"not an object", "cursor", `[]`, `expected an object with servers below "mcpServers"`},
		{"servers are a list", "cursor", `{"mcpServers": []}`, `expected an object with servers below "mcpServers"`},
		{"twice", "cursor", `{"mcpServers": {}, "mcpServers": {}}`, "duplicate key"},
		{"too deep", "cursor", strings.Repeat("[", 1000), "nested deeper"},
		{"another server", "cursor", `{"mcpServers": {"mcpx": {"command": "other"}}}`, `server "mcpx" is not mcpx`},
		{"broken TOML", "codex", `[mcp_servers`, "not valid TOML: "},
		{"inline table", "codex", `mcp_servers = {a = {command = "x"}}`, "cannot edit safely"},
		{"not a table", "codex", `mcp_servers = 1`, `expected a table "mcp_servers"`},
		{"inline entry", "codex", "[mcp_servers]\nmcpx = {command = \"mcpx\"}\n", "cannot edit safely"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := Install(place(row.client), []byte(row.in), mcpxEntry, nil, "")
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %s", err, row.want)
			}
		})
	}
	_, err := Uninstall(place("cursor"), []byte(`{"mcpServers": {"mcpx": {"command": "other"}}}`), "mcpx")
	var other *NotMcpxError
	if !errors.As(err, &other) {
		t.Errorf("got %v", err)
	}
}

// TestEveryClientHasNext: every known client says what to do after mcpx was added.
func TestEveryClientHasNext(t *testing.T) {
	for _, c := range all {
		if c.next == "" {
			t.Errorf("%s has nothing to do next", c.name)
		}
	}
}

func TestUserFile(t *testing.T) {
	windows := System{OS: "windows", Home: `C:\Users\me`, Dir: `D:\p`, Lookup: lookup(map[string]string{"APPDATA": `C:\A`, "LOCALAPPDATA": `C:\L`})}
	store := `C:\L\Packages\Claude_pzs8sxrjxfjjc\LocalCache\Roaming\Claude`
	for _, row := range []struct {
		name   string
		system System
		client string
		there  []string
		want   string
	}{
		{"nothing there", System{OS: "linux", Home: "/h", Dir: "/p"}, "vscode", nil, "/h/.config/Code/User/mcp.json"},
		{"folder of another edition", System{OS: "linux", Home: "/h", Dir: "/p"}, "vscode", []string{"/h/.config/VSCodium/User"}, "/h/.config/VSCodium/User/mcp.json"},
		{"file before folder", System{OS: "linux", Home: "/h", Dir: "/p"}, "vscode", []string{"/h/.config/Code/User", "/h/.config/Code - Insiders/User/mcp.json"}, "/h/.config/Code - Insiders/User/mcp.json"},
		{"a project's file is not the user's", System{OS: "linux", Home: "/h", Dir: "/p"}, "cursor", []string{"/p/.cursor/mcp.json"}, "/h/.cursor/mcp.json"},
		{"store", windows, "claude-desktop", []string{store}, store + `\claude_desktop_config.json`},
		{"codex", System{OS: "darwin", Home: "/h", Dir: "/p"}, "codex", nil, "/h/.codex/config.toml"},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.system.Exists = func(path string) bool { return slices.Contains(row.there, path) }
			if got := row.system.UserFile(row.client).Path; got != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
		})
	}
}

func TestTake(t *testing.T) {
	c := &Collection{System: System{OS: "linux", Home: "/h"}}
	c.Know("a", []byte(`{"command":"x"}`))
	c.Know("b", []byte(`{"command":"other"}`))
	text := []byte(`{"mcpServers": { // a comment
		"a": {"command": "x"}, "b": {"command": "y"}, "bad": {"args": []}, "mcpx": {"command": "mcpx"}, "self": {"command": "/opt/m"},
		"in": {"command": "z", "env": {"K": "${input:k}"}}
	}, "inputs": [{"id": "k", "description": "The key"}], "projects": {"/p": {"mcpServers": {"no": {"command": "x"}}}}}`)
	taken, err := c.Take(place("cursor"), text, "/opt/m")
	if !strings.Contains(string(text), "// a comment") {
		t.Error("the text was changed")
	}
	if err != nil || fmt.Sprint(taken) != "[a b in]" {
		t.Errorf("%v, %v", taken, err)
	}
	want := `{"mcpServers":{"b-cursor":{"command":"y"},"in":{"command":"z","env":{"K":"${K}"}}}}`
	if added := string(rawjson.Compact(configOf(t, c))); added != want {
		t.Errorf("got %s, want %s", added, want)
	}
	if notes := strings.Join(c.Notes, "\n"); !strings.Contains(notes, "(The key)") || strings.Contains(notes, "mcpx itself") {
		t.Error(notes)
	}
}

// FuzzInstallTOML: adding mcpx to Codex's config and removing it restores the values, or
// the edit is refused.
func FuzzInstallTOML(f *testing.F) {
	for _, seed := range []string{"", "a = 1", "[mcp_servers.a]\ncommand = 'x' # c\n[[b]]\nc = [\n1,\n]\n", "mcp_servers.mcpx.command = \"mcpx\"\n", "[mcp_servers]\nmcpx = {command = \"mcpx\"}\r\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, src string) {
		p := place("codex")
		before, _, err := tomlValues([]byte(src))
		if err != nil || len(src) > 1000 {
			return
		}
		with, err := Install(p, []byte(src), mcpxEntry, nil, "")
		if err != nil {
			return
		}
		after, err := Uninstall(p, with.After, "mcpx")
		if err != nil {
			return // it was there before, in a form that can be updated but not removed
		}
		values, _, err := tomlValues(after.After)
		for _, v := range []map[string]any{before, values} {
			if servers, ok := v[tomlServers].(map[string]any); ok {
				delete(servers, "mcpx")
			}
			if servers, ok := v[tomlServers].(map[string]any); ok && len(servers) == 0 {
				delete(v, tomlServers)
			}
		}
		if err != nil || fmt.Sprint(values) != fmt.Sprint(before) {
			t.Errorf("%v: %q became %q", err, src, after.After)
		}
	})
}

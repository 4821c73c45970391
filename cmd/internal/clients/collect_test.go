package clients

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"

	"mcpx/config"
	"mcpx/config/edit"
)

// collect imports files of one client each.
func collect(t *testing.T, system System, files ...string) *Collection {
	t.Helper()
	c := &Collection{System: system}
	for i, text := range files {
		path := []string{"a.json", "b.json", "c.json"}[i]
		if strings.HasPrefix(strings.TrimSpace(text), "[") {
			path = "a.toml"
		}
		place := Place{Client: []string{"one", "two", "three"}[i], Title: []string{"One", "Two", "Three"}[i], Path: path, Project: system.Dir}
		c.Add([]Place{place}, func(string) ([]byte, error) { return []byte(text), nil })
	}
	return c
}

// configOf returns a new config with the servers.
func configOf(t *testing.T, c *Collection) []byte {
	t.Helper()
	text, err := edit.Text(config.Hooks{}, "mcpx.json", nil, func(e *edit.Editor) error { return c.AddTo(e, "") })
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// servers returns the servers of the new config, which must load without warnings.
func servers(t *testing.T, c *Collection) map[string]any {
	t.Helper()
	file, err := config.Parse("mcpx.json", configOf(t, c), func(string) (string, bool) { return "x", true })
	if err != nil || len(file.Warnings) > 0 {
		t.Fatalf("%v %v\n%s", err, file, configOf(t, c))
	}
	var made struct{ MCPServers map[string]any }
	if err := json.Unmarshal(configOf(t, c), &made); err != nil {
		t.Fatal(err)
	}
	return made.MCPServers
}

// TestConvert compares servers in a client's config with those in mcpx's.
func TestConvert(t *testing.T) {
	system := System{OS: "linux", Home: "/home/me", Dir: "/src/p", Lookup: lookup(nil)}
	for _, c := range []struct {
		name, server, want string
		notes              []string
	}{
		{"what both have", `{"command":"npx","args":["-y","x"],"env":{"A":"${A}","B":"${env:B}","C":"${C:-d}"},"cwd":"/w","description":"d"}`,
			`{"command":"npx","args":["-y","x"],"env":{"A":"${A}","B":"${env:B}","C":"${C:-d}"},"cwd":"/w","description":"d"}`, nil},
		{"what goes without saying", `{"type":"stdio","command":"x","args":[],"env":{},"disabled":false,"enabled":true,"cwd":null}`, `{"command":"x"}`, nil},
		{"switched off", `{"command":"x","disabled":true}`, `{"command":"x","disabled":true}`, nil},
		{"not switched on", `{"command":"x","enabled":false}`, `{"command":"x","disabled":true}`, nil},
		{"remote", `{"type":"streamableHttp","url":"https://a.b/mcp","headers":{"K":"${K}"}}`, `{"type":"http","url":"https://a.b/mcp","headers":{"K":"${K}"}}`, nil},
		{"sse", `{"transport":"SSE","url":"https://a.b/sse"}`, `{"type":"sse","url":"https://a.b/sse"}`, nil},
		{"another transport", `{"type":"ws","url":"https://a.b"}`, `{"url":"https://a.b"}`, []string{`mcpx does not support type "ws"; it is left out`}},
		{"Windsurf", `{"serverUrl":"https://a.b","disabledTools":["rm"]}`, `{"url":"https://a.b","tools":{"deny":["rm"]}}`, nil},
		{"Gemini", `{"httpUrl":"https://a.b","includeTools":["a"],"excludeTools":["b"],"timeout":60000}`,
			`{"url":"https://a.b","tools":{"allow":["a"],"deny":["b"]},"timeout":60}`, []string{"timeout 60000 is read as milliseconds"}},
		{"seconds", `{"command":"x","timeout":90}`, `{"command":"x","timeout":90}`, nil},
		{"all tools", `{"command":"x","tools":["*"]}`, `{"command":"x"}`, nil},
		{"a command with its arguments", `{"command":["npx","-y","x"]}`, `{"command":"npx","args":["-y","x"]}`, nil},
		{"a command with some of its arguments", `{"command":["npx","-y"],"args":["x"]}`, `{"command":"npx","args":["-y","x"]}`, nil},
		{"the other arguments first", `{"args":["x"],"command":["npx","-y"]}`, `{"command":"npx","args":["-y","x"]}`, nil},
		{"numbers for texts", `{"command":"x","args":[1,true],"env":{"PORT":8080,"NONE":null}}`, `{"command":"x","args":["1","true"],"env":{"PORT":"8080"}}`, nil},
		{"keys that mcpx has not", `{"command":"x","alwaysAllow":["a"],"envFile":".env"}`, `{"command":"x"}`,
			[]string{`"alwaysAllow" means nothing to mcpx and is left out`, `"envFile" means nothing to mcpx and is left out`}},
		{"an editor's words", `{"command":"${workspaceFolder}/run","args":["${userHome}","a${/}b","${workspaceFolderBasename}"]}`,
			`{"command":"/src/p/run","args":["/home/me","a/b","p"]}`, nil},
		{"an editor's questions", `{"url":"https://a.b","headers":{"A":"Bearer ${input:my-key}","B":"${input:other}"}}`,
			`{"url":"https://a.b","headers":{"A":"Bearer ${MY_KEY}","B":"${OTHER}"}}`,
			[]string{"${input:my-key} is now ${MY_KEY}: set that variable (The key)", "${input:other} is now ${OTHER}: set that variable"}},
		{"files of the project", `{"command":"node","args":["./server.js"]}`, `{"command":"node","args":["./server.js"],"cwd":"/src/p"}`,
			[]string{"it is started in /src/p, since its command line names files there"}},
		{"a folder of the project", `{"command":"./run","cwd":"sub"}`, `{"command":"./run","cwd":"/src/p/sub"}`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := collect(t, system, `{"inputs":[{"id":"my-key","description":"The key"}],"servers":{"s":`+c.server+`}}`)
			var want any
			if err := json.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			if got := servers(t, found)["s"]; !reflect.DeepEqual(got, want) {
				t.Errorf("got\n%v\nwant\n%v", got, want)
			}
			for i := range c.notes {
				c.notes[i] = `One, "s": ` + c.notes[i]
			}
			if !slices.Equal(found.Notes, c.notes) {
				t.Errorf("notes:\n%s\nwant\n%s", strings.Join(found.Notes, "\n"), strings.Join(c.notes, "\n"))
			}
		})
	}
}

// TestFilesOfTheProject: a project's server is started in the project if its command line
// names files there.
func TestFilesOfTheProject(t *testing.T) {
	there := []string{"server.py", "dist/index.js", ".venv/bin/python", "sub", "time", "run.sh"}
	system := System{OS: "linux", Dir: "/src/p", Exists: func(path string) bool {
		below, ok := strings.CutPrefix(path, "/src/p/")
		return ok && slices.Contains(there, below)
	}}
	for server, want := range map[string]bool{
		`{"command":"python","args":["server.py"]}`:                         true,
		`{"command":"node","args":["--inspect","dist/index.js"]}`:           true,
		`{"command":".venv/bin/python","args":["-m","x"]}`:                  true,
		`{"command":"uv","args":["--directory","sub","run","x"]}`:           true,
		`{"command":"uv","args":["--directory=sub","run","x"]}`:             true,
		`{"command":"x","args":["--config=dist/index.js"]}`:                 true,
		`{"command":"x","args":[".."]}`:                                     true,
		`{"command":"uvx","args":["time"]}`:                                 false, // a package
		`{"command":"run.sh"}`:                                              false, // in the PATH
		`{"command":"npx","args":["-y","@scope/pkg","mcp-server@1.2.3"]}`:   false,
		`{"command":"python","args":["other.py"]}`:                          false,
		`{"command":"python","args":["/src/p/server.py"]}`:                  false,
		`{"command":"npx","args":["mcp-remote","https://example.com/mcp"]}`: false,
		`{"command":"x","args":["--directory"]}`:                            false,
	} {
		made, _ := servers(t, collect(t, system, `{"mcpServers":{"s":`+server+`}}`))["s"].(map[string]any)
		if got := made["cwd"]; got != nil != want || want && got != "/src/p" {
			t.Errorf("%s: cwd %v, want one: %v", server, got, want)
		}
	}
}

func TestCodex(t *testing.T) {
	found := collect(t, System{OS: "linux"}, `
[mcp_servers.local]
command = "npx"
args = ["-y", "x"]
env = { A = "b" }
env_vars = ["HOME_KEY"]
startup_timeout_sec = 20
tool_timeout_sec = 45.5
enabled_tools = ["a"]
disabled_tools = ["b"]

[mcp_servers.remote]
url = "https://a.b/mcp"
bearer_token_env_var = "TOKEN"
http_headers = { X = "1" }
env_http_headers = { Y = "Y_VAR" }
startup_timeout_ms = 1500
enabled = false
`)
	want := map[string]any{
		"local": map[string]any{
			"command": "npx", "args": []any{"-y", "x"}, "env": map[string]any{"A": "b", "HOME_KEY": "${HOME_KEY:-}"},
			"startup_timeout": 20.0, "timeout": 45.5, "tools": map[string]any{"allow": []any{"a"}, "deny": []any{"b"}},
		},
		"remote": map[string]any{
			"url": "https://a.b/mcp", "headers": map[string]any{"Authorization": "Bearer ${TOKEN}", "X": "1", "Y": "${Y_VAR}"},
			"startup_timeout": 1.5, "disabled": true,
		},
	}
	if got := servers(t, found); !reflect.DeepEqual(got, want) || len(found.Notes) > 0 {
		t.Errorf("got\n%v\n%v\nwant\n%v", got, found.Notes, want)
	}
}

// TestWhereServersAre: servers are found wherever clients write them in a file.
func TestWhereServersAre(t *testing.T) {
	for name, file := range map[string]string{
		"map":         `{"mcpServers":{"a":{"command":"x"}}}`,
		"VS Code":     `{"servers":{"a":{"command":"x"}},}`,
		"its setting": `{"editor.x":1,/* here */"mcp":{"servers":{"a":{"command":"x"}}}}`,
		"array":       `{"mcp_servers":[{"name":"a","command":"x"}]}`,
		"project":     `{"projects":{"/p":{"mcpServers":{"a":{"command":"x"}}}}}`,
		"profile":     `{"profiles":{"s":{"mcpServers":{"a":{"command":"x"}}}}}`,
		"schema":      `{"schemas":{"s":{"mcpServers":{"a":{"command":"x"}}}}}`,
		"BOM":         "\ufeff" + `{"mcpServers":{"a":{"command":"x"}}}`,
	} {
		if got := servers(t, collect(t, System{}, file)); !reflect.DeepEqual(got, map[string]any{"a": map[string]any{"command": "x"}}) {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// TestSameAndOther: the same server in two clients becomes one. Another server with that
// name gets another name.
func TestSameAndOther(t *testing.T) {
	found := collect(t, System{},
		`{"mcpServers":{"a":{"command":"x","args":["1"]},"mcpx":{"command":"mcpx"},"own":{"command":"C:\\bin\\MCPX.exe"}}}`,
		`{"mcpServers":{"a":{"args":["1"],"command":"x","type":"stdio"}}}`,
		`{"mcpServers":{"a":{"command":"y"},"a-three":{"command":"z"}},"projects":{"/p":{"mcpServers":{"a":{"command":"y"}}},"/q":{"mcpServers":{"a":{"command":"w"}}}}}`,
	)
	want := map[string]any{
		"a":             map[string]any{"command": "x", "args": []any{"1"}},
		"a-three":       map[string]any{"command": "y"},
		"a-three-three": map[string]any{"command": "z"},
		"a-three-2":     map[string]any{"command": "w"},
	}
	if got := servers(t, found); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%v\nwant\n%v", got, want)
	}
	notes := []string{
		`One, "mcpx": this is mcpx itself; left out`,
		`One, "own": this is mcpx itself; left out`,
		`Three, "a": another server has this name; called "a-three" here`,
		`Three, "a-three": another server has this name; called "a-three-three" here`,
		`Three, "a": another server has this name; called "a-three-2" here`,
	}
	if !slices.Equal(found.Notes, notes) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(found.Notes, "\n"), strings.Join(notes, "\n"))
	}
}

// TestLeftOut: servers that mcpx cannot use are left out, so that the config loads.
func TestLeftOut(t *testing.T) {
	found := collect(t, System{}, `{"mcpServers":{"good":{"command":"x"},"none":{},"both":{"command":"x","url":"https://a.b"},"odd":{"command":"x","args":["${"]},"text":"x"}}`)
	if got := servers(t, found); len(got) != 1 || got["good"] == nil {
		t.Errorf("got %v", got)
	}
	if len(found.Notes) != 4 || !slices.ContainsFunc(found.Notes, func(n string) bool { return n == `One, "none": left out: needs command or url` }) {
		t.Errorf("got\n%s", strings.Join(found.Notes, "\n"))
	}
}

// TestLeftOutOnce: a server that is left out has only one note.
func TestLeftOutOnce(t *testing.T) {
	found := collect(t, System{}, `{"mcpServers":{"socket":{"type":"ws","url":"ws://a.b","odd":1}}}`)
	if len(found.Notes) != 1 || !strings.HasPrefix(found.Notes[0], `One, "socket": left out: url `) {
		t.Errorf("got %q", found.Notes)
	}
}

// TestDuplicateKeys: a duplicate key is reported, wherever it is.
func TestDuplicateKeys(t *testing.T) {
	for _, row := range []struct {
		name, file string
		notes      []string
	}{
		{"none", `{"mcpServers":{"a":{"command":"x"},"b":{"command":"x"}}}`, nil},
		{"a server", "{\"mcpServers\":{\n\"a\":{\"command\":\"x\"},\n\"a\":{\"command\":\"x\"}}}",
			[]string{"One: a.json:3:1: mcpServers.a: duplicate key; first on line 2; remove one of them"}},
		{"in a server, with comments", "// mine\n{\"mcpServers\":{\"a\":{\"command\":\"x\",\n\"command\":\"y\",},},}",
			[]string{"One: a.json:3:1: mcpServers.a.command: duplicate key; first on line 2; remove one of them"}},
		{"the list of servers", "{\"mcpServers\":{},\n\"mcpServers\":{\"a\":{\"command\":\"x\"}}}",
			[]string{"One: a.json:2:1: mcpServers: duplicate key; first on line 1; remove one of them"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := collect(t, System{}, row.file)
			if !slices.Equal(c.Notes, row.notes) {
				t.Errorf("notes %q, want %q", c.Notes, row.notes)
			}
			servers(t, c)
		})
	}
	toml := collect(t, System{}, "[mcp_servers.a]\ncommand='x'\n[mcp_servers.a]\ncommand='y'")
	if err := toml.Files[0].Err; err == nil || !strings.Contains(err.Error(), "not valid TOML") {
		t.Errorf("TOML: %v", err)
	}
}

// TestReadFile: errors are in plain words, and TOML may have any file name.
func TestReadFile(t *testing.T) {
	for _, c := range []struct{ path, text, want string }{
		{"config", "[mcp_servers.a]\ncommand = \"x\"\n", ""},
		{"config", "model = \"m\"\n[mcp_servers.a]\ncommand = \"x\"\n", ""},
		{"a.json", "", "the file is empty"},
		{"a.json", "\ufeff \n", "the file is empty"},
		{"a.toml", "", "the file is empty"},
		{"a.json", "\n{\"mcpServers\":", "not valid JSON: line 2, column 15: "},
		{"a.toml", "[mcp_servers", "not valid TOML: "},
		{"a.json", "hello", "not valid JSON: line 1, column 1: "},
	} {
		found, err := read(c.path, []byte(c.text), "")
		switch {
		case c.want == "" && (err != nil || len(found.servers) != 1):
			t.Errorf("%s %q: %v %v", c.path, c.text, found, err)
		case c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "toml: ")):
			t.Errorf("%s %q: got %v, want %s", c.path, c.text, err, c.want)
		}
	}
}

// TestFilesThatCannotBeRead: an unreadable file is reported, a missing one is not.
func TestFilesThatCannotBeRead(t *testing.T) {
	c := &Collection{}
	c.Add([]Place{{Path: "gone"}, {Path: "locked"}, {Path: "torn"}, {Path: "list"}, {Path: "deep"}, {Path: "x.toml"}}, func(path string) ([]byte, error) {
		switch path {
		case "gone":
			return nil, fs.ErrNotExist
		case "locked":
			return nil, fs.ErrPermission
		case "list":
			return []byte(`[]`), nil
		case "deep": // a recursive parser would overflow its stack
			return bytes.Repeat([]byte("["), 16<<20), nil
		}
		return []byte(`{"a":`), nil
	})
	var got []string
	for _, f := range c.Files {
		if f.Err == nil {
			t.Errorf("%s: no error", f.Path)
			continue
		}
		got = append(got, f.Path)
	}
	if want := []string{"locked", "torn", "list", "deep", "x.toml"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if !errors.Is(c.Files[0].Err, fs.ErrPermission) || c.Len() != 0 {
		t.Errorf("%v, %d servers", c.Files[0].Err, c.Len())
	}
}

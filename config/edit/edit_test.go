package edit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"mcpx/config"
	"mcpx/internal/jsonc"
)

const addedServer = `{"command":"uvx","args":["mcp-server-time"]}`

// noVariables is an environment without variables.
func noVariables(string) (string, bool) { return "", false }

func add(profile string) func(e *Editor) error {
	return func(e *Editor) error { return e.Add(profile, "new", []byte(addedServer)) }
}

func TestText(t *testing.T) {
	remove := func(e *Editor) error { return e.Remove("", "time") }
	enable := func(e *Editor) error { return e.Enable("", "time") }
	disable := func(e *Editor) error { return e.Disable("", "time") }
	for _, row := range []struct {
		name     string
		change   func(e *Editor) error
		in, want string
	}{
		{"add to a new file", add(""), "", "{\n  \"mcpServers\": {\n    \"new\": {\n      \"command\": \"uvx\",\n      \"args\": [\"mcp-server-time\"]\n    }\n  }\n}\n"},
		{"add to an empty object", add(""), "{}\n", "{\n  \"mcpServers\": {\n    \"new\": {\n      \"command\": \"uvx\",\n      \"args\": [\"mcp-server-time\"]\n    }\n  }\n}\n"},
		{"add to a map", add(""),
			"{\n  // mine\n  \"mcpServers\": {\n    \"time\": {\"command\": \"x\"}, // clock\n    // \"off\": {}\n  },\n}\n",
			"{\n  // mine\n  \"mcpServers\": {\n    \"time\": {\"command\": \"x\"}, // clock\n    // \"off\": {}\n    \"new\": {\"command\": \"uvx\", \"args\": [\"mcp-server-time\"]},\n  },\n}\n"},
		{"add to an array", add(""),
			"{\"mcp_servers\": [\n    {\"name\": \"time\", \"command\": \"x\"} // clock\n]}",
			"{\"mcp_servers\": [\n    {\"name\": \"time\", \"command\": \"x\"}, // clock\n    {\"name\": \"new\", \"command\": \"uvx\", \"args\": [\"mcp-server-time\"]}\n]}"},
		{"add to VS Code's map", add(""),
			"{\r\n\t\"servers\": {\r\n\t\t\"time\": {\r\n\t\t\t\"type\": \"stdio\",\r\n\t\t\t\"command\": \"x\"\r\n\t\t}\r\n\t}\r\n}\r\n",
			"{\r\n\t\"servers\": {\r\n\t\t\"time\": {\r\n\t\t\t\"type\": \"stdio\",\r\n\t\t\t\"command\": \"x\"\r\n\t\t},\r\n\t\t\"new\": {\r\n\t\t\t\"command\": \"uvx\",\r\n\t\t\t\"args\": [\"mcp-server-time\"]\r\n\t\t}\r\n\t}\r\n}\r\n"},
		{"add to a profile", add("work"),
			"{\"schemas\": {\"default\": {\"mcpServers\": {}}, \"work\": {\"mcpServers\": {}}}}",
			"{\"schemas\": {\"default\": {\"mcpServers\": {}}, \"work\": {\"mcpServers\": {\"new\": {\"command\": \"uvx\", \"args\": [\"mcp-server-time\"]}}}}}"},
		{"add to one of profiles", add("work"),
			"{\"profiles\": {\"work\": {\"mcpServers\": {}}}} // mine",
			"{\"profiles\": {\"work\": {\"mcpServers\": {\"new\": {\"command\": \"uvx\", \"args\": [\"mcp-server-time\"]}}}}} // mine"},
		{"a new one of profiles", func(e *Editor) error { return e.AddProfile("b") },
			"{\"profiles\": {\"a\": {\"mcpServers\": {}}}}", "{\"profiles\": {\"a\": {\"mcpServers\": {}}, \"b\": {\"mcpServers\": {}}}}"},
		{"add to a new profile", func(e *Editor) error {
			if err := e.AddProfile("work"); err != nil {
				return err
			}
			return add("work")(e)
		},
			"{\n  \"schemas\": {\n    \"default\": {\n      \"mcpServers\": {}\n    }\n  }\n}\n",
			"{\n  \"schemas\": {\n    \"default\": {\n      \"mcpServers\": {}\n    },\n    \"work\": {\n      \"mcpServers\": {\n        \"new\": {\n          \"command\": \"uvx\",\n          \"args\": [\"mcp-server-time\"]\n        }\n      }\n    }\n  }\n}\n"},
		{"a variable that is not set", add(""),
			`{"server": {"token": "${NOBODY_SETS_THIS}"}, "mcpServers": {}}`,
			`{"server": {"token": "${NOBODY_SETS_THIS}"}, "mcpServers": {"new": {"command": "uvx", "args": ["mcp-server-time"]}}}`},
		{"replace", func(e *Editor) error { return e.Replace("", "time", []byte(addedServer)) },
			"{\"mcp_servers\": [{\"name\": \"time\", \"command\": \"x\"}]} // end",
			"{\"mcp_servers\": [{\"name\": \"time\", \"command\": \"uvx\", \"args\": [\"mcp-server-time\"]}]} // end"},
		{"remove from a map", remove,
			"{\n  \"mcpServers\": {\n    // clock\n    \"time\": {\n      \"command\": \"x\" // y\n    }\n  }\n}\n",
			"{\n  \"mcpServers\": {\n    // clock\n  }\n}\n"},
		{"remove from an array", remove,
			"{\"mcp_servers\": [{\"name\": \"a\", \"command\": \"x\"}, {\"name\": \"time\", \"command\": \"x\"}]}",
			"{\"mcp_servers\": [{\"name\": \"a\", \"command\": \"x\"}]}"},
		{"disable", disable,
			"{\"mcpServers\": {\"time\": {\n  \"command\": \"x\" // y\n}}}",
			"{\"mcpServers\": {\"time\": {\n  \"command\": \"x\", // y\n  \"disabled\": true\n}}}"},
		{"disable with enabled", disable,
			`{"mcp_servers": [{"name": "time", "enabled": true, "command": "x"}]}`,
			`{"mcp_servers": [{"name": "time", "enabled": false, "command": "x"}]}`},
		{"disable with both", disable,
			`{"mcpServers": {"time": {"enabled": true, "disabled": false, "command": "x"}}}`,
			`{"mcpServers": {"time": {"enabled": false, "command": "x"}}}`},
		{"disable twice", disable,
			`{"mcpServers": {"time": {"command": "x", "disabled": true}}}`, `{"mcpServers": {"time": {"command": "x", "disabled": true}}}`},
		{"enable", enable,
			`{"servers": {"time": {"disabled": true, "command": "x"}}}`, `{"servers": {"time": {"command": "x"}}}`},
		{"enable with enabled", enable,
			`{"mcpServers": {"time": {"enabled": false, "command": "x"}}}`, `{"mcpServers": {"time": {"enabled": true, "command": "x"}}}`},
		{"enable twice", enable,
			`{"mcpServers": {"time": {"command": "x"}}}`, `{"mcpServers": {"time": {"command": "x"}}}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := Text(config.Hooks{}, "mcpx.json", []byte(row.in), row.change)
			if err != nil || string(got) != row.want {
				t.Errorf("%v, got\n%s\nwant\n%s", err, got, row.want)
			}
		})
	}
}

func TestTextRefuses(t *testing.T) {
	server := func(text string) func(e *Editor) error {
		return func(e *Editor) error { return e.Add("", "new", []byte(text)) }
	}
	for _, row := range []struct {
		name, in string
		change   func(e *Editor) error
		want     string
	}{
		{"not JSON", `{"mcpServers": `, add(""), "mcpx.json:1:16: the file ends too early"},
		{"not an object", `[]`, add(""), "mcpx.json:1:1: expected an object"},
		{"already wrong", `{"mcpServers": {"a": {}}}`, add(""), "mcpx.json:1:22: mcpServers.a: needs command or url"},
		{"wrong url", `{"mcpServers": {}}`, server(`{"url": "ftp://x"}`), "mcpServers.new.url: expected an absolute http or https url"},
		{"wrong name", `{"mcpServers": {}}`, func(e *Editor) error { return e.Add("", "a__b", []byte(addedServer)) }, `mcpServers.a__b: a name must not contain "__"`},
		{"prefix", `{"prefix": false, "mcpServers": {"a": {"command": "x"}}}`, add(""), "prefix: false needs a single server"},
		{"exists", `{"mcpServers": {"new": {"command": "x"}}}`, add(""), `server "new" exists already`},
		{"unknown", `{"mcpServers": {"new": {"command": "x"}}}`, func(e *Editor) error { return e.Remove("", "old") }, `unknown server "old"`},
		{"unknown profile", `{"schemas": {"a": {"mcpServers": {}}}}`, add("b"), `unknown profile "b"`},
		{"unknown one of profiles", `{"profiles": {"a": {"mcpServers": {}}}}`, add("b"), `unknown profile "b"`},
		{"both keys", `{"schemas": {"a": {"mcpServers": {}}}, "profiles": {"b": {"mcpServers": {}}}}`, add("b"), `mcpx.json:1:40: profiles: cannot be combined with "schemas" on line 1; keep one of them`},
		{"no profiles", `{"mcpServers": {}}`, func(e *Editor) error { return e.AddProfile("b") }, `unknown profile "b"`},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := Text(config.Hooks{}, "mcpx.json", []byte(row.in), row.change)
			if err == nil || !strings.HasPrefix(err.Error(), row.want) {
				t.Errorf("got %v, want %s", err, row.want)
			}
		})
	}
}

func TestUnknownServerElsewhere(t *testing.T) {
	in := `{"schemas": {"default": {"mcpServers": {"b": {"command": "x"}}}, "work": {"mcp_servers": [{"name": "a", "command": "x"}]}}}`
	_, err := Text(config.Hooks{}, "mcpx.json", []byte(in), func(e *Editor) error { return e.Disable("", "a") })
	var unknown *UnknownServerError
	want := &UnknownServerError{Profile: "default", Name: "a", Known: []string{"b"}, Elsewhere: []string{"work"}}
	if !errors.As(err, &unknown) || !reflect.DeepEqual(unknown, want) {
		t.Errorf("got %+v, want %+v", unknown, want)
	}
}

func TestEditorServers(t *testing.T) {
	for _, in := range []string{
		`{"mcpServers": {"a": {"command": "x"}, "b": {/* c */ "url": "http://x",}}}`,
		`{"mcp_servers": [{"command": "x", "name": "a"}, {"name": "b", "url": "http://x"}]}`,
	} {
		_, err := Text(config.Hooks{}, "mcpx.json", []byte(in), func(e *Editor) error {
			names, servers, err := e.Servers("")
			if err != nil || fmt.Sprint(names) != "[a b]" || string(servers["a"]) != `{"command":"x"}` || string(servers["b"]) != `{"url":"http://x"}` {
				t.Errorf("%v %s %v", names, servers, err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestEditConcurrently: two processes that add servers at the same time lose none.
func TestEditConcurrently(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	path := filepath.Join(t.TempDir(), "mcpx.json")
	const servers = 10
	var all sync.WaitGroup
	for i := range servers {
		all.Go(func() {
			if _, err := File(config.Hooks{}, path, 0o600, func(e *Editor) error {
				return e.Add("", fmt.Sprintf("s%d", i), []byte(addedServer))
			}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	c, err := config.Hooks{}.Load(path)
	if err != nil || len(c.Profiles[0].Upstreams) != servers {
		t.Errorf("%v, %+v", err, c)
	}
}

// TestEditKeepsBrokenFile: a file that cannot be edited does not change.
func TestEditKeepsBrokenFile(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	path := filepath.Join(t.TempDir(), "mcpx.json")
	const broken = `{"mcpServers": {"a": {"command": 1}}}`
	if err := os.WriteFile(path, []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := File(config.Hooks{}, path, 0o600, add(""))
	var problems *jsonc.Error
	if !errors.As(err, &problems) {
		t.Errorf("got %v", err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != broken {
		t.Errorf("%q, %v", text, err)
	}
}

// FuzzAddRemove: adding a server to any config and removing it gives the same config.
func FuzzAddRemove(f *testing.F) {
	for _, seed := range []string{
		config.Sample, `{"mcp_servers": []}`, `{"servers": {"a": {"url": "http://x"}} /* c */}`, "{\"mcpServers\": {\n// c\n}}",
		`{"schemas": {"default": {"mcpServers": {}}}}`, "\ufeff{\"mcpServers\":{\"a\":{\"command\":\"x\"},}}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, src string) {
		if len(src) > 2000 {
			return
		}
		before, err := config.Parse("mcpx.json", []byte(src), noVariables)
		if err != nil {
			return
		}
		added, err := Text(config.Hooks{}, "mcpx.json", []byte(src), add(""))
		if err != nil {
			return // the name is used, or there is no such profile
		}
		after, err := Text(config.Hooks{}, "mcpx.json", added, func(e *Editor) error { return e.Remove("", "new") })
		if err != nil {
			t.Fatalf("%v in %s", err, added)
		}
		c, err := config.Parse("mcpx.json", after, noVariables)
		if err != nil || string(c.Show()) != string(before.Show()) {
			t.Errorf("%v: %s became %s", err, src, after)
		}
	})
}

// TestEditWithUnknownSecrets: secrets of the HTTP front need not be known to edit the file.
func TestEditWithUnknownSecrets(t *testing.T) {
	src := `{"mcpServers": {}, "server": {"token": "${A}", "session_key": ["${B}", "${keyring:c}"], "auth": {"tokens": [{"name": "ci", "token": "${D}", "allow": ["*"]}]}}}`
	if _, err := Text(config.Hooks{}, "mcpx.json", []byte(src), add("")); err != nil {
		t.Error(err)
	}
}

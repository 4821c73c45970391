package config

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpx/internal/policy/policytest"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/tailscale/hujson"
)

func TestShow(t *testing.T) {
	lookup := variables("HOME=/home/me", "API_KEY=expanded-api-key", "TOKEN=expanded-token", "PASSWORD=expanded-password")
	for _, file := range samples(t, "good") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			c, err := Parse("/etc/mcpx/mcpx.json", data, lookup)
			if err != nil {
				t.Fatal(err)
			}
			if c.Warnings != nil {
				t.Errorf("warnings: %v", c.Warnings)
			}
			shown := c.Show()
			golden(t, strings.TrimSuffix(file, ".jsonc")+".json", string(shown))
			for _, secret := range []string{"expanded-", "literal", "abc", "hunter2"} {
				if bytes.Contains(shown, []byte(secret)) {
					t.Errorf("%q is shown", secret)
				}
			}
			checkShown(t, shown, lookup)
		})
	}
}

// TestShowMadeByHand: a config that was not read from a file hides its secrets too.
func TestShowMadeByHand(t *testing.T) {
	p := defaultProfile("default")
	u := defaultUpstream()
	u.Name, u.Command, u.Env = "time", "uvx", map[string]string{"API_KEY": "literal"}
	p.Upstreams = []Upstream{u}
	c := defaults()
	c.Profiles = []Profile{p}
	want := mustParse(t, `{"mcpServers": {"time": {"command": "uvx", "env": {"API_KEY": "other"}}}}`).Show()
	want = bytes.Replace(want, []byte(`          "type": "stdio",`+"\n"), nil, 1)
	if got := c.Show(); !bytes.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestShowHidesPlainValues: every value of env and headers is hidden. Even a short and
// simple one may be a PIN.
func TestShowHidesPlainValues(t *testing.T) {
	c := mustParse(t, `{"mcpServers": {
		"a": {"command": "x", "env": {"TZ": "UTC", "MODE": "production", "PIN": "1234", "REGION": "${REGION}"}},
		"b": {"url": "https://example.com", "headers": {"X-Mode": "production"}}}}`, "REGION=north")
	a, b := c.Profiles[0].Upstreams[0].Public(), c.Profiles[0].Upstreams[1].Public()
	if want := map[string]string{"TZ": "***", "MODE": "***", "PIN": "***", "REGION": "${REGION}"}; !maps.Equal(a.Env, want) {
		t.Errorf("got %v, want %v", a.Env, want)
	}
	if want := map[string]string{"X-Mode": "***"}; !maps.Equal(b.Headers, want) {
		t.Errorf("got %v, want %v", b.Headers, want)
	}
}

// TestProfilesIsSchemas: a file is shown in the same way, whichever key holds its profiles.
func TestProfilesIsSchemas(t *testing.T) {
	const text = `{"KEY": {"work": {"expose": "flat", "mcpServers": {"a": {"command": "x"}}}, "off": {"enabled": false, "mcpServers": {}}}}`
	schemas := mustParse(t, strings.Replace(text, "KEY", "schemas", 1))
	profiles := mustParse(t, strings.Replace(text, "KEY", "profiles", 1))
	if got, want := string(profiles.Show()), string(schemas.Show()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if want := `"schemas": {`; !strings.Contains(string(profiles.Show()), want) {
		t.Errorf("%s is not in %s", want, profiles.Show())
	}
}

// validator checks files against the JSON Schema.
func validator(t *testing.T) func(data []byte) error {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(Hooks{}.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("mcpx.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("mcpx.json")
	if err != nil {
		t.Fatal(err)
	}
	return func(data []byte) error {
		t.Helper()
		standard, err := hujson.Standardize(append(data, '\n'))
		if err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(standard))
		if err != nil {
			t.Fatal(err)
		}
		return schema.Validate(value)
	}
}

func TestSchema(t *testing.T) {
	validate := validator(t)
	for _, file := range samples(t, "good") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(data); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	for _, name := range []string{
		"command_and_url", "durations", "env_must_be_strings", "expose", "limits_section", "list_elements", "logging_section", "no_shape",
		"names", "profiles_and_schemas", "schema_names", "schemas_empty", "server_section", "stdio_falls_back", "two_shapes", "urls", "wrong_types",
	} {
		data, err := os.ReadFile(filepath.Join("testdata", "bad", name+".jsonc"))
		if err != nil {
			t.Fatal(err)
		}
		if validate(data) == nil {
			t.Errorf("%s: valid", name)
		}
	}
	golden(t, "testdata/schema.json", string(Hooks{}.Schema()))
}

// TestSchemaOfTexts: names and texts that the reader refuses are invalid in an editor too.
func TestSchemaOfTexts(t *testing.T) {
	validate := validator(t)
	for _, file := range []string{
		`{"mcpServers": {"NAME": {"command": "x"}}}`,
		`{"servers": {"NAME": {"command": "x"}}}`,
		`{"mcp_servers": [{"name": "NAME", "command": "x"}]}`,
		`{"schemas": {"d": {"mcpServers": {"NAME": {"command": "x"}}}}}`,
	} {
		for _, name := range []string{"mcpx", "a__b", "", " a", "a ", "a/b", strings.Repeat("é", 65)} {
			if err := validate([]byte(strings.ReplaceAll(file, "NAME", name))); err == nil {
				t.Errorf("%q in %s: valid", name, file)
			}
		}
		for _, name := range []string{"mcpx2", "a_b", "日本 1.a-b_", strings.Repeat("é", 64)} {
			if err := validate([]byte(strings.ReplaceAll(file, "NAME", name))); err != nil {
				t.Errorf("%q in %s: %v", name, file, err)
			}
		}
	}
	for server, want := range map[string]bool{
		`"command": ""`:                       false,
		`"command": "x", "cwd": ""`:           false,
		`"url": "ftp://example.com/mcp"`:      false,
		`"url": "example.com"`:                false,
		`"url": "https:///mcp"`:               false,
		`"url": ""`:                           false,
		`"url": "HTTPS://example.com"`:        true,
		`"url": "http://${HOST:-a.b}:80/mcp"`: true,
		`"url": "${BASE}/mcp"`:                true,
	} {
		file := []byte(`{"mcpServers": {"a": {` + server + `}}}`)
		_, refused := Parse("x.json", file, variables())
		if err := validate(file); err == nil != want || refused == nil != want {
			t.Errorf("%s: %v; when read: %v", server, err, refused)
		}
	}
}

// TestShowTo: a caller sees the servers that its rules grant, and nothing else.
func TestShowTo(t *testing.T) {
	c := mustParse(t, `{
		"schemas": {
			"work": {"mcpServers": {"github": {"command": "gh", "args": ["--token", "hunter2-hunter2"], "tools": {"deny": ["delete_all"]}}, "jira": {"url": "https://jira.example.com", "description": "Tickets"}, "bank": {"command": "bank"}}},
			"home": {"mcpServers": {"lamp": {"command": "lamp"}}}
		},
		"server": {"token": "full-token"}
	}`)
	got := string(c.ShowTo(policytest.Allow("work/github", "work/jira/get_*")))
	for _, want := range []string{`"work"`, `"github"`, `"command": "gh"`, `"jira"`, "Tickets"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	for _, hidden := range []string{"hunter2", "delete_all", "jira.example.com", "bank", "home", "lamp", "server", "full-token"} {
		if strings.Contains(strings.ReplaceAll(got, "mcpServers", ""), hidden) {
			t.Errorf("%s is in %s", hidden, got)
		}
	}
	if all := c.ShowTo(nil); string(all) != string(c.Show()) {
		t.Errorf("without rules: %s", all)
	}
}

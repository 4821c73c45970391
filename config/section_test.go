package config

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"mcpx/internal/jsonc"
)

// settings are the values of a part in these tests.
type settings struct {
	Times int
	Mode  string
	File  string
}

// section returns a Section with keys that begin with a prefix.
func section(at Place, prefix string) *SectionOf[settings] {
	return NewSection(at, settings{Times: 3}, func(s *settings) []Field {
		return []Field{
			{prefix + "_times", Number(&s.Times, 1, 9), "How often."},
			{prefix + "_mode", Choice(&s.Mode, "fast", "slow"), "How."},
			{prefix + "_file", File(&s.File), "Where."},
		}
	})
}

// TestSections: a part can add keys to each place of the file. They are read, shown, described
// in the JSON Schema and checked like those of the core.
func TestSections(t *testing.T) {
	top, server, logging, limits, profile, upstream, tools := section(AtTop, "top"), section(InServer, "server"), section(InLogging, "logging"),
		section(InLimits, "limits"), section(InProfile, "profile"), section(InUpstream, "upstream"), section(InTools, "tools")
	hooks := Hooks{Sections: []Section{top, server, logging, limits, profile, upstream, tools}}
	const file = `{
  "top_times": 1,
  "server": {"server_times": 2},
  "logging": {"logging_mode": "slow"},
  "limits": {"limits_file": "a/b"},
  "schemas": {"default": {
    "profile_times": 4,
    "mcpServers": {
      "a": {"command": "x", "upstream_times": 5, "tools": {"deny": ["y"], "tools_mode": "fast"}},
      "b": {"command": "x"}
    }
  }}
}`
	c, err := hooks.Parse("/etc/mcpx/mcpx.json", []byte(file), variables())
	if err != nil || c.Warnings != nil {
		t.Fatal(err, c.Warnings)
	}
	p := c.Profiles[0]
	for i, row := range []struct{ got, want settings }{
		{top.Of(c.Parts), settings{Times: 1}},
		{server.Of(c.Server.Parts), settings{Times: 2}},
		{logging.Of(c.Logging.Parts), settings{Times: 3, Mode: "slow"}},
		{limits.Of(c.Limits.Parts), settings{Times: 3, File: "/etc/mcpx/a/b"}},
		{profile.Of(p.Parts), settings{Times: 4}},
		{upstream.Of(p.Upstreams[0].Parts), settings{Times: 5}},
		{tools.Of(p.Upstreams[0].Parts), settings{Times: 3, Mode: "fast"}},
		{upstream.Of(p.Upstreams[1].Parts), settings{Times: 3}},
		{upstream.Of(nil), settings{Times: 3}},
	} {
		if row.got != row.want {
			t.Errorf("%d: got %+v, want %+v", i, row.got, row.want)
		}
	}
	shown, schema := string(c.Show()), string(hooks.Schema())
	for _, want := range []string{`"top_times": 1`, `"server_times": 2`, `"logging_mode": "slow"`, `"limits_file": "/etc/mcpx/a/b"`, `"profile_times": 4`, `"upstream_times": 5`, `"tools_mode": "fast"`} {
		if !strings.Contains(shown, want) {
			t.Errorf("%s is not in\n%s", want, shown)
		}
		if key, _, _ := strings.Cut(want, ":"); !strings.Contains(schema, key) {
			t.Errorf("%s is not in the JSON Schema", key)
		}
	}
	again, err := hooks.Parse("/etc/mcpx/mcpx.json", c.Show(), variables())
	if err != nil || string(again.Show()) != shown || !reflect.DeepEqual(again.Server, c.Server) {
		t.Errorf("%v, shown again:\n%s", err, again.Show())
	}
	changed, err := hooks.Parse("/etc/mcpx/mcpx.json", []byte(strings.NewReplacer(`"server_times": 2`, `"server_times": 3`, `"upstream_times": 5`, `"upstream_times": 6`).Replace(file)), variables())
	if err != nil || reflect.DeepEqual(changed.Server, c.Server) {
		t.Errorf("%v; a change cannot be seen", err)
	}
	if !changed.Profiles[0].Upstreams[0].KeepsSession(&p.Upstreams[0]) {
		t.Error("a key of a part ends upstream sessions")
	}

	for source, want := range map[string]string{
		`{"limits": {"limits_times": 10}, "mcpServers": {}}`:                       `mcpx.json:1:29: limits.limits_times: expected an integer from 1 to 9, got number 10`,
		`{"mcpServers": {"a": {"command": "x", "tools": {"tools_mode": "fats"}}}}`: `mcpx.json:1:63: mcpServers.a.tools.tools_mode: expected one of "fast", "slow", got "fats"; did you mean "fast"?`,
	} {
		var problems *jsonc.Error
		if err := hooks.Check("mcpx.json", []byte(source)); !errors.As(err, &problems) || problems.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if c := mustParse(t, `{"top_times": 1, "mcpServers": {}}`); len(c.Warnings) != 1 {
		t.Errorf("without the part, the key is known: %v", c.Warnings)
	}
}

// pet is a value that is written as a list of names, or as an object.
type pet struct {
	Names []string
	Wild  bool
	Home  string
	Nick  string
}

// TestKindsOfParts: a part can describe its values, check them one by one, and check the whole
// file.
func TestKindsOfParts(t *testing.T) {
	pets := NewSection(AtTop, pet{}, func(p *pet) []Field {
		names := List(&p.Names, NonEmpty).Rule("maxItems", 2).Then(func(f *jsonc.File, n jsonc.Node) {
			if len(p.Names) > 2 {
				f.Fail(n, "too many names")
			}
		})
		long := Object([]Field{{"names", names, "Names."}, {"wild", Boolean(&p.Wild), "Wild."}, {"home", URL(&p.Home), "Home."}, {"nick", Name(&p.Nick), "Nick."}})
		return []Field{{"pet", ListOrObject(names, long, "a list of names or an object", func() bool { return p.Wild }), "A pet."}}
	})
	check := func(c *Config, f *jsonc.File, root jsonc.Node) {
		if m, ok := root.Member("pet"); ok && pets.Of(c.Parts).Wild && len(c.Profiles[0].All()) == 0 {
			f.Fail(m.Name, "a wild pet needs a server")
		}
	}
	hooks := Hooks{Sections: []Section{pets}, Checks: []Check{check}}
	for _, row := range []struct{ name, value, problem, shown string }{
		{"a list", `["a", "b"]`, "", `"pet": ["a","b"]`},
		{"an empty list", `[]`, "", `"pet": []`},
		{"an object", `{"names": ["a"]}`, "", `"pet": ["a"]`},
		{"neither", `7`, "x.json:1:26: pet: expected a list of names or an object, got number 7", ""},
		{"a check of a value", `["a", "b", "c"]`, "x.json:1:26: pet: too many names", ""},
		{"a check of the file", `{"wild": true}`, "x.json:1:19: pet: a wild pet needs a server", ""},
		{"a name", `{"nick": "a/b"}`, `x.json:1:35: pet.nick: a name holds letters, digits, "_", "-", "." and spaces, not '/'`, ""},
	} {
		file := []byte(`{"mcpServers":{}, "pet": ` + row.value + `}`)
		c, err := hooks.Parse("x.json", file, variables())
		if err != nil || row.problem != "" {
			if err == nil || err.Error() != row.problem {
				t.Errorf("%s: got %v, want %s", row.name, err, row.problem)
			}
			if checked := hooks.Check("x.json", file); checked == nil || checked.Error() != row.problem {
				t.Errorf("%s: Check returns %v", row.name, checked)
			}
			continue
		}
		if shown := strings.NewReplacer("\n", "", "      ", "", "    ", "", "  ", "").Replace(string(c.Show())); !strings.Contains(shown, row.shown) {
			t.Errorf("%s: %s is not in %s", row.name, row.shown, shown)
		}
	}
	schema := string(hooks.Schema())
	for _, want := range []string{`"maxItems": 2`, `"$ref": "#/$defs/name"`} {
		if !strings.Contains(schema, want) {
			t.Errorf("the schema has no %s", want)
		}
	}
}

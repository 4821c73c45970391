package callers

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/tailscale/hujson"

	"mcpx/config"
	"mcpx/internal/jsonc"
)

var update = flag.Bool("update", false, "rewrite the files in testdata")

var hooks = config.Hooks{Sections: []config.Section{Section}, Checks: []config.Check{Check}}

// variables has the only variable of the samples.
func variables(name string) (string, bool) {
	if name != "TOKEN" {
		return "", false
	}
	return "expanded-token", true
}

// samples returns the files of testdata/NAME, with their text.
func samples(t testing.TB, name string) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", name, "*.jsonc"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no samples in %s: %v", name, err)
	}
	all := map[string][]byte{}
	for _, file := range files {
		if all[file], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// golden compares a text with the file of a sample, or rewrites the file.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got\n%s\nwant\n%s", file, got, want)
	}
}

// TestProblems: each problem of server.auth has its place and says what to do.
func TestProblems(t *testing.T) {
	for file, data := range samples(t, "bad") {
		c, err := hooks.Parse(filepath.Base(file), data, variables)
		var lines []string
		var warnings []jsonc.Problem
		if bad, ok := errors.AsType[*jsonc.Error](err); ok {
			lines, warnings = append(lines, bad.Error()), bad.Warnings
		} else {
			warnings = c.Warnings
		}
		for _, w := range warnings {
			lines = append(lines, "warning: "+w.String())
		}
		golden(t, strings.TrimSuffix(file, ".jsonc")+".txt", strings.Join(lines, "\n")+"\n")
	}
}

// TestShow: all keys are read, shown without secrets, and described in the JSON Schema.
func TestShow(t *testing.T) {
	validate := validator(t)
	for file, data := range samples(t, "good") {
		c, err := hooks.Parse("/etc/mcpx/mcpx.json", data, variables)
		if err != nil || c.Warnings != nil {
			t.Fatalf("%s: %v, %v", file, err, c.Warnings)
		}
		if err := validate(data); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		shown := c.Show()
		for _, secret := range []string{"expanded-", "very secret"} {
			if bytes.Contains(shown, []byte(secret)) {
				t.Errorf("%s: %q is shown", file, secret)
			}
		}
		var parsed struct {
			Server struct{ Auth json.RawMessage }
		}
		if err := json.Unmarshal(shown, &parsed); err != nil {
			t.Fatal(err)
		}
		golden(t, strings.TrimSuffix(file, ".jsonc")+".json", string(parsed.Server.Auth)+"\n")
		checkShown(t, shown)
	}
	for _, name := range []string{"server_auth", "oidc_without_issuer"} {
		if validate(samples(t, "bad")[filepath.Join("testdata", "bad", name+".jsonc")]) == nil {
			t.Errorf("%s: valid", name)
		}
	}
}

// TestSchema: the JSON Schema of server.auth is as expected.
func TestSchema(t *testing.T) {
	type properties struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	var file, server properties
	if err := json.Unmarshal(hooks.Schema(), &file); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(file.Properties["server"], &server); err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/schema.json", string(server.Properties["auth"])+"\n")
}

// TestShowTo: what a caller sees of a config has nothing of server.auth.
func TestShowTo(t *testing.T) {
	c, err := hooks.Parse("/etc/mcpx/mcpx.json", samples(t, "good")[filepath.Join("testdata", "good", "server_auth.jsonc")], variables)
	if err != nil {
		t.Fatal(err)
	}
	got := string(c.ShowTo(Union(Grant{Allow: []string{"default/remote"}})))
	if !strings.Contains(got, `"remote"`) {
		t.Errorf("no server in %s", got)
	}
	for _, hidden := range []string{"server\"", "auth", "ci", "id.example.com"} {
		if strings.Contains(got, hidden) {
			t.Errorf("%s is in %s", hidden, got)
		}
	}
}

// validator checks files against the JSON Schema.
func validator(t *testing.T) func(data []byte) error {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(hooks.Schema()))
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
		standard, err := hujson.Standardize(append([]byte(nil), data...))
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

// checkShown checks that a config that was shown can be read and shows the same, once somebody
// has written its tokens.
func checkShown(t *testing.T, shown []byte) {
	t.Helper()
	source := shown
	for count := 1; bytes.Contains(source, []byte(`"token": "***"`)); count++ {
		source = bytes.Replace(source, []byte(`"token": "***"`), fmt.Appendf(nil, `"token": "token-%d"`, count), 1)
	}
	again, err := hooks.Parse("x.json", source, variables)
	if err != nil {
		t.Fatalf("%v in\n%s", err, shown)
	}
	if got := again.Show(); !bytes.Equal(got, shown) {
		t.Errorf("got\n%s\nwant\n%s", got, shown)
	}
}

// FuzzSection: whatever server.auth is, it is read without a panic. If it is accepted, Show
// writes a config that shows the same.
func FuzzSection(f *testing.F) {
	for _, folder := range []string{"good", "bad"} {
		for _, data := range samples(f, folder) {
			var file struct {
				Server struct{ Auth json.RawMessage }
			}
			standard, err := hujson.Standardize(data)
			if err == nil && json.Unmarshal(standard, &file) == nil {
				f.Add([]byte(file.Server.Auth))
			}
		}
	}
	f.Fuzz(func(t *testing.T, auth []byte) {
		data := append(append([]byte(`{"mcpServers": {}, "server": {"public_url": "https://mcpx.example.com", "auth": `), auth...), "}}"...)
		c, err := hooks.Parse("x.json", data, variables)
		if _, ok := errors.AsType[*jsonc.Error](err); err != nil && !ok {
			t.Fatalf("not a *jsonc.Error: %v", err)
		}
		if err == nil {
			checkShown(t, c.Show())
		}
	})
}

package config

import (
	"bytes"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mcpx/internal/jsonc"
)

var update = flag.Bool("update", false, "rewrite the expected files in testdata")

// variables is an environment for tests.
func variables(pairs ...string) Lookup {
	values := map[string]string{}
	for _, p := range pairs {
		name, value, _ := strings.Cut(p, "=")
		values[name] = value
	}
	return func(name string) (string, bool) {
		value, ok := values[name]
		return value, ok
	}
}

// mustParse parses a config that has no errors.
func mustParse(t *testing.T, source string, pairs ...string) *Config {
	t.Helper()
	c, err := Parse("/etc/mcpx/mcpx.json", []byte(source), variables(pairs...))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// samples returns the files of testdata/NAME, by path.
func samples(t *testing.T, name string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", name, "*.jsonc"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no samples in %s: %v", name, err)
	}
	return files
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

func TestProblems(t *testing.T) {
	for _, file := range samples(t, "bad") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			c, err := Parse(filepath.Base(file), data, variables())
			var got strings.Builder
			var warnings []jsonc.Problem
			if bad, ok := errors.AsType[*jsonc.Error](err); ok {
				got.WriteString(bad.Error() + "\n")
				warnings = bad.Warnings
			} else {
				warnings = c.Warnings
			}
			for _, w := range warnings {
				got.WriteString("warning: " + w.String() + "\n")
			}
			golden(t, strings.TrimSuffix(file, ".jsonc")+".txt", got.String())
		})
	}
}

// The hook decides about the address of a store. The error does not repeat the address.
func TestCheckStore(t *testing.T) {
	hooks := Hooks{CheckStore: func(address string) error {
		if strings.Contains(address, "good") {
			return nil
		}
		return errors.New("pass-word")
	}}
	key := base64.StdEncoding.EncodeToString(make([]byte, 32))
	for _, host := range []string{"good", "bad"} {
		source := `{"mcpServers": {}, "server": {"session_key": "` + key + `", "store": "redis://` + host + `"}}`
		c, err := hooks.Parse("mcpx.json", []byte(source), variables())
		switch {
		case host == "good" && (err != nil || c.Server.Store != "redis://good"):
			t.Errorf("%s: %v", host, err)
		case host == "bad" && (err == nil || !strings.Contains(err.Error(), errStore.Error()) || strings.Contains(err.Error(), "pass-word")):
			t.Errorf("%s: %v", host, err)
		}
	}
}

func TestLoad(t *testing.T) {
	t.Setenv("MCPX_TEST_COMMAND", "uvx")
	file := filepath.Join(t.TempDir(), "mcpx.json")
	source := `{"mcpServers": {"time": {"command": "${MCPX_TEST_COMMAND}", "cwd": "work"}}}`
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Hooks{}.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	u := c.Profiles[0].Upstreams[0]
	if c.File != file || u.Command != "uvx" || u.Dir != filepath.Join(filepath.Dir(file), "work") {
		t.Errorf("File %q, Command %q, Dir %q", c.File, u.Command, u.Dir)
	}
}

func TestLoadFailures(t *testing.T) {
	folder := t.TempDir()
	_, err := Hooks{}.Load(folder)
	if err == nil || err.Error() != folder+" is a folder; name the config file in it" {
		t.Errorf("folder: %v", err)
	}
	_, err = Hooks{}.Load(filepath.Join(folder, "none.json"))
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), Sample) {
		t.Errorf("missing: %v", err)
	}
	_, err = Hooks{}.Load("a\x00b")
	if err == nil || !strings.HasPrefix(err.Error(), "reading the config: ") {
		t.Errorf("unreadable: %v", err)
	}
}

// TestLoadSize: a config may have 4 MiB and not a byte more.
func TestLoadSize(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mcpx.json")
	config := []byte(`{"mcpServers": {}}`)
	for _, row := range []struct {
		name string
		size int
		want string
	}{
		{"largest", 4 << 20, ""},
		{"too large", 4<<20 + 1, "reading the config: " + file + ": larger than 4 MiB; check that this is the right file"},
	} {
		t.Run(row.name, func(t *testing.T) {
			text := append(bytes.Clone(config), bytes.Repeat([]byte(" "), row.size-len(config))...)
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			got := ""
			if _, err := (Hooks{}).Load(file); err != nil {
				got = err.Error()
			}
			if got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

// TestManyProblems: a file can have a problem every few bytes, but only some are
// reported, because finding the line of each takes time.
func TestManyProblems(t *testing.T) {
	const most = 201 // with the one that says that there are more
	for _, row := range []struct{ name, before, part, after string }{
		{"duplicate keys", `{"mcpServers":{}`, `,"a":1`, `}`},
		{"wrong elements", `{"mcpServers":{"a":{"command":"x","args":[1`, `,1`, `]}}}`},
		{"servers without a name", `{"mcp_servers":[{}`, `,{}`, `]}`},
		{"unknown keys", `{"mcpServers":{"a":{"x":1`, `},"a":{"x":1`, `}}}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			text := row.before + strings.Repeat(row.part, 1000) + row.after
			_, err := Parse("mcpx.json", []byte(text), variables())
			bad, ok := errors.AsType[*jsonc.Error](err)
			if !ok || len(bad.Problems) != most || len(bad.Warnings) > most {
				t.Fatalf("got %d bytes of %T", len(fmt.Sprint(err)), err)
			}
			if !strings.Contains(err.Error(), "there are more problems than are shown; fix these first") {
				t.Error("the error does not say that there are more problems")
			}
		})
	}
}

// The law: Parse never panics. Every problem is one line and lies inside the file. If
// Parse accepts a file, Show writes a config that shows the same.
func FuzzParse(f *testing.F) {
	for _, folder := range []string{"good", "bad"} {
		files, _ := filepath.Glob(filepath.Join("testdata", folder, "*.jsonc"))
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		lookup := variables("TOKEN=secret-token", "EMPTY=")
		c, err := Parse("x.json", data, lookup)
		bad, ok := errors.AsType[*jsonc.Error](err)
		if err != nil && !ok {
			t.Fatalf("not a *jsonc.Error: %v", err)
		}
		if !ok {
			checkInside(t, data, c.Warnings)
			checkShown(t, c.Show(), lookup)
			return
		}
		checkInside(t, data, append(bad.Problems, bad.Warnings...))
	})
}

func checkInside(t *testing.T, data []byte, problems []jsonc.Problem) {
	t.Helper()
	lines := bytes.Split(bytes.TrimPrefix(data, []byte("\ufeff")), []byte("\n"))
	for _, p := range problems {
		if p.Line < 1 || p.Line > len(lines) || p.Column < 1 || p.Column > len(bytes.Runes(lines[p.Line-1]))+1 {
			t.Errorf("outside the file: %s", p)
		}
		if strings.ContainsAny(p.String(), "\n\r") {
			t.Errorf("more than one line: %q", p)
		}
	}
}

// serverSecret matches a key of the server section with what Show writes for its secrets.
var serverSecret = regexp.MustCompile(`"(token|store|session_key)": (\[\s*)?"\*\*\*"(,\s*"\*\*\*")*`)

// checkShown checks that a config that was shown can be read and shows the same, once
// somebody has written the secrets of the server section.
func checkShown(t *testing.T, shown []byte, lookup Lookup) {
	t.Helper()
	count := 0
	source := serverSecret.ReplaceAllFunc(shown, func(found []byte) []byte {
		count++
		secret := fmt.Sprintf("token-%d", count)
		switch {
		case bytes.HasPrefix(found, []byte(`"store"`)):
			secret = "redis://localhost"
		case bytes.HasPrefix(found, []byte(`"session_key"`)):
			secret = strings.Repeat("A", 43) + "="
		}
		return bytes.ReplaceAll(found, []byte("***"), []byte(secret))
	})
	again, err := Parse("x.json", source, lookup)
	if err != nil {
		t.Fatalf("%v in\n%s", err, shown)
	}
	if got := again.Show(); !bytes.Equal(got, shown) {
		t.Errorf("got\n%s\nwant\n%s", got, shown)
	}
}

// BenchmarkParse reads a config with a hundred servers.
func BenchmarkParse(b *testing.B) {
	var servers strings.Builder
	for i := range 100 {
		fmt.Fprintf(&servers, `%q: {"command": "npx", "args": ["-y", "server-%d", "--root", "${HOME}"], "env": {"TOKEN": "${TOKEN:-none}"}, "timeout": "30s"},`, fmt.Sprint("server ", i), i)
	}
	text := []byte(`{"mcpServers": {` + servers.String() + `}}`)
	for b.Loop() {
		if _, err := Parse("mcpx.json", text, os.LookupEnv); err != nil {
			b.Fatal(err)
		}
	}
}

package app

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpx/config"
)

func TestNew(t *testing.T) {
	parse := func(text string) *config.Config {
		c, err := config.Parse(filepath.Join(t.TempDir(), "mcpx.json"), []byte(text), os.LookupEnv)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	two := `{"schemas":{"default":{"mcpServers":{}},"work":{"mcpServers":{}},"off":{"enabled":false,"mcpServers":{}}}}`
	for _, row := range []struct {
		name, config, profile, want string
	}{
		{"all that are enabled", two, "", "default work"},
		{"one", two, "work", "work"},
		{"none of that name", two, "nope", "no such profile"},
		{"one that is off", two, "off", "not enabled"},
		{"none enabled", `{"schemas":{"off":{"enabled":false,"mcpServers":{}}}}`, "", "no profile is enabled"},
	} {
		a, err := New(parse(row.config), row.profile, io.Discard)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			for _, p := range a.Profiles() {
				got = strings.TrimSpace(got + " " + p.Name)
			}
		}
		if !strings.Contains(got, row.want) {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
}

// TestOpenToAll: without a token, mcpx does not listen for other machines.
func TestOpenToAll(t *testing.T) {
	c, err := config.Parse(filepath.Join(t.TempDir(), "mcpx.json"), []byte(`{"server":{"host":"0.0.0.0"},"mcpServers":{}}`), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(c, "", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.ListenHTTP(t.Context()); err == nil || !strings.Contains(err.Error(), "a token is needed") {
		t.Error(err)
	}
}

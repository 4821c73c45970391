package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	tests := []struct {
		name      string
		files     []string // in the working folder, which is also HOME
		variables []string
		want      string
	}{
		{"variable", []string{"mcpx.json"}, []string{"MCPX_CONFIG=other.json"}, "other.json"},
		{"here", []string{"mcpx.json", ".config/mcpx/config.json"}, nil, "mcpx.json"},
		{"xdg", []string{"xdg/mcpx/config.json", ".config/mcpx/config.json"}, []string{"XDG_CONFIG_HOME=xdg"}, "xdg/mcpx/config.json"},
		{"home", []string{"home/.config/mcpx/config.json"}, []string{"HOME=home"}, "home/.config/mcpx/config.json"},
		{"profile", []string{"home/.config/mcpx/config.json"}, []string{"USERPROFILE=home"}, "home/.config/mcpx/config.json"},
		{"a folder is no file", []string{"mcpx.json/x", "home/.config/mcpx/config.json"}, []string{"HOME=home"}, "home/.config/mcpx/config.json"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for _, file := range test.files {
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := Find(variables(test.variables...))
			if err != nil || got != filepath.FromSlash(test.want) {
				t.Errorf("got %q, %v; want %q", got, err, test.want)
			}
		})
	}
}

func TestFindNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	tests := map[string][]string{
		"$MCPX_CONFIG is not set, and there is no mcpx.json":                                      nil,
		"$MCPX_CONFIG is not set, and there is no mcpx.json and no home/.config/mcpx/config.json": {"HOME=home"},
	}
	for want, pairs := range tests {
		_, err := Find(variables(pairs...))
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("got %v; want %q", err, want)
		}
	}
}

func TestSample(t *testing.T) {
	if c := mustParse(t, Sample); len(c.Profiles[0].Upstreams) != 1 || c.Warnings != nil {
		t.Errorf("%+v", c)
	}
}

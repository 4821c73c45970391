package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestExamples uses the config of the examples as the README does. It needs
// nothing but mcpx.
func TestExamples(t *testing.T) {
	t.Parallel()
	config, err := filepath.Abs(filepath.Join("..", "examples", "mcpx.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name   string
		args   []string
		prefix string
	}{
		{"inspect time", []string{"inspect", config, "time"}, "time: 3 tools; Time zones are IANA names, such as Europe/Paris or UTC.\nget_current_time(timezone: string): "},
		{"inspect files", []string{"inspect", config, "files"}, "files: 2 tools; Paths are relative to "},
		{"inspect show", []string{"inspect", config, "show"}, "show: 4 tools; "},
		{"exec time", []string{"exec", config, "time", "get_current_time", "timezone=Europe/Paris"}, "20"},
		{"exec files", []string{"exec", config, "files", "read_file", "path=mcpx.json", "lines=1"}, "{\n"},
		{"exec list", []string{"exec", config, "files", "list_directory"}, "examples.go, "},
		{"config check", []string{"config", "check", config}, config + `: schema "default", lazy, servers: time, files, show; disabled: docs` + "\n"},
		{"check", []string{"check", config}, "server  state  transport  tools  tokens  start-up"},
	} {
		t.Run(row.name, func(t *testing.T) {
			cmd := exec.Command(binary, row.args...)
			cmd.Env = environment(t)
			var stderr strings.Builder
			cmd.Stderr = &stderr
			stdout, err := cmd.Output()
			if err != nil || !strings.HasPrefix(string(stdout), row.prefix) || stderr.Len() > 0 {
				t.Errorf("%v\nstdout:\n%s\nstderr:\n%s\nwant stdout to begin with %q", err, stdout, stderr.String(), row.prefix)
			}
		})
	}
}

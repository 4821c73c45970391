package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestExamples uses the config of the examples as the README does: its servers
// are built when they start.
func TestExamples(t *testing.T) {
	t.Parallel()
	config := filepath.Join("..", "examples", "mcpx.json")
	env := append(os.Environ(), "GORACE=atexit_sleep_ms=0", "XDG_CONFIG_HOME="+goSettings(t)) // go run needs its caches
	build := exec.Command("go", "run", "./demo", "time")                                      // which takes longer than a start may, if it is the first
	build.Dir = filepath.Dir(config)
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go run: %v\n%s", err, text)
	}
	for _, c := range []struct {
		name   string
		args   []string
		prefix string
	}{
		{"inspect time", []string{"inspect", config, "time"}, "time: 2 tools\nconvert_time(source_timezone: string"},
		{"inspect files", []string{"inspect", config, "files"}, "files: 2 tools\nlist_directory(path?: string"},
		{"inspect echo", []string{"inspect", config, "echo"}, "echo: 1 tool\necho("},
		{"inspect tool", []string{"inspect", config, "time", "get_current_time"}, `{"annotations":{"readOnlyHint":true,"openWorldHint":false},"description":"Get the current time`},
		{"exec time", []string{"exec", config, "time", "get_current_time", "timezone=UTC"}, "20"},
		{"exec convert", []string{"exec", config, "time", "convert_time", "source_timezone=UTC", "time=12:00", "target_timezone=Asia/Tokyo"}, "20"},
		{"exec files", []string{"exec", config, "files", "read_file", "path=mcpx.json", "lines:=1"}, "{\n"},
		{"exec list", []string{"exec", config, "files", "list_directory"}, "demo/\nmcpx.json\n"},
		{"exec echo", []string{"exec", config, "echo", "echo", "text=hi", "times:=2", "style=loud"}, "HI\nHI\n"},
		{"check", []string{"config", "check", config}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command(binary, c.args...)
			cmd.Env = env
			var stderr strings.Builder
			cmd.Stderr = &stderr
			stdout, err := cmd.Output()
			if err != nil || !strings.HasPrefix(string(stdout), c.prefix) || stderr.Len() > 0 {
				t.Errorf("%v\nstdout:\n%s\nstderr:\n%s\nwant stdout to begin with %q", err, stdout, stderr.String(), c.prefix)
			}
		})
	}
}

// goSettings is a folder of settings that has those of go, wherever they come from:
// a server's environment has none of them.
func goSettings(t *testing.T) (folder string) {
	t.Helper()
	var settings strings.Builder
	for _, name := range []string{"GOCACHE", "GOFLAGS", "GOMODCACHE", "GOPATH", "GOPROXY", "GOSUMDB", "GOTOOLCHAIN"} {
		value, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		settings.WriteString(name + "=" + strings.TrimSpace(string(value)) + "\n")
	}
	folder = t.TempDir()
	if err := os.MkdirAll(filepath.Join(folder, "go"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "go", "env"), []byte(settings.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

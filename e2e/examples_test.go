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
			cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0") // go run needs its caches
			var stderr strings.Builder
			cmd.Stderr = &stderr
			stdout, err := cmd.Output()
			if err != nil || !strings.HasPrefix(string(stdout), c.prefix) || stderr.Len() > 0 {
				t.Errorf("%v\nstdout:\n%s\nstderr:\n%s\nwant stdout to begin with %q", err, stdout, stderr.String(), c.prefix)
			}
		})
	}
}

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// clock matches a result of get_current_time, the only text that differs when the
// commands of the tour are repeated.
var clock = regexp.MustCompile(`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\+09:00`)

// TestDemoTour: the tour works in an empty folder with an empty home. Each command that it
// shows works as printed and prints the same.
func TestDemoTour(t *testing.T) {
	t.Parallel()
	homeless := []string{"TMPDIR=" + t.TempDir(), "GORACE=atexit_sleep_ms=0", "PATH=" + os.Getenv("PATH")}
	mcptest.NoneLeft(t, homeless[0])
	for _, row := range []struct {
		name   string
		folder string
		env    []string
		config string // a part of its path
	}{
		{"empty folder and home", t.TempDir(), environment(t), filepath.Join("mcpx", "demo", "mcpx.json")},
		{"clone", "..", environment(t), filepath.Join("examples", "mcpx.json")},
		{"no home", t.TempDir(), homeless, filepath.Join(strings.TrimPrefix(homeless[0], "TMPDIR="), "mcpx-demo-")},
		{"another schema", t.TempDir(), append(environment(t), "MCPX_SCHEMA=work"), " --schema=default\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			i := slices.IndexFunc(row.env, func(entry string) bool { return strings.HasPrefix(entry, "PATH=") })
			row.env[i] = "PATH=" + filepath.Dir(binary) + string(os.PathListSeparator) + strings.TrimPrefix(row.env[i], "PATH=")
			text, code := combined(t, row.folder, row.env, binary, "demo")
			if code != 0 || strings.Contains(text, "\x1b") || !strings.Contains(text, row.config) {
				t.Fatalf("exit code %d, want 0, plain text, and %q in\n%s", code, row.config, text)
			}
			steps := strings.Split(text, "\n$ ")[1:]
			if len(steps) != 5 {
				t.Fatalf("%d commands in\n%s", len(steps), text)
			}
			for i, step := range steps {
				command, shown, _ := strings.Cut(step, "\n")
				shown, _, _ = strings.Cut(shown, "\n\n"+[]string{"2. ", "3. ", "4. ", "5. ", "Next: "}[i])
				got, code := combined(t, row.folder, row.env, "sh", "-c", command)
				got = strings.TrimSuffix(got, "\n")
				if fails := i == 3; (code == 1) != fails || (code == 0) == fails {
					t.Errorf("%s: exit code %d", command, code)
				}
				if clock.ReplaceAllString(got, "TIME") != clock.ReplaceAllString(shown, "TIME") || got == "" {
					t.Errorf("%s\nin the tour:\n%s\nrepeated:\n%s", command, shown, got)
				}
			}
		})
	}
}

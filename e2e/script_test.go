package e2e

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"mcpx/internal/mcptest"
)

// TestScripts runs the commands as a person does. Each script has mcpx in its
// PATH, and a config.json with the upstream "t" and one that does not exist.
func TestScripts(t *testing.T) {
	t.Parallel()
	upstream := mcptest.Upstream(t)
	upstream["timeout"] = "5s"
	config, err := json.MarshalIndent(map[string]any{"mcpServers": map[string]any{
		"t":    upstream,
		"gone": map[string]any{"command": "mcpx-no-such-program"},
	}}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", filepath.Dir(binary)+string(os.PathListSeparator)+env.Getenv("PATH"))
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			env.Setenv("HOME", env.WorkDir)
			return os.WriteFile(filepath.Join(env.WorkDir, "config.json"), config, 0o600)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"exits": exits},
	})
}

// exits runs a command that must end with the given code: exits 2 mcpx --bogus.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARGUMENT…]")
	}
	code := 0
	var failed *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &failed) {
		code = failed.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

package e2e

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"mcpx/examples"
	"mcpx/internal/mcptest"
)

// TestScripts runs the commands as a person does. Each script has mcpx in its PATH, the
// configs of scriptConfigs, and examples/mcpx.json.
func TestScripts(t *testing.T) {
	t.Parallel()
	configs := scriptConfigs(t)
	server := mcptest.Upstream(t)
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", filepath.Dir(binary)+string(os.PathListSeparator)+env.Getenv("PATH"))
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("SERVER", server["command"].(string)) // a test server, with --env MCPTEST_SERVER=1 and this mark
			env.Setenv("SERVER_MARK", "MCPTEST_MARK="+server["env"].(map[string]string)["MCPTEST_MARK"])
			for name, servers := range configs {
				config, err := json.MarshalIndent(map[string]any{"mcpServers": servers}, "", "  ")
				if err != nil {
					return err
				}
				if err := os.WriteFile(filepath.Join(env.WorkDir, name), config, 0o600); err != nil {
					return err
				}
			}
			return writeExamples(env.WorkDir)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"exits": exits},
	})
}

// writeExamples copies examples/mcpx.json to a folder.
func writeExamples(folder string) error {
	if err := os.Mkdir(filepath.Join(folder, "examples"), 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "examples", "mcpx.json"), examples.Config, 0o600)
}

// scriptConfigs returns the configs of the scripts: config.json with "t" and a server that
// does not exist, single.json with "t", full.json with a server that has all of MCP, and
// broken.json with every way to fail.
func scriptConfigs(t *testing.T) map[string]map[string]any {
	locked := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "who are you?", http.StatusUnauthorized)
	}))
	t.Cleanup(locked.Close)
	slow, leaky := mcptest.Upstream(t, "-start-delay", "1h"), mcptest.Upstream(t, "-token", "sentinel-in-args", "-exit", "4")
	slow["startup_timeout"] = "300ms"
	leaky["env"].(map[string]string)["API_KEY"] = "sentinel-in-env"
	homeless := mcptest.Upstream(t)
	homeless["cwd"] = "nowhere"
	gone := map[string]any{"command": "mcpx-no-such-program"}
	return map[string]map[string]any{
		"config.json": {"t": mcptest.Upstream(t), "gone": gone},
		"single.json": {"t": mcptest.Upstream(t)},
		"full.json":   {"f": mcptest.Upstream(t, "-full", "-instructions", "Ask me anything.")},
		"broken.json": {
			"good":     mcptest.Upstream(t),
			"gone":     gone,
			"uvx":      map[string]any{"command": "uvx", "env": map[string]string{"PATH": t.TempDir()}},
			"unset":    map[string]any{"command": "x", "args": []string{"${E2E_NO_SUCH_VARIABLE}"}},
			"dies":     mcptest.Upstream(t, "-stderr", "no \x1b[31mlicence", "-exit", "3"),
			"slow":     slow,
			"leaky":    leaky,
			"locked":   map[string]any{"url": locked.URL, "headers": map[string]string{"Authorization": "Bearer sentinel-in-header"}},
			"open":     map[string]any{"url": locked.URL},
			"nobody":   map[string]any{"url": "http://127.0.0.1:9/mcp?key=sentinel-in-url"},
			"homeless": homeless,
		},
	}
}

// exits runs a command that must end with this exit code: exits 2 mcpx --bogus.
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

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// TestSandbox: a server with a sandbox works, and writes only in its folder.
func TestSandbox(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	server := mcptest.Upstream(t)
	server["args"] = []string{"-c", `touch inside; touch ../outside; exec "$0"`, server["command"].(string)}
	server["command"], server["cwd"], server["sandbox"] = "sh", filepath.Join(folder, "cwd"), map[string]any{"network": false}
	if err := os.Mkdir(filepath.Join(folder, "cwd"), 0o700); err != nil {
		t.Fatal(err)
	}
	p := start(t, map[string]any{"mcpServers": map[string]any{"boxed": server}}, options{})
	p.initialize()
	if text := p.result("tools/call", execParams("boxed", "echo", `{"text":"it works"}`)); strings.Contains(text, "Landlock") {
		t.Skipf("THE SANDBOX WAS NOT TESTED: %s", text)
	}
	if text := p.exec("boxed", "echo", `{"text":"it works"}`); text != "it works" {
		t.Errorf("got %q", text)
	}
	if _, err := os.Stat(filepath.Join(folder, "cwd", "inside")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "outside")); err == nil {
		t.Error("the server wrote outside its folder")
	}
}

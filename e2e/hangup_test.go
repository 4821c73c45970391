//go:build unix

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"mcpx/internal/mcptest"
)

// TestHangup: SIGHUP does not end mcpx. It is logged, and calls go on.
func TestHangup(t *testing.T) {
	t.Parallel()
	config := map[string]any{"mcpServers": map[string]any{"a": mcptest.Upstream(t)}}
	const logged = "SIGHUP is ignored; restart mcpx to apply changes to the config"
	t.Run("stdio", func(t *testing.T) {
		t.Parallel()
		p := start(t, config, options{})
		p.initialize()
		for n := range 2 {
			if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
			p.waitStderrCount(logged, n+1)
		}
		if got := p.exec("a", "echo", `{"text":"hi"}`); got != "hi" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("http", func(t *testing.T) {
		t.Parallel()
		s := serveHTTP(t, config, options{})
		c := s.client("/mcp")
		if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		s.waitStderr(logged)
		if got := c.exec("a", "echo", `{"text":"hi"}`); got != "hi" {
			t.Errorf("got %q", got)
		}
	})
}

// TestTerminalCloses: mcpx does not outlive the terminal it was started from. It
// stops as it does on SIGTERM. Tests fail if a child is left.
func TestTerminalCloses(t *testing.T) {
	t.Parallel()
	config := writeConfig(t, map[string]any{"mcpServers": map[string]any{"a": mcptest.Upstream(t)}})
	for _, front := range []string{"--stdio", "--http"} {
		t.Run(front, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "log")
			cmd := exec.Command(binary, config, front, "--port", "0", "--log-file", file)
			cmd.Env = environment(t)
			terminal, err := pty.Start(cmd)
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() {
				_ = cmd.Wait()
				close(ended)
			}()
			settled(t, "the upstream is not ready", func() (string, bool) {
				log, _ := os.ReadFile(file)
				return string(log), strings.Contains(string(log), "upstream ready")
			})
			_ = terminal.Close()
			select {
			case <-ended:
			case <-time.After(patience):
				t.Error("mcpx did not end")
				_ = cmd.Process.Kill()
				<-ended
			}
			code := cmd.ProcessState.ExitCode()
			lostInput := front == "--stdio" && code == 1 // stdin was the terminal, and failed before the signal came
			if code != 0 && !lostInput {
				t.Errorf("exit code %d: %s", code, cmd.ProcessState)
			}
		})
	}
}

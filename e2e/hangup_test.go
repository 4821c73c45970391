//go:build unix

package e2e

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// TestTerminalCloses: mcpx stops when the terminal it was started from closes. The check
// for left children is part of every test.
func TestTerminalCloses(t *testing.T) {
	t.Parallel()
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP) // children of tests that run with nohup would ignore it
	t.Cleanup(func() { signal.Stop(hangups) })
	config := writeConfig(t, one(t))
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
			eventually(t, "the upstream is not ready", func() (string, bool) {
				log, _ := os.ReadFile(file)
				return string(log), strings.Contains(string(log), "upstream ready")
			})
			_ = terminal.Close()
			select {
			case <-ended:
			case <-time.After(patience):
				log, _ := os.ReadFile(file)
				t.Errorf("mcpx did not end; its log:\n%s", log)
				_ = cmd.Process.Kill()
				<-ended
			}
			code := cmd.ProcessState.ExitCode()
			lostInput := front == "--stdio" && code == 1 // stdin, which is the terminal, failed before the signal came
			if code != 0 && !lostInput {
				t.Errorf("exit code %d: %s", code, cmd.ProcessState)
			}
		})
	}
}

//go:build unix

package child

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/mcptest"
)

func TestLookPathTakesTheChildsOwnPath(t *testing.T) {
	dir := t.TempDir()
	program := dir + "/mcpx-test-program"
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	got, err := lookPath(&config.Upstream{Command: "mcpx-test-program", Env: map[string]string{"PATH": "/nowhere:" + dir}})
	if err != nil || got != program {
		t.Errorf("found %q, %v", got, err)
	}
	if _, err := lookPath(&config.Upstream{Command: "mcpx-test-program", Env: map[string]string{"PATH": "/nowhere"}}); err == nil {
		t.Error("found in a PATH that does not have it")
	}
}

// TestEnvironmentIsBuiltByUs: a child gets a few variables of mcpx and those of its
// config, and no others.
func TestEnvironmentIsBuiltByUs(t *testing.T) {
	t.Setenv("SECRET_OF_ANOTHER", "sentinel-value")
	t.Setenv("LC_TIME", "C")
	t.Setenv("HOME", "/home/me")
	env := environment(&config.Upstream{Env: map[string]string{"OWN": "mine"}}, "id")
	for _, want := range []string{"OWN=mine", "LC_TIME=C", "PATH=" + os.Getenv("PATH"), "HOME=/home/me"} {
		if !slices.Contains(env, want) {
			t.Errorf("the child has no %s", want)
		}
	}
	if all := strings.Join(env, " "); strings.Contains(all, "sentinel") {
		t.Errorf("the child has %s", all)
	}
}

func TestWatcherKillsWhatIsLeft(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = ownGroup()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	spared := exec.Command("sleep", "1000")
	spared.SysProcAttr = ownGroup()
	if err := spared.Start(); err != nil {
		t.Fatal(err)
	}
	watch(strings.NewReader(fmt.Sprintf("%d\n%d\nnonsense\n-%d\n", cmd.Process.Pid, spared.Process.Pid, spared.Process.Pid)), "no-such-mark")
	err := cmd.Wait()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Errorf("ended with %v, want SIGKILL", err)
	}
	if !mcptest.Alive(spared.Process.Pid) {
		t.Error("a group that had gone was killed")
	}
	_ = spared.Process.Kill()
	_ = spared.Wait()
}

// TestLastWords: lines that a child wrote before its stderr was given up are kept.
func TestLastWords(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	if _, err := w.WriteString("the last words\n"); err != nil {
		t.Fatal(err)
	}
	if err := r.SetReadDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	tail := NewStderr(r, func(s string) string { return s }, zerolog.Nop())
	tail.Drain()
	if got := tail.Lines(); !slices.Equal(got, []string{"the last words"}) {
		t.Errorf("kept %q", got)
	}
}

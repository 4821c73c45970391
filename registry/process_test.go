//go:build unix

package registry

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/mcptest"
)

func TestEnvironmentIsBuiltByUs(t *testing.T) {
	t.Setenv("SECRET_OF_ANOTHER", "sentinel-value")
	t.Setenv("LC_TIME", "C")
	t.Setenv("HOME", t.TempDir())
	a := mcptest.Upstream(t)
	a["env"].(map[string]string)["OWN"] = "mine"
	r, _ := run(t, map[string]any{"a": a})
	env := strings.Split(mustCall(t, r, "a", "env", "{}"), "\n")
	for _, want := range []string{"OWN=mine", "LC_TIME=C", "PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")} {
		if !slices.Contains(env, want) {
			t.Errorf("the child has no %s", want)
		}
	}
	for _, entry := range env {
		if strings.Contains(entry, "sentinel") {
			t.Errorf("the child has %s", entry)
		}
	}
}

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

// gone waits until a process has ended.
func gone(t *testing.T, what string, pid int) {
	t.Helper()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	limit := time.After(10 * time.Second)
	for mcptest.Alive(pid) {
		select {
		case <-poll.C:
		case <-limit:
			t.Fatalf("%s (process %d) is still there", what, pid)
		}
	}
}

// TestStopLeavesNothing has children that ignore what they are asked, and
// grandchildren inside and outside of their group.
func TestStopLeavesNothing(t *testing.T) {
	pids := map[string]int{}
	t.Run("lives", func(t *testing.T) {
		r, _ := run(t, map[string]any{
			"polite":   mcptest.Upstream(t),
			"stubborn": mcptest.Upstream(t, "-ignore-eof", "-ignore-term"),
		})
		for _, server := range []string{"polite", "stubborn"} {
			for what, args := range map[string][2]string{
				"child":    {"pid", "{}"},
				"grand":    {"spawn", "{}"},
				"detached": {"spawn", `{"detached":true}`},
			} {
				if what == "detached" && runtime.GOOS != "linux" {
					continue
				}
				pid, err := strconv.Atoi(mustCall(t, r, server, args[0], args[1]))
				if err != nil {
					t.Fatal(err)
				}
				pids[server+" "+what] = pid
			}
		}
	})
	for what, pid := range pids {
		gone(t, what, pid)
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

// TestLastWords: what a child has written by the time that nobody waits for it any
// more is kept.
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
	tail := newStderrTail(func(s string) string { return s }, zerolog.Nop())
	tail.drain(r)
	if got := tail.lines(); !slices.Equal(got, []string{"the last words"}) {
		t.Errorf("kept %q", got)
	}
}

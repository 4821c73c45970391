//go:build unix

package registry

import (
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

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

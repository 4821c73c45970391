//go:build unix

package registry

import (
	"runtime"
	"strconv"
	"testing"

	"mcpx/internal/mcptest"
)

// TestStopLeavesNothing: children that ignore every request to stop, and grandchildren
// inside and outside of their group, are gone.
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
		eventually(t, what+" is gone", func() bool { return !mcptest.Alive(pid) })
	}
}

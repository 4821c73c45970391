//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	_ "mcpx/internal/app" // so that a change of the program invalidates cached results
	"mcpx/internal/mcptest"
)

// patience is the time limit for anything that must happen, on a loaded machine.
const patience = time.Minute

// program is the built mcpx-sse.
var program string

func TestMain(m *testing.M) {
	mcptest.Main()
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "mcpx-cluster-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program = filepath.Join(dir, "mcpx-sse")
	args := []string{"build", "-o", program}
	if race {
		args = append(args, "-race")
	}
	build := exec.Command("go", append(args, "mcpx/cmd/mcpx-sse")...)
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "go build:", err)
		return 1
	}
	return m.Run()
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, state func() (description string, ok bool)) {
	t.Helper()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	limit := time.After(patience)
	for {
		description, ok := state()
		if ok {
			return
		}
		select {
		case <-poll.C:
		case <-limit:
			t.Fatalf("%s: %s", what, description)
		}
	}
}

// clip shortens a text for a failure message.
func clip(text string) string {
	const limit = 2000
	if len(text) > limit {
		return text[:limit] + "…"
	}
	return text
}

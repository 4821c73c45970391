package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// maxProgram is how many bytes the program may have, as people install it.
const maxProgram = 28_000_000

// TestProgramIsSmall builds mcpx without symbols. docs/performance.md says what it contains.
func TestProgramIsSmall(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mcpx")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", file, "mcpx/cmd/mcpx")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	program, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if program.Size() > maxProgram {
		t.Errorf("mcpx has %.1f MB, at most %.1f MB are allowed; \"What the executable contains\" in docs/performance.md says how to find the cause",
			float64(program.Size())/1e6, maxProgram/1e6)
	}
}

// Package e2e tests mcpx from the outside: the built program, real processes as
// upstreams, and small clients on stdio and HTTP. A promise has its table of cases in
// the package that keeps it, and one witness here.
package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	_ "mcpx/internal/app" // so that a change of the program invalidates cached results
	"mcpx/internal/mcptest"
)

// binary and binaryHTTP are the built mcpx and mcpx-sse.
var binary, binaryHTTP string

func TestMain(m *testing.M) {
	mcptest.Main()
	if os.Getenv(browserVariable) != "" {
		browse()
	}
	os.Exit(run(m))
}

// run builds mcpx and runs the tests.
func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "mcpx-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	suffix := ""
	if runtime.GOOS == "windows" {
		suffix = ".exe"
	}
	binary, binaryHTTP = filepath.Join(dir, "mcpx"+suffix), filepath.Join(dir, "mcpx-sse"+suffix)
	args := []string{"build", "-o", dir}
	if race {
		args = append(args, "-race")
	}
	build := exec.Command("go", append(args, "mcpx/cmd/mcpx", "mcpx/cmd/mcpx-sse")...)
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "go build:", err)
		return 1
	}
	// Most tests only wait for a process.
	flag.Parse()
	if err := flag.Set("test.parallel", atOnce); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// Package console tests the console from the outside: the built mcpx-sse, real
// child processes as upstreams, and Chromium.
package console

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

// screenshots is the folder for pictures of the main views.
var screenshots = flag.String("screenshots", "", "write pictures of the main views to this `folder`")

// program is the built mcpx-sse.
var program string

func TestMain(m *testing.M) {
	mcptest.Main()
	flag.Parse()
	os.Exit(run(m))
}

// run builds mcpx-sse and runs the tests.
func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "mcpx-console-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program = filepath.Join(dir, "mcpx-sse")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	build := exec.Command("go", "build", "-o", program, "mcpx/cmd/mcpx-sse")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "go build:", err)
		return 1
	}
	// Most tests only wait for the page.
	if err := flag.Set("test.parallel", "4"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer browser.close()
	return m.Run()
}

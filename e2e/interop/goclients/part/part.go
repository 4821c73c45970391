// Package part is what the Go clients share: what they say of their checks, and
// runs of mcpx.
package part

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

var (
	lines  = os.NewFile(3, "results")
	failed bool
)

// Check runs one check within a minute and says what came of it.
func Check(what string, body func(ctx context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := body(ctx); err != nil {
		failed = true
		fmt.Fprintf(lines, "%s\tFAIL\t%s\n", what, strings.Join(strings.Fields(err.Error()), " "))
		return
	}
	fmt.Fprintf(lines, "%s\tpass\t\n", what)
}

// NotRun stands in for Check where there is a reason not to run it.
func NotRun(reason string) func(string, func(context.Context) error) {
	return func(what string, _ func(context.Context) error) {
		fmt.Fprintf(lines, "%s\tnot run\t%s\n", what, reason)
	}
}

// Finish ends the program with what came of it.
func Finish() {
	if failed {
		os.Exit(1)
	}
}

// Config writes a config file with the upstream that clients are tried on.
func Config() string {
	path := filepath.Join(os.Getenv("INTEROP_DIR"), "work", filepath.Base(os.Args[0])+".json")
	config := `{"mcpServers": {"everything": {"command": "mcp-server-everything", "args": ["stdio"], "isolation": "client"}}}`
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		panic(err)
	}
	return path
}

var where = regexp.MustCompile(`url=(http://[^/\s]+)/mcp`)

// Serve runs mcpx-sse on a free port; url is without a path.
func Serve(path string) (url string, stop func()) {
	command := exec.Command("mcpx-sse", path, "--port", "0")
	log, err := command.StderrPipe()
	if err != nil {
		panic(err)
	}
	if err := command.Start(); err != nil {
		panic(err)
	}
	scanner := bufio.NewScanner(log)
	for url == "" && scanner.Scan() {
		if found := where.FindStringSubmatch(scanner.Text()); found != nil {
			url = found[1]
		}
	}
	if url == "" {
		panic("mcpx-sse did not start")
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for scanner.Scan() { // or it would have nowhere to write to
		}
	}()
	return url, sync.OnceFunc(func() {
		_ = command.Process.Signal(os.Interrupt)
		<-drained
		_ = command.Wait()
	})
}

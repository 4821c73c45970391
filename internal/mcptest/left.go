package mcptest

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// settleTime is how long processes and goroutines may take to end on a loaded machine.
const settleTime = 10 * time.Second

// looking has the tests that called NothingLeft.
var looking sync.Map

// NothingLeft fails the test if the process has more goroutines or open files after the
// test than now. It is for tests that do not run in parallel. Only the first call in a
// test counts.
func NothingLeft(t testing.TB) {
	t.Helper()
	if _, already := looking.LoadOrStore(t, true); already {
		return
	}
	t.Cleanup(func() { looking.Delete(t) })
	time.AfterFunc(time.Hour, func() {}).Stop() // the first timer of a program opens files and keeps them
	goroutines, files := runtime.NumGoroutine(), openFiles()
	t.Cleanup(func() {
		t.Helper()
		var g, f int
		if poll(func() bool {
			if g, f = runtime.NumGoroutine(), openFiles(); f > files {
				runtime.GC() // closes the pipes that net uses to copy between connections
			}
			return g <= goroutines && f <= files
		}) {
			return
		}
		stacks := make([]byte, 1<<16)
		t.Errorf("%d goroutines and %d open files after the test, %d and %d before it:\n%s\n%s", g, f, goroutines, files, fileNames(), stacks[:runtime.Stack(stacks, true)])
	})
}

// NoneLeft fails the test if, after it, a process still has that entry in its
// environment. It works only on Linux.
func NoneLeft(t testing.TB, entry string) {
	t.Helper()
	t.Cleanup(func() {
		t.Helper()
		var left []string
		if !poll(func() bool { left = processesWith(entry); return len(left) == 0 }) {
			t.Errorf("processes that the test left behind: %q", left)
		}
	})
}

// poll waits until done returns true, and reports whether it did in time.
func poll(done func() bool) bool {
	for begin := time.Now(); ; <-time.After(5 * time.Millisecond) {
		if done() {
			return true
		}
		if time.Since(begin) > settleTime {
			return false
		}
	}
}

// openFiles returns the number of open files of the process; 0 if unknown.
func openFiles() int {
	entries, _ := os.ReadDir("/proc/self/fd")
	return len(entries)
}

// fileNames returns the names of the open files.
func fileNames() string {
	var names []string
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		name, _ := os.Readlink("/proc/self/fd/" + e.Name())
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// processesWith returns the live processes that have an entry in their environment.
func processesWith(entry string) (found []string) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)) // empty if the process has ended
		for has := range bytes.SplitSeq(environ, []byte{0}) {
			if string(has) == entry {
				line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
				found = append(found, fmt.Sprintf("%d %s", pid, bytes.ReplaceAll(line, []byte{0}, []byte(" "))))
			}
		}
	}
	return found
}

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

// settleTime is what the end of things may take on a loaded machine.
const settleTime = 10 * time.Second

// looking are the tests that NothingLeft looks after.
var looking sync.Map

// NothingLeft compares the goroutines and open files of the process after the test
// with those of now. It is for tests that do not run side by side. The first call
// in a test counts: what is set up after it must be gone, what was before may stay.
func NothingLeft(t testing.TB) {
	t.Helper()
	if _, already := looking.LoadOrStore(t, true); already {
		return
	}
	t.Cleanup(func() { looking.Delete(t) })
	time.AfterFunc(time.Hour, func() {}).Stop() // with its first timer a program opens files of its own, and keeps them
	goroutines, files := runtime.NumGoroutine(), openFiles()
	t.Cleanup(func() {
		t.Helper()
		var g, f int
		if poll(func() bool {
			if g, f = runtime.NumGoroutine(), openFiles(); f > files {
				runtime.GC() // which closes the pipes that net keeps to copy between connections
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
// environment. It looks nowhere but on Linux.
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

// poll waits until done says so, and reports whether it did in time.
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

// openFiles is the number of the process's open files, 0 where that is not known.
func openFiles() int {
	entries, _ := os.ReadDir("/proc/self/fd")
	return len(entries)
}

// fileNames says what the open files are.
func fileNames() string {
	var names []string
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		name, _ := os.Readlink("/proc/self/fd/" + e.Name())
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// processesWith are the live processes that have an entry in their environment.
func processesWith(entry string) (found []string) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)) // that of one that has ended is empty
		for has := range bytes.SplitSeq(environ, []byte{0}) {
			if string(has) == entry {
				line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
				found = append(found, fmt.Sprintf("%d %s", pid, bytes.ReplaceAll(line, []byte{0}, []byte(" "))))
			}
		}
	}
	return found
}

package child

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// strays maps process IDs to start times. The start time shows whether an ID has
// been given to another process meanwhile.
type strays map[int]string

// findStrays returns the descendants of a process: those connected to it by parent
// IDs, and those with the mark in their environment. The mark finds a process that
// left its group and lost its parent.
func findStrays(root int, mark string) strays {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	found := strays{}
	parents := map[int]int{}
	starts := map[int]string{}
	needle := []byte(markVariable + "=" + mark)
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		parent, start, ok := processStat(pid)
		if !ok {
			continue
		}
		parents[pid], starts[pid] = parent, start
		if env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)); err == nil && bytes.Contains(env, needle) {
			found[pid] = start
		}
	}
	for pid := range parents {
		for p, hops := pid, 0; p > 1 && hops < 100; p, hops = parents[p], hops+1 {
			if p == root {
				found[pid] = starts[pid]
			}
		}
	}
	return found
}

func (s strays) kill() {
	for pid, start := range s {
		if _, now, ok := processStat(pid); ok && now == start {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// processStat reads a process's parent and start time.
func processStat(pid int) (parent int, start string, ok bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, "", false
	}
	// The name of the command, in parentheses, may hold anything.
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	const parentField, startField = 1, 19
	if len(fields) <= startField {
		return 0, "", false
	}
	parent, err = strconv.Atoi(string(fields[parentField]))
	return parent, string(fields[startField]), err == nil
}

package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// pidsBelow are the processes below a process, its children and theirs; none where
// there is no /proc.
func pidsBelow(root int) (pids []int) {
	parents := map[int]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, stat := range stats {
		text, err := os.ReadFile(stat)
		if err != nil {
			continue // it has just ended
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
		if err != nil || len(fields) < 2 {
			continue
		}
		parents[pid], _ = strconv.Atoi(fields[1])
	}
	for pid := range parents {
		for p, hops := parents[pid], 0; p > 1 && hops < 100; p, hops = parents[p], hops+1 {
			if p == root {
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids
}

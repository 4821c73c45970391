package bench

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// memory is what a process and its children hold, without those that are
// upstreams, in megabytes. It needs /proc.
func memory(b *testing.B, process int) float64 {
	b.Helper()
	sum := 0
	stats, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil || len(stats) == 0 {
		b.Skip("there is no /proc here")
	}
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it is gone
		}
		fields := map[string]string{}
		for line := range strings.Lines(string(text)) {
			name, value, _ := strings.Cut(line, ":")
			fields[name], _, _ = strings.Cut(strings.TrimSpace(value), " ")
		}
		environment, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "environ"))
		isChild := fields["PPid"] == strconv.Itoa(process) && !strings.Contains(string(environment), role+"=upstream")
		if fields["Pid"] == strconv.Itoa(process) || isChild {
			kilobytes, _ := strconv.Atoi(fields["VmRSS"])
			sum += kilobytes
		}
	}
	return float64(sum) / 1000
}

// processorTime is what the threads of a process have used so far, in microseconds. It is
// NaN where there is no /proc.
func processorTime(process int) float64 {
	stats, _ := filepath.Glob("/proc/" + strconv.Itoa(process) + "/task/*/schedstat")
	sum := math.NaN()
	if len(stats) > 0 {
		sum = 0
	}
	for _, file := range stats {
		text, _ := os.ReadFile(file)
		first, _, _ := strings.Cut(string(text), " ")
		nanoseconds, _ := strconv.ParseFloat(first, 64)
		sum += nanoseconds / 1000
	}
	return sum
}

// children counts the children of a process, without the watcher of mcpx.
func children(process int) (n int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, file := range stats {
		text, _ := os.ReadFile(file)
		environment, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "environ"))
		if strings.Contains(string(text), "\nPPid:\t"+strconv.Itoa(process)+"\n") && strings.Contains(string(environment), role+"=upstream") {
			n++
		}
	}
	return n
}

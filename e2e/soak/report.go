//go:build linux

package main

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// maxPeak is what mcpx may take under the load, in KiB: eight messages of 4 MiB and
// their copies beside what it needs anyway.
const maxPeak = 200 << 10

// report prints what happened as a table, and what should not have.
func (s *soak) report(fronts []*watched) (violations int) {
	l := s.ledger
	for _, f := range fronts {
		if f.peak > maxPeak {
			l.violation("%s took %d MiB, want %d at most", f.name, f.peak>>10, maxPeak>>10)
		}
		if f.filesAfter > f.filesBefore+slack {
			l.violation("%s has %d files open, %d before the load", f.name, f.filesAfter, f.filesBefore)
		}
		if f.goroutinesAfter > f.goroutinesBefore+3*slack {
			l.violation("%s has %d goroutines, %d before the load", f.name, f.goroutinesAfter, f.goroutinesBefore)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	row := func(name string, format string, args ...any) {
		fmt.Printf("| %s | %s |\n", name, fmt.Sprintf(format, args...))
	}
	total := 0
	for _, n := range l.count {
		total += n
	}
	fmt.Println("| what | figure |\n|---|---|")
	row("time", "%s", s.duration)
	row("load", "%d calls at a time over stdio, %d clients over HTTP, a client that comes and goes; %d upstreams each", s.stdioWorkers, s.httpClients, len(allServers))
	faults := 0
	for _, name := range slices.Sorted(maps.Keys(s.faults.n)) {
		faults += s.faults.n[name]
		row("fault: "+name, "%d", s.faults.n[name])
	}
	row("faults", "%d", faults)
	row("calls", "%d", total)
	for _, o := range []outcome{ok, unavailable, stopped, timedOut, broken, cancelled, dropped} {
		row(string(o), "%d", l.count[o])
	}
	row("wrong", "%d", l.count[wrong])
	row("lost", "%d", l.count[lost])
	row("doubled", "%d", l.doubled)
	slices.Sort(l.steady)
	if n := len(l.steady); n > 0 {
		row("upstream left alone, small result", "p50 %s, p99 %s of %d", l.steady[n/2].Round(10*time.Microsecond), l.steady[n*99/100].Round(10*time.Microsecond), n)
	}
	row("slowest answer", "%s", l.slowest.Round(time.Millisecond))
	for _, f := range fronts {
		row(f.name+": peak memory", "%.1f MiB", float64(f.peak)/1024)
		row(f.name+": open files before, after", "%d, %d", f.filesBefore, f.filesAfter)
		if f.goroutinesBefore > 0 {
			row(f.name+": goroutines before, after", "%d, %d", f.goroutinesBefore, f.goroutinesAfter)
		}
	}
	row("processes left behind", "%d", s.left)
	row("broken promises", "%d", len(l.violations))
	for i, v := range l.violations {
		if i == 20 {
			fmt.Println("…")
			break
		}
		fmt.Println("BROKEN:", v)
	}
	return len(l.violations)
}

//go:build linux

package main

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// maxPeak is the memory limit of mcpx under load in KiB: eight messages of 4 MiB and their
// copies, besides its usual memory.
const maxPeak = 200 << 10

// report prints a table and the broken promises, and returns these.
func (s *soak) report(fronts []*front) []violation {
	l := s.ledger
	for _, f := range fronts {
		if f.peak > maxPeak {
			l.violation(leftBehind, "%s took %d MiB, want %d at most", f.title, f.peak>>10, maxPeak>>10)
		}
		if f.filesAfter > f.filesBefore+slack {
			l.violation(leftBehind, "%s has %d files open, %d before the load", f.title, f.filesAfter, f.filesBefore)
		}
		if f.goroutinesAfter > f.goroutinesBefore+3*slack {
			l.violation(leftBehind, "%s has %d goroutines, %d before the load", f.title, f.goroutinesAfter, f.goroutinesBefore)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s.row("what", "figure")
	fmt.Fprintln(s.output, "|---|---|")
	s.row("time", "%s", s.duration)
	for _, f := range fronts {
		workers := "calls at a time"
		if f.isHTTP {
			workers = "clients"
		}
		s.row("load: "+f.title, "%d %s, %d upstreams", f.workers, workers, len(f.servers))
	}
	s.reportFaults()
	s.reportCalls()
	for _, f := range fronts {
		s.row(f.title+": peak memory", "%.1f MiB", float64(f.peak)/1024)
		s.row(f.title+": open files before, after", "%d, %d", f.filesBefore, f.filesAfter)
		if f.goroutinesBefore > 0 {
			s.row(f.title+": goroutines before, after", "%d, %d", f.goroutinesBefore, f.goroutinesAfter)
		}
	}
	s.row("processes left behind", "%d", s.left)
	s.row("broken promises", "%d", len(l.violations))
	for i, v := range l.violations {
		if i == 20 {
			fmt.Fprintln(s.output, "…")
			break
		}
		fmt.Fprintln(s.output, "BROKEN:", v)
	}
	return l.violations
}

func (s *soak) row(name, format string, args ...any) {
	fmt.Fprintf(s.output, "| %s | %s |\n", name, fmt.Sprintf(format, args...))
}

func (s *soak) reportFaults() {
	total := 0
	for _, kind := range slices.Sorted(maps.Keys(s.faults.counts)) {
		total += s.faults.counts[kind]
		s.row("fault: "+kind, "%d", s.faults.counts[kind])
	}
	s.row("faults", "%d", total)
	stalls, longest := 0, time.Duration(0)
	for _, f := range s.faults.all() {
		if f.kind == stalled {
			stalls++
			longest = max(longest, f.to.Sub(f.from))
		}
	}
	s.row("stalls of the machine", "%d, the longest %s", stalls, longest.Round(time.Millisecond))
}

// reportCalls prints the outcomes of the calls. The caller holds the mutex of the ledger.
func (s *soak) reportCalls() {
	l := s.ledger
	s.row("calls", "%d", len(l.entries))
	for _, o := range []outcome{ok, unavailable, stopped, timedOut, broken, canceled, dropped} {
		s.row(string(o), "%d", l.count[o])
	}
	s.row("results cut, then read to their end", "%d", l.cut)
	s.row("calls of read_result", "%d", l.reads)
	s.row("selects, paths and references of kept results, also canceled ones", "%d", l.selections)
	s.row("calls of clients on stdio that did not read", "%d", l.deaf)
	s.row("peak memory for such a client", "%.1f MiB", float64(l.deafPeak)/1024)
	s.row("answers that upstreams recorded", "%d", l.answered)
	s.row("failures that a fault explains", "%d", l.explained)
	s.row("failures without a fault", "%d", l.broken(unexplained))
	s.row("answers lost in mcpx", "%d", l.broken(lostAnswer))
	s.row("wrong", "%d", l.broken(wrongAnswer))
	s.row("lost", "%d", l.broken(noAnswer))
	s.row("doubled", "%d", l.broken(doneTwice))
	slices.Sort(l.quick)
	if n := len(l.quick); n > 0 {
		s.row("upstream left alone, small result", "p50 %s, p99 %s of %d", l.quick[n/2].Round(10*time.Microsecond), l.quick[n*99/100].Round(10*time.Microsecond), n)
	}
	s.row("slowest answer", "%s", l.slowest.Round(time.Millisecond))
}

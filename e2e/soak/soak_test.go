//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	_ "mcpx/internal/app" // so that a change of the program invalidates cached results
	"mcpx/internal/mcptest"
)

// binaries is the folder with the built mcpx and mcpx-sse.
var binaries string

func TestMain(m *testing.M) {
	relayMain()
	mcptest.Main()
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "mcpx-soak-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := build(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	binaries = dir
	return m.Run()
}

// soakFor runs a short soak and returns the broken promises and the report.
func soakFor(t *testing.T, o options) ([]violation, string) {
	t.Helper()
	dir, err := os.MkdirTemp(t.TempDir(), "soak-")
	if err != nil {
		t.Fatal(err)
	}
	var report bytes.Buffer
	o.binaries, o.output = binaries, &report
	broken, err := run(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return broken, report.String()
}

// TestSoakWithoutABug: a short soak of every part with every kind of fault reports nothing.
func TestSoakWithoutABug(t *testing.T) {
	mcptest.NothingLeft(t)
	broken, report := soakFor(t, options{
		duration: 4 * time.Second, pause: 40 * time.Millisecond, faultEvery: 300 * time.Millisecond,
		parts: allParts(workers{4, 4, 2, 2, 2}), visits: true,
		timeout: 12 * time.Second, // the machine may be busy with other tests
	})
	if len(broken) > 0 {
		t.Errorf("broken promises:\n%s", report)
	}
}

// TestPlantedBugs: the soak reports a bug of a single call by its name, though another
// upstream has faults at the same time.
func TestPlantedBugs(t *testing.T) {
	mcptest.NothingLeft(t)
	for _, test := range []struct {
		bug, part, server string
		times             int
		want              []promise
	}{
		{bugDrop, "stdio", "anna", 1, []promise{lostAnswer}},
		{bugDrop, "own", "anna", 1, []promise{lostAnswer}},
		{bugDrop, "http", legacyServer, 1, []promise{lostAnswer}},
		{bugDrop, "cut", remoteServer, 1, []promise{lostAnswer}},
		{bugSwap, "stdio", "anna", 2, []promise{wrongAnswer}},
		{bugRepeat, "http", "anna", 1, []promise{doneTwice}},
		{bugChange, "stdio", "anna", 1, []promise{wrongAnswer}},
		{bugChange, "cut", "anna", 1, []promise{wrongAnswer}},
		{bugTail, "http", "anna", 1, []promise{wrongAnswer}},
		{bugStop, "cut", "anna", 1, []promise{unexplained, lostAnswer}}, // other calls may be in flight
	} {
		t.Run(test.bug+" "+test.part+" "+test.server, func(t *testing.T) {
			t.Parallel()
			bug := plantedBug{test.bug, test.part, test.server}
			broken, report := soakFor(t, options{
				duration: 500 * time.Millisecond, pause: 20 * time.Millisecond, faultEvery: 100 * time.Millisecond,
				timeout: 4 * time.Second, parts: []part{smallPart(t, bug)}, bug: bug,
			})
			planted := part{name: test.part}.upstream(test.server)
			found := 0
			for _, v := range broken {
				if v.upstream != planted {
					continue
				}
				found++
				if !slices.Contains(test.want, v.promise) {
					t.Errorf("got %q, want %q", v, test.want)
				}
			}
			if found < test.times || found > test.times && test.bug != bugStop {
				t.Errorf("%d broken promises of the upstream with the bug, want %d:\n%s", found, test.times, report)
			}
		})
	}
}

// smallPart returns the part of the bug with three upstreams: one without faults, the one
// with the bug, and one with faults.
func smallPart(t *testing.T, bug plantedBug) part {
	t.Helper()
	for _, p := range allParts(workers{6, 6, 6, 6, 6}) {
		if p.name == bug.part {
			p.servers = []string{steady, bug.server, "bert"}
			return p
		}
	}
	t.Fatalf("no part %q", bug.part)
	return part{}
}

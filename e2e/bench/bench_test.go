// Package bench measures mcpx beside what it stands in front of, in the same
// run: a direct upstream, and a relay that does nothing but rewrite ids. Figures
// of their own mean little on a busy machine; the ratios to the relay do.
//
//	go test -run '^$' -bench . -benchtime 30x mcpx/e2e/bench
package bench

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Arguments of the calls.
const (
	small = `{"message":"hello"}`
	large = `{"message":"hello","size":1000000}`
	slow  = `{"message":"hello","delay_ms":50}`
)

func BenchmarkStdioSmall(b *testing.B)    { latency(b, stdioTargets(b, 1), small, 50) }
func BenchmarkStdioLarge(b *testing.B)    { latency(b, stdioTargets(b, 1), large, 5) }
func BenchmarkStdioInFlight(b *testing.B) { throughput(b, stdioTargets(b, 1), small, 64, 2000) }
func BenchmarkStdioSlow(b *testing.B)     { throughput(b, stdioTargets(b, 1), slow, 64, 640) }
func BenchmarkHTTPSmall(b *testing.B)     { latency(b, httpTargets(b, 1), small, 50) }
func BenchmarkHTTPClients(b *testing.B)   { throughput(b, httpTargets(b, 64), small, 64, 2000) }
func BenchmarkHTTPLarge(b *testing.B)     { latency(b, httpTargets(b, 1), large, 5) }
func BenchmarkHTTPSlow(b *testing.B)      { throughput(b, httpTargets(b, 64), slow, 64, 640) }

// Upstreams over HTTP, compared with a relay that posts each message as it is.
func BenchmarkRemoteSmall(b *testing.B) { remote(b, small, 50) }
func BenchmarkRemoteLarge(b *testing.B) { remote(b, large, 5) }
func BenchmarkRemoteInFlight(b *testing.B) {
	throughput(b, remoteTargets(b, "stdio"), small, 64, 2000)
}

func remote(b *testing.B, arguments string, calls int) {
	for _, front := range []string{"stdio", "http"} {
		b.Run(front, func(b *testing.B) { latency(b, remoteTargets(b, front), arguments, calls) })
		b.Run(front+"-events", func(b *testing.B) {
			latency(b, remoteTargets(b, front, "MCPX_BENCH_EVENTS=1"), arguments, calls)
		})
	}
}

// Flat mode, compared with lazy mode.
func BenchmarkFlatSmall(b *testing.B) { flat(b, small, 50) }
func BenchmarkFlatLarge(b *testing.B) { flat(b, large, 5) }

func flat(b *testing.B, arguments string, calls int) {
	for _, front := range []string{"stdio", "http"} {
		b.Run(front, func(b *testing.B) { latency(b, flatTargets(b, front), arguments, calls) })
	}
}

// BenchmarkRevisions compares clients of 2025-06-18 and of 2026-07-28.
func BenchmarkRevisions(b *testing.B) {
	for _, front := range []string{"stdio", "http"} {
		b.Run(front, func(b *testing.B) { latency(b, revisionTargets(b, front), small, 50) })
	}
}

// What a call costs does not depend on how much mcpx has to keep.
func BenchmarkUpstreams(b *testing.B) {
	for _, n := range []int{1, 10, 100} {
		b.Run(strconv.Itoa(n), func(b *testing.B) { latency(b, stdioTargets(b, n), small, 50) })
	}
}

func BenchmarkTools(b *testing.B) {
	for _, n := range []int{10, 1000, 10000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			latency(b, stdioTargets(b, 1, "MCPX_BENCH_TOOLS", strconv.Itoa(n)), small, 50)
		})
	}
}

func BenchmarkSessions(b *testing.B) {
	for _, n := range []int{1, 900} {
		b.Run(strconv.Itoa(n), func(b *testing.B) { latency(b, httpTargets(b, n), small, 50) })
	}
}

// BenchmarkReplicas compares a small call with what a session key adds to it, and with what a
// store adds then.
func BenchmarkReplicas(b *testing.B) {
	for _, name := range []string{"key", "store"} {
		b.Run(name, func(b *testing.B) { latency(b, replicaTargets(b, name), small, 50) })
	}
}

// BenchmarkInspect measures the listing of a server with a thousand tools.
func BenchmarkInspect(b *testing.B) {
	c := startStdio(b, mcpx("mcpx", configFile(b, 1, "MCPX_BENCH_TOOLS", "1000")))
	var took []float64
	for b.Loop() {
		begin := time.Now()
		if _, err := c.do("tools/call", `{"name":"inspect","arguments":{"server_name":"s0"}}`); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begin).Seconds()*1000)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(took), "ms-p50")
}

// BenchmarkStart measures the time from the start of the process to the answer to
// tools/list, with one upstream that takes three seconds to start.
func BenchmarkStart(b *testing.B) {
	for _, n := range []int{10, 100} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			file := configFile(b, n, "MCPX_BENCH_SLOW", "s1")
			var took []float64
			for b.Loop() {
				begin := time.Now()
				c := startStdio(b, mcpx("mcpx", file))
				if _, err := c.do("tools/list", "{}"); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(begin).Seconds()*1000)
				b.StopTimer()
				c.stop()
				b.StartTimer()
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(took), "ms-p50")
		})
	}
}

// BenchmarkLazy measures a hundred upstreams that start on first use, with their lists in
// the cache: tools/list and a listing before anything runs, the memory and the processes
// then, and the first call, without the time that the upstream itself takes to start.
func BenchmarkLazy(b *testing.B) {
	file := lazyFile(b, 100)
	if out, err := mcpx("mcpx", "check", file).CombinedOutput(); err != nil {
		b.Fatalf("mcpx check: %v\n%s", err, out)
	}
	figures := map[string][]float64{}
	measure := func(name string, do func()) {
		begin := time.Now()
		do()
		figures[name] = append(figures[name], time.Since(begin).Seconds()*1000)
	}
	for b.Loop() {
		var c *stdioClient
		evictCache(b)
		measure("ms-list-cold", func() {
			c = startStdio(b, mcpx("mcpx", file))
			c.must(b, "tools/list", "{}")
		})
		measure("ms-inspect-cold", func() { c.must(b, "tools/call", `{"name":"inspect","arguments":{"server_name":"s1"}}`) })
		c.stop()
		measure("ms-list", func() {
			c = startStdio(b, mcpx("mcpx", file))
			c.must(b, "tools/list", "{}")
		})
		c.must(b, "tools/call", `{"name":"inspect","arguments":{"server_name":"s1"}}`) // the cache is read now
		measure("ms-inspect", func() { c.must(b, "tools/call", `{"name":"inspect","arguments":{"server_name":"s2"}}`) })
		time.Sleep(3 * time.Second) // it gives back what it does not need when it is quiet
		figures["MB-idle"] = append(figures["MB-idle"], memory(b, c.process.Pid))
		figures["children"] = append(figures["children"], float64(children(c.process.Pid)))
		measure("ms-first-call", func() { c.must(b, "tools/call", fmt.Sprintf(execCall, small)) })
		measure("ms-upstream", func() { startStdio(b, self("upstream")).must(b, "tools/list", "{}") })
		c.stop()
	}
	for name, values := range figures {
		b.ReportMetric(median(values), name)
	}
	b.ReportMetric(0, "ns/op")
}

// evictCache makes the system forget the files of the catalog cache, so that the next
// reader reads them from the disk.
func evictCache(b *testing.B) {
	files, _ := filepath.Glob(filepath.Join(os.Getenv("XDG_CACHE_HOME"), "mcpx", "catalog", "*"))
	if len(files) == 0 {
		b.Fatal("the catalog cache is empty")
	}
	for _, file := range files {
		if out, err := exec.Command("dd", "of="+file, "oflag=nocache", "conv=notrunc,fdatasync", "count=0", "status=none").CombinedOutput(); err != nil {
			b.Fatalf("dd: %v\n%s", err, out)
		}
	}
}

// BenchmarkMemory measures what mcpx and its watcher hold, upstreams left out:
// idle in front of ten of them, and after 10,000 calls and 100 results of a
// megabyte.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		t := overStdio(b, target{name: "mcpx", tool: execCall}, mcpx("mcpx", configFile(b, 10)))
		process := t.process
		for range 10 {
			if err := t.call(0, small); err != nil {
				b.Fatal(err)
			}
		}
		time.Sleep(3 * time.Second) // it gives back what it does not need when it is quiet
		b.ReportMetric(memory(b, process), "MB-idle")
		for range 10_000 {
			if err := t.call(0, small); err != nil {
				b.Fatal(err)
			}
		}
		for range 100 {
			if err := t.call(0, large); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(memory(b, process), "MB-loaded")
	}
	b.ReportMetric(0, "ns/op")
}

// latency measures serial calls, in turns of a few.
func latency(b *testing.B, targets []*target, arguments string, calls int) {
	takeTurns(b, targets, "µs", func(t *target) float64 {
		took := make([]float64, calls)
		for i := range took {
			begin := time.Now()
			if err := t.call(0, arguments); err != nil {
				b.Fatal(err)
			}
			took[i] = float64(time.Since(begin).Nanoseconds()) / 1000
		}
		return median(took)
	})
}

// throughput measures calls per second with that many in flight.
func throughput(b *testing.B, targets []*target, arguments string, inFlight, calls int) {
	takeTurns(b, targets, "calls/s", func(t *target) float64 {
		begin := time.Now()
		var wg sync.WaitGroup
		for worker := range inFlight {
			wg.Go(func() {
				for range calls / inFlight {
					if err := t.call(worker, arguments); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		return float64(calls/inFlight*inFlight) / time.Since(begin).Seconds()
	})
}

// takeTurns measures the targets in turns, in random order, once a round. It reports the
// median of each, the median of the ratios of the last target to the one before it in the
// same round, and the ratio of their processor time.
func takeTurns(b *testing.B, targets []*target, unit string, measure func(t *target) float64) {
	for _, t := range targets {
		if err := t.call(0, small); err != nil { // and it is warm
			b.Fatal(err)
		}
	}
	base, subject := targets[len(targets)-2], targets[len(targets)-1]
	figures, used := map[string][]float64{}, map[string]float64{}
	var ratios []float64
	for b.Loop() {
		for _, i := range rand.Perm(len(targets)) {
			t := targets[i]
			before := processorTime(t.process)
			figures[t.name] = append(figures[t.name], measure(t))
			used[t.name] += processorTime(t.process) - before
		}
		n := len(ratios)
		ratios = append(ratios, figures[subject.name][n]/figures[base.name][n])
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(ratios), "×"+base.name)
	b.ReportMetric(used[subject.name]/used[base.name], "×"+base.name+"-cpu")
	for _, t := range targets {
		b.ReportMetric(median(figures[t.name]), unit+"-"+t.name)
	}
}

func median(figures []float64) float64 {
	slices.Sort(figures)
	return figures[len(figures)/2]
}

//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"mcpx/internal/mcptest"
)

// breakThings harms the upstreams of one run of mcpx until ctx ends.
func (s *soak) breakThings(ctx context.Context, f *watched) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for sleep(ctx, 2*s.faultEvery); ctx.Err() == nil; sleep(ctx, 2*s.faultEvery) {
		server := victims[rand.IntN(len(victims))]
		switch n := rand.IntN(10); {
		case n < 3:
			s.signal(f, server, syscall.SIGKILL)
		case n < 5:
			if s.signal(f, server, syscall.SIGSTOP) {
				wg.Go(func() {
					sleep(ctx, 3*time.Second)
					s.signal(f, server, syscall.SIGCONT)
				})
			}
		case n < 6:
			s.faults.add("grandchild that left its group")
			wg.Go(func() { _, _ = f.caller.exec(server, "spawn", `{"detached":true}`) })
		case n < 7 && f.url != "": // one of the two is enough
			s.faults.add("remote upstream killed")
			s.remote.stop()
			sleep(ctx, 500*time.Millisecond)
			if err := s.remote.start(); err != nil {
				s.ledger.violation("%v", err)
			}
		default:
			kind := mcptest.Faults[rand.IntN(len(mcptest.Faults))]
			s.faults.add(kind)
			wg.Go(func() {
				if _, err := f.caller.exec(server, "fault", fmt.Sprintf(`{"kind":%q}`, kind)); err != nil {
					s.ledger.violation("the call of the fault %q got no answer: %v", kind, err)
				}
			})
		}
	}
}

// signal sends a signal to the process of an upstream, if it has one.
func (s *soak) signal(f *watched, server string, signal syscall.Signal) bool {
	for _, pid := range s.processes(f.program.name) {
		if environ(pid, "SOAK_SERVER") == server && parent(pid) == f.program.cmd.Process.Pid {
			if syscall.Kill(pid, signal) == nil && signal != syscall.SIGCONT {
				s.faults.add(signalName[signal])
				return true
			}
		}
	}
	return false
}

var signalName = map[syscall.Signal]string{syscall.SIGKILL: "SIGKILL", syscall.SIGSTOP: "SIGSTOP, later SIGCONT"}

// visit is a client that comes, calls, and is gone without a word, again and
// again. Each time nothing may be left of its mcpx.
func (s *soak) visit(ctx context.Context) {
	ends := []struct {
		name string
		code int
		end  func(p *stdio)
	}{
		{"client ends its input", 0, func(p *stdio) { _ = p.in.Close() }},
		{"client is gone", -1, func(p *stdio) { _ = p.out.Close(); _ = p.in.Close() }},
		{"mcpx gets SIGTERM", 0, func(p *stdio) { _ = p.cmd.Process.Signal(syscall.SIGTERM) }},
		{"mcpx gets SIGKILL", -1, func(p *stdio) { _ = p.cmd.Process.Kill() }},
	}
	for i := 0; ctx.Err() == nil; i++ {
		p, err := startStdio(s, fmt.Sprint("visit-", i), []string{victims[0], victims[1]})
		if err != nil {
			s.ledger.violation("visit %d: %v", i, err)
			return
		}
		end := ends[i%len(ends)]
		s.faults.add(end.name)
		var wg sync.WaitGroup
		for range 10 {
			c := randomCall()
			c.server, c.cancel = victims[rand.IntN(2)], 0
			wg.Go(func() { s.one(p, c) })
		}
		wg.Go(func() { _, _ = p.exec(victims[0], "spawn", `{"detached":true}`) })
		sleep(ctx, 200*time.Millisecond)
		s.stopProgram(p.program, func() { end.end(p) }, end.code)
		wg.Wait()
		sleep(ctx, time.Second)
	}
}

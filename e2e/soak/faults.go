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

// Faults that the soak causes. Upstreams record all others themselves.
const (
	killed       = "SIGKILL"
	paused       = "SIGSTOP, later SIGCONT"
	remoteKilled = "remote upstream killed"
	mcpxEnds     = "mcpx is ended"
	stalled      = "the machine stalls" // the soak itself did not run
)

// fault is one fault and what it hit.
type fault struct {
	kind     string
	part     string // for mcpxEnds only
	upstream string // as in the events of upstreams; empty for stalled
	pid      int    // of the upstream's process
	from, to time.Time
}

// faultLog holds the faults of the soak. It is safe for concurrent use.
type faultLog struct {
	mu     sync.Mutex
	faults []*fault
	counts map[string]int
}

// count counts a fault for the report.
func (l *faultLog) count(kind string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counts == nil {
		l.counts = map[string]int{}
	}
	l.counts[kind]++
}

// add records a fault that is about to begin. It lasts until end is called, or until the
// end of the run.
func (l *faultLog) add(f fault) *fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = append(l.faults, &f)
	return &f
}

// end records the end of a fault.
func (l *faultLog) end(f *fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f.to = time.Now()
}

// cancel removes a fault that did not happen.
func (l *faultLog) cancel(f *fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f.kind = ""
}

// resumed records that a process runs again.
func (l *faultLog) resumed(pid int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.faults {
		if f.kind == paused && f.pid == pid && f.to.IsZero() {
			f.to = time.Now()
		}
	}
}

func (l *faultLog) all() (faults []fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.faults {
		faults = append(faults, *f)
	}
	return faults
}

// stallTime is the shortest delay that counts as a stall.
const stallTime = 300 * time.Millisecond

// watchStalls records stalls of the machine until ctx ends. During a stall mcpx and the
// upstreams usually do not run either, but the time limits of calls go on.
func (s *soak) watchStalls(ctx context.Context) {
	tick := time.NewTicker(stallTime / 10)
	defer tick.Stop()
	for last := time.Now(); ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		now := time.Now()
		if now.Sub(last) > stallTime {
			s.faults.add(fault{kind: stalled, from: last, to: now})
		}
		last = now
	}
}

// breakUpstreams causes faults of the upstreams that one mcpx has started, until ctx ends.
func (s *soak) breakUpstreams(ctx context.Context, f *front) {
	servers := f.victims(s.bug)
	if len(servers) == 0 {
		return
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	for sleep(ctx, 2*s.faultEvery); ctx.Err() == nil; sleep(ctx, 2*s.faultEvery) {
		server := servers[rand.IntN(len(servers))]
		switch n := rand.IntN(10); {
		case n < 3:
			s.harm(f, server, syscall.SIGKILL)
		case n < 5:
			if pid := s.harm(f, server, syscall.SIGSTOP); pid != 0 {
				wg.Go(func() {
					sleep(ctx, 3*time.Second)
					s.resume(pid)
				})
			}
		case n < 6:
			s.faults.count("grandchild that left its group")
			wg.Go(func() { _, _ = f.control.exec(server, "spawn", `{"detached":true}`, 0) })
		default:
			kind := mcptest.Faults[rand.IntN(len(mcptest.Faults))]
			s.faults.count(kind)
			wg.Go(func() {
				if _, err := f.control.exec(server, "fault", fmt.Sprintf(`{"kind":%q}`, kind), 0); err != nil {
					s.ledger.violation(noAnswer, "the call of the fault %q: %v", kind, err)
				}
			})
		}
	}
}

// breakRemotes causes faults of the remote upstreams until ctx ends.
func (s *soak) breakRemotes(ctx context.Context) {
	var names []string
	for name, r := range s.remotes {
		if r.relay == nil {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return
	}
	for sleep(ctx, 4*s.faultEvery); ctx.Err() == nil; sleep(ctx, 4*s.faultEvery) {
		r := s.remotes[names[rand.IntN(len(names))]]
		switch rand.IntN(3) {
		case 0:
			s.faults.count(remoteKilled)
			r.restart(ctx)
		case 1:
			s.faults.count(mcptest.CutConnections)
			r.misbehave(mcptest.CutConnections, 0)
		case 2:
			s.faults.count(mcptest.HoldAnswers)
			r.misbehave(mcptest.HoldAnswers, 1500*time.Millisecond+rand.N(3*time.Second))
		}
	}
}

// harm sends SIGKILL or SIGSTOP to a process of an upstream and returns its ID, or 0 if
// there is none. With a session per client the upstream has several.
func (s *soak) harm(f *front, server string, signal syscall.Signal) (pid int) {
	pids := s.upstreams(f, server)
	if len(pids) == 0 {
		return 0
	}
	pid = pids[rand.IntN(len(pids))]
	kinds := map[syscall.Signal]string{syscall.SIGKILL: killed, syscall.SIGSTOP: paused}
	entry := s.faults.add(fault{kind: kinds[signal], upstream: f.upstream(server), pid: pid, from: time.Now()})
	if syscall.Kill(pid, signal) != nil {
		s.faults.cancel(entry)
		return 0
	}
	s.faults.count(kinds[signal])
	return pid
}

// resume sends SIGCONT.
func (s *soak) resume(pid int) {
	_ = syscall.Kill(pid, syscall.SIGCONT)
	s.faults.resumed(pid)
}

// upstreams returns the processes of a server that mcpx has started.
func (s *soak) upstreams(f *front, server string) (pids []int) {
	for _, pid := range s.processes(f.name) {
		if environ(pid, "SOAK_SERVER") == server && parent(pid) == f.program.cmd.Process.Pid {
			pids = append(pids, pid)
		}
	}
	return pids
}

// visit runs a client that starts its own mcpx, calls, and ends in some way, again and
// again. Each time no process may be left.
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
		visitor := part{name: fmt.Sprint("visit-", i), title: "a visit", servers: victims[:2]}
		p, err := startStdio(s, visitor)
		if err != nil {
			s.ledger.violation(other, "visit %d: %v", i, err)
			return
		}
		end := ends[i%len(ends)]
		s.faults.count(end.name)
		var wg sync.WaitGroup
		for range 10 {
			c := randomCall(visitor)
			c.cancel = 0
			wg.Go(func() { s.one(p, c) })
		}
		wg.Go(func() { _, _ = p.exec(victims[0], "spawn", `{"detached":true}`, 0) })
		sleep(ctx, 200*time.Millisecond)
		s.stopProgram(p.program, func() { end.end(p) }, end.code)
		wg.Wait()
		sleep(ctx, time.Second)
	}
}

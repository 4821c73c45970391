//go:build linux

// Command soak loads mcpx from many clients over both fronts, breaks its upstreams
// and its clients' connections at random, and checks every answer.
//
//	go run ./e2e/soak [-for 15m]
//
// Every call has a nonce, which its answer must carry and the upstream notes in a
// file: an answer with another nonce is wrong, a call without an answer is lost, a
// nonce that was noted twice is doubled. It exits with 1 if there was any of them,
// if an upstream that was left alone ever failed, or if something was left behind.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"mcpx/internal/mcptest"
)

func main() {
	mcptest.Main()
	var o options
	flag.DurationVar(&o.duration, "for", time.Minute, "how long")
	flag.IntVar(&o.stdioWorkers, "stdio", 12, "calls at a time over stdio")
	flag.IntVar(&o.httpClients, "http", 12, "clients over HTTP")
	flag.DurationVar(&o.pause, "pause", 80*time.Millisecond, "between two calls of a client, on average")
	flag.DurationVar(&o.faultEvery, "fault", 600*time.Millisecond, "between two faults, on average")
	flag.Parse()
	dir, err := os.MkdirTemp("", "mcpx-soak-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
	violations, err := run(dir, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
	}
	if err != nil || violations > 0 {
		fmt.Fprintln(os.Stderr, "the logs are in", dir)
		os.Exit(1)
	}
	_ = os.RemoveAll(dir)
}

type options struct {
	duration     time.Duration
	stdioWorkers int
	httpClients  int
	pause        time.Duration
	faultEvery   time.Duration
}

// soak is one run.
type soak struct {
	options
	dir    string
	mark   string // in the environment of every process of the run
	ledger *ledger
	faults counter
	remote *remote
	left   int // processes that survived
}

// run returns how many promises were broken.
func run(dir string, o options) (violations int, err error) {
	build := exec.Command("go", "build", "-o", dir, "mcpx/cmd/mcpx", "mcpx/cmd/mcpx-sse")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return 0, fmt.Errorf("go build: %w", err)
	}
	s := &soak{options: o, dir: dir, mark: fmt.Sprintf("%d", os.Getpid()), ledger: newLedger()}
	defer s.killSurvivors()
	if s.remote, err = startRemote(s); err != nil {
		return 0, err
	}
	defer s.remote.stop()
	pipe, err := startStdio(s, "stdio", allServers)
	if err != nil {
		return 0, err
	}
	web, err := startHTTP(s, "http")
	if err != nil {
		return 0, err
	}
	control := web.client()
	fronts := []*watched{{name: "mcpx on stdio", program: pipe.program, caller: pipe}, {name: "mcpx-sse", program: web.program, caller: control, url: web.url}}
	for _, f := range fronts {
		if err := s.settle(f); err != nil {
			return 0, err
		}
		f.measureBefore()
	}
	s.load(pipe, web, fronts)
	for _, f := range fronts {
		if err := s.settle(f); err != nil {
			s.ledger.violation("%s did not come back to life: %v", f.name, err)
		}
		f.measureAfter()
	}
	s.stop(fronts, pipe)
	s.ledger.audit(filepath.Join(dir, "record"))
	return s.report(fronts), nil
}

// load runs everything at once until the time is over, and then until every call
// is answered.
func (s *soak) load(pipe *stdio, web *web, fronts []*watched) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) // nothing is left behind then, either
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, s.duration)
	defer cancel()
	var wg sync.WaitGroup
	for range s.stdioWorkers {
		wg.Go(func() { s.work(ctx, pipe) })
	}
	for range s.httpClients {
		wg.Go(func() { s.work(ctx, web.client()) })
	}
	wg.Go(func() { s.visit(ctx) })
	for _, f := range fronts {
		wg.Go(func() { s.breakThings(ctx, f) })
		wg.Go(func() { f.watch(ctx) })
	}
	wg.Wait()
}

// sleep waits for about that time, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d/2 + rand.N(d))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

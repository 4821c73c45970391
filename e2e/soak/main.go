//go:build linux

// Command soak loads mcpx from many clients over both fronts, breaks its upstreams
// and its clients' connections at random, and checks every answer.
//
//	go run ./e2e/soak [-for 15m]
//
// Every call has a nonce. Its answer must have the nonce and the payload derived from it,
// byte for byte. Upstreams record in a file when a call arrives, when its answer is
// written, and when they misbehave. At the end every failure is compared with the
// recorded faults (law.go): an answer that was written but never arrived, or a failure
// that no fault explains, is a broken promise. The soak exits with 1 if there was any, or
// if something was left behind.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
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
	relayMain()
	mcptest.Main()
	o := options{
		output: os.Stdout, visits: true, timeout: 3 * time.Second, pause: 80 * time.Millisecond, faultEvery: 600 * time.Millisecond,
		parts: allParts(workers{stdio: 12, http: 12, cut: 4, own: 4, lazy: 4}),
	}
	flag.DurationVar(&o.duration, "for", time.Minute, "how long")
	flag.Parse()
	dir, err := os.MkdirTemp("", "mcpx-soak-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
	o.binaries = dir
	err = build(o.binaries)
	var broken []violation
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		broken, err = run(ctx, dir, o)
		stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
	}
	if err != nil || len(broken) > 0 {
		fmt.Fprintln(os.Stderr, "the logs are in", dir)
		os.Exit(1)
	}
	_ = os.RemoveAll(dir)
}

type options struct {
	duration   time.Duration
	pause      time.Duration // between two calls of a client, on average
	faultEvery time.Duration // between two faults, on average
	timeout    time.Duration // of a call without progress
	parts      []part
	visits     bool       // clients come and go
	binaries   string     // the folder with mcpx and mcpx-sse
	bug        plantedBug // for the tests of the soak
	output     io.Writer  // of the report
}

// soak is one run.
type soak struct {
	options
	dir     string
	mark    string // in the environment of every process of the run
	record  string // the file in which upstreams record events
	ledger  *ledger
	faults  faultLog
	remotes map[string]*remote // by server name
	left    int                // processes that survived
}

// build builds mcpx and mcpx-sse in dir.
func build(dir string) error {
	command := exec.Command("go", "build", "-o", dir, "mcpx/cmd/mcpx", "mcpx/cmd/mcpx-sse")
	command.Stderr = os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("go build: %w", err)
	}
	return nil
}

// run runs the soak with its files in dir, and returns the broken promises. The end of ctx
// ends the load, and nothing is left behind then, either.
func run(ctx context.Context, dir string, o options) (broken []violation, err error) {
	s := &soak{
		options: o, dir: dir, mark: filepath.Base(dir), record: filepath.Join(dir, "record"),
		ledger: newLedger(), remotes: map[string]*remote{},
	}
	defer s.killSurvivors()
	defer s.stopRemotes()
	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer stop()
	watch.Go(func() { s.watchStalls(watching) })
	if err := s.startRemotes(); err != nil {
		return nil, err
	}
	var fronts []*front
	for _, p := range o.parts { // one by one, since each starts dozens of processes
		f, err := s.startFront(p)
		if err == nil {
			err = s.settle(f)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.title, err)
		}
		f.measureBefore()
		fronts = append(fronts, f)
	}
	s.load(ctx, fronts)
	for _, f := range fronts {
		if err := s.settle(f); err != nil {
			s.ledger.violation(other, "%s did not come back to life: %v", f.title, err)
		}
	}
	for _, f := range fronts {
		s.measureAfter(f)
	}
	for _, f := range fronts {
		s.stopProgram(f.program, f.end, 0)
	}
	events, err := readRecord(s.record)
	if err != nil {
		return nil, errors.Join(errors.New("the record of the upstreams"), err)
	}
	s.ledger.audit(newEvidence(events, s.faults.all()))
	return s.report(fronts), nil
}

// load runs everything at once until the time is over and every call is answered.
func (s *soak) load(ctx context.Context, fronts []*front) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		defer cancel()
		s.waitForEnd(ctx)
	})
	for _, f := range fronts {
		for range f.workers {
			wg.Go(func() { s.work(ctx, f) })
		}
		if f.resultTokens > 0 {
			wg.Go(func() { s.mine(ctx, f) })
		}
		wg.Go(func() { f.watch(ctx) })
		wg.Go(func() { s.breakUpstreams(ctx, f) })
	}
	wg.Go(func() { s.breakRemotes(ctx) })
	if s.visits {
		wg.Go(func() { s.visit(ctx) })
		wg.Go(func() { s.visitDeaf(ctx) })
	}
	wg.Wait()
}

// waitForEnd waits until the time of the load is over, and until a planted bug has
// happened.
func (s *soak) waitForEnd(ctx context.Context) {
	end := time.NewTimer(s.duration)
	defer end.Stop()
	select {
	case <-end.C:
	case <-ctx.Done():
	}
	for begin := time.Now(); s.bug.kind != "" && !s.bug.hasHappened(s.record); <-time.After(10 * time.Millisecond) {
		if time.Since(begin) > patience {
			s.ledger.violation(other, "the planted bug did not happen")
			return
		}
	}
}

// sleep waits for about this time, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d/2 + rand.N(d))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

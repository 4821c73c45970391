//go:build linux

// Command soak loads mcpx from many clients over both fronts, breaks its upstreams
// and its clients' connections at random, and checks every answer.
//
//	go run ./e2e/soak [-for 15m]
//
// Every call has a nonce. Its answer must carry the nonce and the payload that
// follows from it, byte for byte. Upstreams record in a file when a call arrives,
// when its answer is written, and when they misbehave. At the end every failure is
// compared with the recorded faults (law.go): an answer that is missing although it
// was written, or a failure that no fault explains, is a broken promise. The soak
// exits with 1 if there was any, or if something was left behind.
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
	o := options{output: os.Stdout}
	flag.DurationVar(&o.duration, "for", time.Minute, "how long")
	flag.DurationVar(&o.pause, "pause", 80*time.Millisecond, "between two calls of a client, on average")
	flag.DurationVar(&o.faultEvery, "fault", 600*time.Millisecond, "between two faults, on average")
	stdioWorkers := flag.Int("stdio", 12, "calls at a time over stdio")
	httpClients := flag.Int("http", 12, "clients over HTTP")
	cutWorkers := flag.Int("cut", 4, "calls at a time over stdio with results cut")
	ownClients := flag.Int("own", 4, "clients over HTTP with upstream sessions of their own, and results cut")
	flag.Parse()
	o.parts = allParts(*stdioWorkers, *httpClients, *cutWorkers, *ownClients)
	dir, err := os.MkdirTemp("", "mcpx-soak-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
	err = build(dir)
	var broken []violation
	if err == nil {
		broken, err = run(dir, o)
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
	pause      time.Duration
	faultEvery time.Duration
	parts      []part
	bug        plantedBug // only the tests of the soak have one
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

// build puts mcpx and mcpx-sse into dir.
func build(dir string) error {
	command := exec.Command("go", "build", "-o", dir, "mcpx/cmd/mcpx", "mcpx/cmd/mcpx-sse")
	command.Stderr = os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("go build: %w", err)
	}
	return nil
}

// run runs the soak with the binaries in dir, and returns the broken promises.
func run(dir string, o options) (broken []violation, err error) {
	s := &soak{
		options: o, dir: dir, mark: filepath.Base(dir), record: filepath.Join(dir, "record"),
		ledger: newLedger(), remotes: map[string]*remote{},
	}
	defer s.killSurvivors()
	defer s.stopRemotes()
	if err := s.startRemotes(); err != nil {
		return nil, err
	}
	var fronts []*front
	for _, p := range o.parts {
		f, err := s.startFront(p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.title, err)
		}
		fronts = append(fronts, f)
	}
	for _, f := range fronts {
		if err := s.settle(f); err != nil {
			return nil, err
		}
	}
	for _, f := range fronts {
		f.measureBefore()
	}
	s.load(fronts)
	for _, f := range fronts {
		if err := s.settle(f); err != nil {
			s.ledger.violation(other, "%s did not come back to life: %v", f.title, err)
		}
	}
	for _, f := range fronts {
		f.measureAfter()
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

// load runs everything at once until the time is over, and then until every call
// is answered.
func (s *soak) load(fronts []*front) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) // nothing is left behind then, either
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, s.duration)
	defer cancel()
	var wg sync.WaitGroup
	for _, f := range fronts {
		for range f.workers {
			wg.Go(func() { s.work(ctx, f) })
		}
		wg.Go(func() { f.watch(ctx) })
		if s.faultEvery > 0 {
			wg.Go(func() { s.breakUpstreams(ctx, f) })
		}
	}
	if s.faultEvery > 0 {
		wg.Go(func() { s.breakRemotes(ctx) })
		wg.Go(func() { s.visit(ctx) })
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

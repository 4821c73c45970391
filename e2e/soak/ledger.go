//go:build linux

package main

import (
	"fmt"
	"sync"
	"time"
)

// promise is a promise that mcpx can break.
type promise string

// The promises, each named by its violation.
const (
	wrongAnswer  promise = "wrong answer"
	noAnswer     promise = "no answer"
	doneTwice    promise = "done twice"
	lostAnswer   promise = "answer lost in mcpx"
	unexplained  promise = "failure without a fault"
	saidUnsent   promise = "said not to be sent, but was"
	harmedSteady promise = "failure of the upstream that is left alone"
	leftBehind   promise = "left behind"
	other        promise = "other"
)

// violation is a broken promise.
type violation struct {
	promise  promise
	upstream string // if the promise is about one upstream
	text     string
}

func (v violation) String() string { return string(v.promise) + ": " + v.text }

// entry is a call and its outcome, as seen by its client.
type entry struct {
	call       call
	outcome    outcome
	session    session
	begin, end time.Time
	text       string // the failure
}

func (e entry) String() string {
	return fmt.Sprintf("%s to %s: %s after %s: %.300s", e.call.Nonce, e.call.part.upstream(e.call.server), e.outcome, e.end.Sub(e.begin).Round(time.Millisecond), e.text)
}

// ledger records the outcome of every call. It is safe for concurrent use.
type ledger struct {
	mu         sync.Mutex
	entries    []entry
	count      map[outcome]int
	cut        int             // cut results that were read to their end
	reads      int             // calls to read_result
	selections int             // selects, paths and references of kept rows
	deaf       int             // calls of clients that did not read
	deafPeak   int             // the most memory that mcpx had for such a client, in KiB
	answered   int             // answers that upstreams recorded
	explained  int             // failures that a fault explains
	quick      []time.Duration // durations of small calls to the upstream without faults
	slowest    time.Duration
	violations []violation
}

func newLedger() *ledger { return &ledger{count: map[outcome]int{}} }

// note records a finished call.
func (l *ledger) note(e entry, a answer, err error) {
	took := e.end.Sub(e.begin)
	if e.outcome != ok && e.outcome != canceled && e.outcome != dropped {
		e.text = fmt.Sprintf("%.300s%.300s", a.Result, a.Error)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, e)
	l.count[e.outcome]++
	if !e.call.probe {
		l.slowest = max(l.slowest, took)
	}
	if a.rest != nil {
		l.cut++
		l.reads += a.rest.reads
	}
	switch {
	case e.outcome == wrong && a.rest != nil:
		l.broke(wrongAnswer, e, "%s, which was cut; %d reads, %v", e, a.rest.reads, a.rest.err)
	case e.outcome == wrong:
		l.broke(wrongAnswer, e, "%s, %d progress notifications", e, len(a.progress))
	case e.outcome == lost:
		l.broke(noAnswer, e, "%s %v", e, err)
	case e.call.server == steady && e.text != "":
		l.broke(harmedSteady, e, "%s", e)
	case e.call.server == steady && e.outcome == ok && e.call.MS == 0 && e.call.Bytes == 0 && !e.call.probe:
		l.quick = append(l.quick, took)
	}
}

// addSelections counts reads of kept rows.
func (l *ledger) addSelections(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.selections += n
}

// noteDeaf records the peak memory of mcpx for a client that did not read.
func (l *ledger) noteDeaf(peak int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deaf += deafCalls
	l.deafPeak = max(l.deafPeak, peak)
	if peak > deafPeak {
		l.violations = append(l.violations, violation{leftBehind, "", fmt.Sprintf("mcpx took %d MiB for a client that did not read, want %d at most", peak>>10, deafPeak>>10)})
	}
}

// violation records a broken promise that is not about one call.
func (l *ledger) violation(p promise, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.violations = append(l.violations, violation{p, "", fmt.Sprintf(format, args...)})
}

// broke records a promise that a call broke. The caller holds the mutex.
func (l *ledger) broke(p promise, e entry, format string, args ...any) {
	l.violations = append(l.violations, violation{p, e.call.part.upstream(e.call.server), fmt.Sprintf(format, args...)})
}

// broken counts the violations of a promise. The caller holds the mutex.
func (l *ledger) broken(p promise) (n int) {
	for _, v := range l.violations {
		if v.promise == p {
			n++
		}
	}
	return n
}

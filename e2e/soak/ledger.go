//go:build linux

package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// ledger notes what became of every call.
type ledger struct {
	mu         sync.Mutex
	outcomes   map[string]outcome // by nonce
	count      map[outcome]int
	doubled    int
	steady     []time.Duration // of the quick calls to the upstream that is left alone
	slowest    time.Duration
	violations []string
}

func newLedger() *ledger {
	return &ledger{outcomes: map[string]outcome{}, count: map[outcome]int{}}
}

func (l *ledger) note(c call, o outcome, a answer, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outcomes[c.nonce] = o
	l.count[o]++
	l.slowest = max(l.slowest, took)
	harmed := o != ok && o != cancelled && o != dropped
	switch {
	case o == wrong || o == lost:
		l.fault("%s: %s after %s: %.300s%.300s, %d notices", o, c.nonce, took, a.Result, a.Error, len(a.progress))
	case c.server == steady && harmed:
		l.fault("the upstream that was left alone: %s: %.300s", o, a.Result)
	case c.server == steady && o == ok && c.ms == 0 && c.bytes == 0:
		l.steady = append(l.steady, took)
	}
}

// violation notes a broken promise.
func (l *ledger) violation(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fault(format, args...)
}

func (l *ledger) fault(format string, args ...any) {
	l.violations = append(l.violations, fmt.Sprintf(format, args...))
}

// twice notes a second answer to one request.
func (l *ledger) twice(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.doubled++
	l.fault("request %s was answered twice", id)
}

// audit compares what was answered with what the upstreams have noted.
func (l *ledger) audit(record string) {
	text, err := os.ReadFile(record)
	if err != nil {
		l.violation("%v", err)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	done := map[string]int{}
	for nonce := range strings.FieldsSeq(string(text)) {
		done[nonce]++
	}
	for _, nonce := range slices.Sorted(maps.Keys(done)) {
		if done[nonce] > 1 {
			l.doubled++
			l.fault("%s reached an upstream %d times", nonce, done[nonce])
		}
		if _, known := l.outcomes[nonce]; !known {
			l.fault("%s reached an upstream, but was never sent", nonce)
		}
	}
	for nonce, o := range l.outcomes {
		switch {
		case o == ok && done[nonce] == 0:
			l.fault("%s was answered, but never reached an upstream", nonce)
		case o == unavailable && done[nonce] > 0:
			l.fault("%s reached an upstream, but was said not to be sent", nonce)
		}
	}
}

// counter counts by name.
type counter struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *counter) add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[name]++
}

package server

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
)

// TestQuota: unfinished calls and unread responses are limited.
func TestQuota(t *testing.T) {
	q := NewQuota(2, 100)
	for i := range 3 {
		if got := q.TryAcquire(); got != (i < 2) {
			t.Errorf("call %d: %v", i, got)
		}
	}
	q.Release()
	q.AddUnread(101)
	if q.TryAcquire() {
		t.Error("a call starts though too much is unread")
	}
	q.AddUnread(-101)
	if !q.TryAcquire() {
		t.Error("no call starts though there is room")
	}
}

// starts records the calls that a Quota starts, by number. A call that starts returns at
// once and is unfinished.
type starts []int

// start starts a call.
func (s *starts) start(ctx context.Context, q *Quota, n int) {
	q.Enter(1)
	q.Start(ctx, 1, func(func(response []byte)) { *s = append(*s, n) }, nil)
}

// TestQueuedCallsStartInOrder: calls that there is no room for start when others end, in the
// order of Start, and never more than may.
func TestQueuedCallsStartInOrder(t *testing.T) {
	q := NewQuota(2, 100)
	var started starts
	for n := range 6 {
		started.start(t.Context(), q, n)
	}
	steps := []struct {
		name string
		do   func()
		want []int
	}{
		{"two at first", func() {}, []int{0, 1}},
		{"one ends", q.Release, []int{0, 1, 2}},
		{"unread responses end", func() {
			q.AddUnread(101)
			q.Release()
			q.Release()
			if len(started) != 3 {
				t.Errorf("%v have started though too much is unread", started)
			}
			q.AddUnread(-101)
		}, []int{0, 1, 2, 3, 4}},
		{"one comes while one waits", func() { started.start(t.Context(), q, 6) }, []int{0, 1, 2, 3, 4}},
		{"all end", func() { q.Release(); q.Release() }, []int{0, 1, 2, 3, 4, 5, 6}},
	}
	for _, step := range steps {
		step.do()
		if !slices.Equal(started, step.want) {
			t.Errorf("%s: %v have started, want %v", step.name, started, step.want)
		}
	}
	if q.calls != 2 || len(q.queue) != 0 || q.bytes != 0 {
		t.Errorf("%d calls, %d and %d bytes queued", q.calls, len(q.queue), q.bytes)
	}
}

// TestQueuedCallsThatEndAtOnce: one that calls Release while it starts neither starts the next
// one before itself nor loses it.
func TestQueuedCallsThatEndAtOnce(t *testing.T) {
	q := NewQuota(1, 0)
	if !q.TryAcquire() {
		t.Fatal("no room")
	}
	running, most, started := 0, 0, 0
	var start func(respond func(response []byte))
	start = func(func(response []byte)) {
		running++
		most = max(most, running)
		if started++; started == 5 { // it is queued behind the others
			q.Enter(0)
			q.Start(t.Context(), 0, start, nil)
		}
		q.Release()
		running--
	}
	for range 10 {
		q.Enter(0)
		q.Start(t.Context(), 0, start, nil)
	}
	q.Release()
	if started != 11 || most != 1 || q.calls != 0 {
		t.Errorf("%d have started, %d of them in one another; %d calls are left", started, most-1, q.calls)
	}
}

// TestQueuedCallWhoseContextEnds: it starts at once and takes no other call's turn.
func TestQueuedCallWhoseContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQuota(1, 0)
		var started starts
		ctx, cancel := context.WithCancel(t.Context())
		started.start(t.Context(), q, 0)
		started.start(t.Context(), q, 1)
		started.start(ctx, q, 2)
		started.start(t.Context(), q, 3)
		cancel()
		synctest.Wait()
		if want := []int{0, 2}; !slices.Equal(started, want) {
			t.Errorf("%v have started, want %v", started, want)
		}
		started.start(ctx, q, 4) // its context has ended before
		synctest.Wait()
		for range 3 { // of 0, 2 and 4
			q.Release()
		}
		if want := []int{0, 2, 4, 1}; !slices.Equal(started, want) || len(q.queue) != 1 {
			t.Errorf("%v have started, want %v", started, want)
		}
	})
}

// TestQueueLimits: the number and the size of queued calls are limited. Whoever waits goes on
// when there is room again, or when its context ends.
func TestQueueLimits(t *testing.T) {
	for name, row := range map[string]struct {
		calls, size int // queued
		next        int // size of one that does not fit
	}{
		"calls":        {maxQueued, 0, 0},
		"bytes":        {3, maxQueuedBytes / 3, maxQueuedBytes / 3},
		"a large call": {1, 2 * maxQueuedBytes, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			q := NewQuota(1, 0)
			for i := range row.calls + 1 { // the first one runs
				if !q.Enter(row.size) {
					t.Fatalf("%s: full before call %d", name, i)
				}
				q.Start(t.Context(), row.size, func(func(response []byte)) {}, nil)
			}
			ctx, cancel := context.WithCancel(t.Context())
			waited := make(chan bool, 1)
			for i, end := range []func(){cancel, q.Release} {
				go func() { waited <- q.WaitToEnter(ctx, row.next) }()
				synctest.Wait()
				if len(waited) > 0 || q.Enter(row.next) {
					t.Errorf("%s: the queue takes one more", name)
				}
				end()
				if entered := <-waited; entered != (i == 1) {
					t.Errorf("%s: after wait %d it enters: %v", name, i, entered)
				}
				ctx = t.Context()
			}
		})
	}
}

// TestCallsThatEnter: calls that have entered, but are not started yet, count as queued. They
// need no room in the queue as far as they can start at once.
func TestCallsThatEnter(t *testing.T) {
	q := NewQuota(2, 0)
	for i, want := range []bool{true, true, false} {
		if got := q.Enter(maxQueuedBytes); got != want {
			t.Errorf("call %d enters: %v", i, got)
		}
	}
	for range 2 {
		q.Start(t.Context(), maxQueuedBytes, func(func(response []byte)) {}, nil)
	}
	for i := range maxQueued + 1 {
		if got := q.Enter(0); got != (i < maxQueued) {
			t.Fatalf("call %d enters: %v", i, got)
		}
	}
}

// TestQueuedCallThatPanics: it affects no other call.
func TestQueuedCallThatPanics(t *testing.T) {
	q := NewQuota(2, 0)
	var started starts
	for n := range 2 {
		started.start(t.Context(), q, n)
	}
	q.Enter(0)
	q.Start(t.Context(), 0, func(func(response []byte)) { panic("in a test") }, nil)
	started.start(t.Context(), q, 3)
	func() {
		defer func() { _ = recover() }()
		q.Release()
	}()
	q.Release()
	if want := []int{0, 1, 3}; !slices.Equal(started, want) {
		t.Errorf("%v have started, want %v", started, want)
	}
}

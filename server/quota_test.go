package server

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestQuota: calls and unread answers are bounded, and so are the calls that wait.
func TestQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQuota(2, 100)
		for i := range 3 {
			if got := q.TryAcquire(); got != (i < 2) {
				t.Errorf("call %d: %v", i, got)
			}
		}
		q.Release()
		release := q.Hold(make([]byte, 101))
		if q.TryAcquire() {
			t.Error("a call begins though too much is unread")
		}
		release()
		if !q.TryAcquire() {
			t.Error("no call begins though there is room")
		}
		const waiting = 3
		ended := make(chan error, waiting)
		for range waiting {
			go func() { ended <- q.Acquire(t.Context(), maxQueuedBytes/waiting) }()
		}
		synctest.Wait()
		if err := q.Acquire(t.Context(), maxQueuedBytes/waiting); !errors.Is(err, errNoRoom) {
			t.Errorf("more bytes wait than may: %v", err)
		}
		for range waiting {
			q.Release()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		roomy, over := NewQuota(2, 100), context.Canceled
		cancelled, stop := context.WithCancelCause(t.Context())
		stop(over)
		if err := roomy.Acquire(cancelled, 0); !errors.Is(err, over) || roomy.calls != 0 {
			t.Errorf("a call begins though its context has ended: %v", err)
		}
		go func() { ended <- q.Acquire(ctx, 0) }()
		synctest.Wait()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) || q.queued != 0 || q.bytes != 0 || q.calls != 2 {
			t.Errorf("%v, and the quota has %d and %d waiting, %d calls", err, q.queued, q.bytes, q.calls)
		}
	})
}

// TestABatchKeepsToTheQuota: the requests of a batch run at the same time as far as
// the client's quota allows, and at least one does.
func TestABatchKeepsToTheQuota(t *testing.T) {
	for most, want := range map[int]int{1: 1, 3: 3, 100: 20} {
		synctest.Test(t, func(t *testing.T) {
			c := newClient("one", nil)
			c.Quota = NewQuota(most, 0)
			c.Quota.TryAcquire() // the batch itself
			var running, peak atomic.Int32
			var parts []func(reply func(answer []byte))
			for range 20 {
				parts = append(parts, func(reply func(answer []byte)) {
					now := running.Add(1)
					for old := peak.Load(); now > old && !peak.CompareAndSwap(old, now); old = peak.Load() {
					}
					<-time.After(time.Second)
					running.Add(-1)
					reply([]byte("{}"))
				})
			}
			if n := len(c.runBatch(parts)); n != 20 || peak.Load() != int32(want) || c.Quota.calls != 1 {
				t.Errorf("quota %d: %d answers, %d at the same time, %d calls are left", most, n, peak.Load(), c.Quota.calls)
			}
		})
	}
}

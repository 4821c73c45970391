package server

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// TestQuota: calls, unread answers and waiting calls are limited.
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

package link

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// TestIntake: many large messages at the same time are all read, and their memory is
// bounded.
func TestIntake(t *testing.T) {
	const limit = 64 << 20
	in := NewIntake(limit)
	var held, most atomic.Int64
	var all sync.WaitGroup
	for range 500 {
		all.Go(func() {
			r := in.reserve(t.Context())
			final, has := int64(rand.IntN(limit)>>rand.IntN(12)), int64(0)
			for size := int64(smallMessage + 1); size < final; size *= 2 {
				if err := r.grow(int(size)); err != nil {
					t.Error(err)
				}
				now := held.Add(size - has)
				has = size
				for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
				}
				runtime.Gosched()
			}
			held.Add(-has)
			r.release()
		})
	}
	all.Wait()
	if got := most.Load(); got > 32<<20+4*8<<20+limit+500*smallMessage {
		t.Errorf("%d MiB at a time", got>>20)
	}
	for i, s := range in.sizes {
		if len(s.slots) != 0 {
			t.Errorf("%d slots of size %d are never released", len(s.slots), i)
		}
	}
}

// TestIntakeWaits: a message without a place waits for one, or for the end of its
// context.
func TestIntakeWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 64 << 20
		in := NewIntake(limit)
		first := in.reserve(t.Context())
		if err := first.grow(limit); err != nil {
			t.Fatal(err)
		}
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		var ended, waited error = nil, errors.New("waiting")
		go func() { ended = in.reserve(ctx).grow(limit) }()
		go func() { waited = in.reserve(t.Context()).grow(limit) }()
		synctest.Wait()
		cancel(enough)
		synctest.Wait()
		if !errors.Is(ended, enough) || waited == nil {
			t.Errorf("no place: %v, %v", ended, waited)
		}
		first.release()
		synctest.Wait()
		if waited != nil {
			t.Errorf("a place is free, but %v", waited)
		}
	})
}

// TestReadAll: it reads everything, whatever size was announced, and stops soon after
// the limit. Buffers are rounded up to a power of two.
func TestReadAll(t *testing.T) {
	const limit = 300_000
	for _, size := range []int{0, 1, 511, 512, 100_000, limit, limit + 1, 2 * limit} {
		for _, announced := range []int{-1, 0, size, limit} {
			in := NewIntake(limit).reserve(t.Context())
			text := strings.Repeat("x", size)
			got, err := in.readAll(io.LimitReader(strings.NewReader(text), int64(size)), limit, min(announced, limit))
			if want := text[:min(size, limit+1)]; err != nil || string(got) != want || len(got) > limit+1 || cap(got) > 2*limit {
				t.Errorf("%d bytes, %d announced: %d read, capacity %d, %v", size, announced, len(got), cap(got), err)
			}
		}
	}
}

package work

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

const piece = 2 << 20 // large work

// newBudget returns a budget that has room for a number of large pieces.
func newBudget(pieces, turns int) *Budget {
	b := New(0)
	b.large = newLane(pieces*piece, turns)
	return b
}

// start acquires room in a goroutine, and returns the lease once there is one.
func start(t *testing.T, b *Budget, p Piece) (granted func() *Lease) {
	var lease atomic.Pointer[Lease]
	go func() {
		if l, err := b.Acquire(t.Context(), p); err == nil {
			lease.Store(l)
		}
	}()
	synctest.Wait()
	return func() *Lease {
		synctest.Wait()
		return lease.Load()
	}
}

func TestWorkWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(2, 10)
		first := start(t, b, Piece{Client: "a", Bytes: piece})
		second := start(t, b, Piece{Client: "a", Bytes: piece})
		third := start(t, b, Piece{Client: "a", Bytes: piece})
		if first() == nil || second() == nil {
			t.Fatal("work that has room waits")
		}
		if third() != nil {
			t.Error("a third piece runs")
		}
		first().Release()
		first().Release() // safe twice
		if third() == nil {
			t.Error("the third piece still waits")
		}
		if b.Peak() != 2*piece {
			t.Errorf("peak %d", b.Peak())
		}
		second().Release()
		third().Release()
		checkEmpty(t, b)
	})
}

// checkEmpty checks that nothing is counted any more.
func checkEmpty(t *testing.T, b *Budget) {
	t.Helper()
	for _, l := range []*lane{&b.small, &b.large} {
		if l.used != 0 || l.running != 0 || l.clients.Len() != 0 || len(l.queues) != 0 || len(l.values) != 0 {
			t.Errorf("left: %d bytes, %d running, %d clients, %d queues, %d values", l.used, l.running, l.clients.Len(), len(l.queues), len(l.values))
		}
	}
}

func TestTooLargeWorkRunsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(2, 10)
		first := start(t, b, Piece{Client: "a", Bytes: piece})
		huge := start(t, b, Piece{Client: "b", Bytes: 9 * piece, Key: 1, KeyBytes: piece})
		later := start(t, b, Piece{Client: "c", Bytes: piece})
		if huge() != nil || later() != nil {
			t.Fatal("work runs together with huge work, or before it")
		}
		first().Release()
		if huge() == nil || later() != nil {
			t.Fatal("huge work does not run alone")
		}
		huge().Release()
		if later() == nil {
			t.Fatal("work waits for nothing")
		}
		later().Release()
		checkEmpty(t, b)
	})
}

func TestClientsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(10, 1)
		busy := start(t, b, Piece{Client: "x", Bytes: piece})
		var order []string
		var mu sync.Mutex
		for _, client := range strings.Split("a a a a b c b", " ") {
			go func() {
				lease, err := b.Acquire(t.Context(), Piece{Client: client, Bytes: piece})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, client)
				mu.Unlock()
				lease.Release()
			}()
			synctest.Wait()
		}
		busy().Release()
		synctest.Wait()
		if got := strings.Join(order, " "); got != "a b c a b a a" {
			t.Errorf("order %s", got)
		}
		checkEmpty(t, b)
	})
}

func TestWaitingEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(1, 10)
		busy := start(t, b, Piece{Client: "a", Bytes: piece})
		why := errors.New("canceled by the client")
		ctx, cancel := context.WithCancelCause(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := b.Acquire(ctx, Piece{Client: "a", Bytes: 5 * piece, Key: "k"})
			failed <- err
		}()
		synctest.Wait()
		cancel(why)
		if err := <-failed; !errors.Is(err, why) {
			t.Errorf("got %v", err)
		}
		if _, err := b.Acquire(ctx, Piece{Client: "a"}); !errors.Is(err, why) {
			t.Errorf("work of a canceled call starts: %v", err)
		}
		busy().Release()
		checkEmpty(t, b)
	})
}

func TestSmallWorkDoesNotWaitForLargeWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(8 * piece)
		large := start(t, b, Piece{Client: "a", Bytes: 100 * piece})
		small := start(t, b, Piece{Client: "a", Bytes: smallPiece})
		if large() == nil || small() == nil {
			t.Fatal("small work waits")
		}
		large().Release()
		small().Release()
		checkEmpty(t, b)
	})
}

func TestIdleWorkUsesNoProcessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(2, 1)
		first := start(t, b, Piece{Client: "a", Bytes: piece})
		second := start(t, b, Piece{Client: "a", Bytes: piece})
		if second() != nil {
			t.Fatal("two pieces use one processor")
		}
		first().Idle()
		if second() == nil {
			t.Fatal("idle work uses the processor")
		}
		third := start(t, b, Piece{Client: "a", Bytes: piece})
		second().Idle()
		if third() != nil {
			t.Error("the memory of idle work is free")
		}
		for _, l := range []func() *Lease{first, second, third} {
			l().Release()
		}
		checkEmpty(t, b)
	})
}

// TestValuesAreShared: work with the same key builds its value once, counts it once, and
// drops it at the end.
func TestValuesAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(8, 2)
		busy := start(t, b, Piece{Client: "a", Bytes: 8 * piece})
		built := 0
		for i := range 20 {
			go func() {
				lease, err := b.Acquire(t.Context(), Piece{Client: fmt.Sprint("client", i%3), Bytes: piece, Key: "k", KeyBytes: 4 * piece})
				if err != nil {
					t.Error(err)
					return
				}
				defer lease.Release()
				got, err := lease.Value(t.Context(), func() (any, error) { built++; return built, nil })
				if got != 1 || err != nil {
					t.Errorf("got %v, %v", got, err)
				}
			}()
		}
		synctest.Wait()
		b.peak = 0
		busy().Release()
		synctest.Wait()
		if built != 1 {
			t.Errorf("built %d times", built)
		}
		if b.Peak() != 6*piece {
			t.Errorf("%d bytes at most", b.Peak())
		}
		checkEmpty(t, b)
	})
}

func TestValueIsBuiltAgainAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(4, 2)
		p := Piece{Client: "a", Bytes: piece, Key: "k"}
		first, second := start(t, b, p)(), start(t, b, p)()
		if _, err := first.Value(t.Context(), func() (any, error) { return nil, context.Canceled }); err == nil {
			t.Error("no error")
		}
		if got, err := second.Value(t.Context(), func() (any, error) { return 7, nil }); got != 7 || err != nil {
			t.Errorf("got %v, %v", got, err)
		}
		first.Release()
		second.Release()
		checkEmpty(t, b)
	})
}

// TestWaitingWorkHoldsNoValue: a value that only waiting work needs is dropped to make room for
// other work.
func TestWaitingWorkHoldsNoValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(4, 1)
		k := Piece{Client: "a", Bytes: piece, Key: "k", KeyBytes: 2 * piece}
		first := start(t, b, k)
		other := start(t, b, Piece{Client: "b", Bytes: 4 * piece})
		second := start(t, b, k)
		first().Release()
		if other() == nil || second() != nil {
			t.Fatal("the next client does not run alone")
		}
		other().Release()
		if second() == nil {
			t.Fatal("work waits for nothing")
		}
		second().Release()
		if b.Peak() != 4*piece {
			t.Errorf("peak %d", b.Peak())
		}
		checkEmpty(t, b)
	})
}

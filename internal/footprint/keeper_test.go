package footprint

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestKeeper: it trims once it is quiet, not while something moves, and again
// after the next move.
func TestKeeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		k := NewKeeper(func() {})
		go k.Run(ctx)
		for range 10 {
			k.Moved()
			time.Sleep(quiet / 2)
			if k.still.Load() {
				t.Fatal("trimmed while something moved")
			}
		}
		for range 3 {
			time.Sleep(3 * quiet)
			if !k.still.Load() {
				t.Fatal("not trimmed")
			}
			k.Moved()
			synctest.Wait()
			if k.still.Load() {
				t.Fatal("still, though something moved")
			}
		}
		cancel()
		synctest.Wait()
	})
}

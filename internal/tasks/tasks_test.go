package tasks

import (
	"sync"
	"sync/atomic"
	"testing"
)

// TestClose: what was started is over when Close returns, and nothing starts
// after that, whoever tries to start something at the same time.
func TestClose(t *testing.T) {
	for range 200 {
		var g Group
		var running atomic.Int32
		var starting sync.WaitGroup
		for range 4 {
			starting.Go(func() {
				for g.Go(func() {
					running.Add(1)
					defer running.Add(-1)
				}) {
				}
			})
		}
		g.Close()
		g.Close()
		if n := running.Load(); n != 0 {
			t.Fatalf("%d goroutines run after Close", n)
		}
		starting.Wait()
	}
}

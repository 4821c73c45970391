// Package footprint keeps what an idle mcpx holds of a machine's memory small.
// Starting and working touch most of the program and leave garbage behind; a
// process that then waits for hours need not hold on to either.
package footprint

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

// Trim gives back what is not needed now: free memory, and the pages of the
// program itself, which come back from its file when they are used again.
func Trim() {
	runtime.GC() // pools give up what they hold at the second collection
	debug.FreeOSMemory()
	dropPages()
}

// spare is how much free memory a process that works may hold on to.
const spare = 2 << 20

// ease gives back free memory, if it is worth the trouble: the runtime does so by
// itself, but takes minutes.
func ease() {
	free := []metrics.Sample{{Name: "/memory/classes/heap/free:bytes"}}
	if metrics.Read(free); free[0].Value.Kind() == metrics.KindUint64 && free[0].Value.Uint64() > spare {
		debug.FreeOSMemory()
	}
}

// quiet is how long nothing must have moved.
const quiet = time.Second

// Keeper trims the process whenever it has become quiet. While it is, the keeper
// costs nothing.
type Keeper struct {
	moves atomic.Int64
	still atomic.Bool   // it has trimmed, and waits for a move
	wake  chan struct{} // capacity 1
	drop  func()        // drops what is kept for later
}

// NewKeeper returns a Keeper that does nothing until Run. Before it trims, it
// calls drop. It is made before anything is loaded beside the program.
func NewKeeper(drop func()) *Keeper {
	lookForPages()
	return &Keeper{wake: make(chan struct{}, 1), drop: drop}
}

// Moved notes that the process has something to do.
func (k *Keeper) Moved() {
	k.moves.Add(1)
	if k.still.Load() && k.still.CompareAndSwap(true, false) {
		k.wake <- struct{}{}
	}
}

// garbage is how much of it may lie about, in percent of what is used. A call
// leaves little, and what mcpx uses is small: to collect it twice as often as
// usual costs next to nothing.
const garbage = 50

// Run trims until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	if os.Getenv("GOGC") == "" {
		defer debug.SetGCPercent(debug.SetGCPercent(garbage))
	}
	for {
		if !k.rest(ctx) {
			return
		}
		k.drop()
		Trim()
		k.still.Store(true)
		select {
		case <-k.wake:
		case <-ctx.Done():
			return
		}
	}
}

// rest waits until nothing has moved for a while; false if ctx ends before. The
// pages of the program are dropped meanwhile, too: what it has used once it may
// not use again, and what it works with is back at once.
func (k *Keeper) rest(ctx context.Context) bool {
	tick := time.NewTicker(quiet)
	defer tick.Stop()
	for last := int64(-1); ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
		moves := k.moves.Load()
		if moves == last {
			return true
		}
		last = moves
		ease()
		dropPages()
	}
}

package app

import (
	"context"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"sync/atomic"
	"time"

	"mcpx/internal/rpc"
)

// releaser returns memory to the system: all that is not in use a second after the
// start and after the last use, and a part of it every second while there is any. A use is
// a call, or a client that reads or drops much that was unread. Without use, the releaser
// does nothing.
type releaser struct {
	timer   *time.Timer
	pending atomic.Bool // the timer runs
	start   time.Time
	lastUse atomic.Int64 // nanoseconds since start
}

const (
	releaseDelay = time.Second

	// spareBytes is the free memory that a busy mcpx keeps.
	spareBytes = 2 << 20
)

func newReleaser() *releaser {
	r := &releaser{timer: time.NewTimer(releaseDelay), start: time.Now()}
	r.pending.Store(true)
	return r
}

// releaseSoon notes a use, and makes sure that memory is released after it. It may be called
// concurrently.
func (r *releaser) releaseSoon() {
	r.lastUse.Store(int64(time.Since(r.start)))
	if !r.pending.Load() && r.pending.CompareAndSwap(false, true) {
		r.timer.Reset(releaseDelay)
	}
}

// run releases memory until ctx ends.
func (r *releaser) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.timer.C:
		}
		quiet := time.Since(r.start) - time.Duration(r.lastUse.Load())
		if quiet < releaseDelay {
			releaseSome()
			r.timer.Reset(releaseDelay - quiet)
			continue
		}
		r.pending.Store(false)
		releaseMemory()
	}
}

// releaseSome returns memory that a busy mcpx can do without.
func releaseSome() {
	free := []runtimemetrics.Sample{{Name: "/memory/classes/heap/free:bytes"}}
	if runtimemetrics.Read(free); free[0].Value.Kind() == runtimemetrics.KindUint64 && free[0].Value.Uint64() > spareBytes {
		debug.FreeOSMemory()
	}
	dropPages()
}

// releaseMemory returns what is not in use: free buffers, garbage, and pages of the
// executable, which the system reads again when they are used. In BenchmarkMemory an idle
// mcpx holds 9 MB instead of 22; most of the difference is the executable.
func releaseMemory() {
	rpc.DropBuffers()
	debug.FreeOSMemory()
	dropPages()
}

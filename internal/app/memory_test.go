package app

import (
	"context"
	"runtime"
	runtimemetrics "runtime/metrics"
	"testing"
	"testing/synctest"
	"time"
)

// TestReleaser: memory is released a second after the start and after the last call, and
// then not again.
func TestReleaser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r := newReleaser()
		go r.run(ctx)
		for range 3 {
			if !r.pending.Load() {
				t.Fatal("no release is pending")
			}
			time.Sleep(releaseDelay)
			synctest.Wait()
			if r.pending.Load() {
				t.Fatal("nothing was released")
			}
			r.releaseSoon()
			time.Sleep(releaseDelay / 2)
			r.releaseSoon()
		}
		cancel()
		synctest.Wait()
	})
}

// TestReleaseMemory: memory that was used and is free again is returned.
func TestReleaseMemory(t *testing.T) {
	free := func() uint64 {
		s := []runtimemetrics.Sample{{Name: "/memory/classes/heap/free:bytes"}}
		runtimemetrics.Read(s)
		return s[0].Value.Uint64()
	}
	large := make([]byte, 16<<20)
	for i := range large {
		large[i] = 1
	}
	runtime.KeepAlive(large)
	runtime.GC()
	before := free()
	if before < 8<<20 {
		t.Fatalf("%d bytes are free, too few to tell", before)
	}
	releaseMemory()
	if after := free(); after > before/2 { // the runtime keeps a little in its caches
		t.Errorf("%d of %d bytes are free, and kept", after, before)
	}
}

package footprint

import (
	"runtime"
	"runtime/metrics"
	"testing"
)

// TestEase: memory that was used and is free again is given back.
func TestEase(t *testing.T) {
	free := func() uint64 {
		s := []metrics.Sample{{Name: "/memory/classes/heap/free:bytes"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	large := make([]byte, 8*spare)
	for i := range large {
		large[i] = 1
	}
	runtime.KeepAlive(large)
	runtime.GC()
	before := free()
	if before < 4*spare {
		t.Fatalf("%d bytes are free, too few to tell", before)
	}
	ease()
	if after := free(); after > before/2 { // a little more than spare may stay, in caches of the runtime
		t.Errorf("%d of %d bytes are free, and kept", after, before)
	}
}

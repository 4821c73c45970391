package store

import (
	"fmt"
	"testing"
	"time"
)

// TestMemoryIsBounded: a client can end as many sessions as it likes.
func TestMemoryIsBounded(t *testing.T) {
	m := NewMemory()
	for i := range 2 * maxValues {
		_ = m.Set(t.Context(), fmt.Sprint(i), nil, time.Hour+time.Duration(i))
	}
	if len(m.values) > maxValues || len(m.values) < maxValues*8/10 {
		t.Errorf("%d values are kept", len(m.values))
	}
	if v, _ := m.Get(t.Context(), fmt.Sprint(2*maxValues-1)); v == nil {
		t.Error("the value that expires last is gone")
	}
	lock, _ := m.Lock(t.Context(), "key")
	lock.Unlock()
	if len(m.locks) != 0 {
		t.Errorf("%d locks are kept", len(m.locks))
	}
}

package store

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// sweepEvery is the number of writes after which values that have expired are removed.
const sweepEvery = 1000

// maxValues bounds the values in memory. Above it, those that expire first are removed.
const maxValues = 20_000

// Memory is the Store of one process.
type Memory struct {
	mu        sync.Mutex
	values    map[string]value
	locks     map[string]chan struct{} // by key, while it is locked; closed by unlock
	listeners map[*listener]struct{}
	writes    int
}

type value struct {
	bytes []byte
	until time.Time
}

// listener receives messages, one after the other: receiving is locked meanwhile.
type listener struct {
	receiving sync.Mutex
	receive   func(message []byte)
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{values: map[string]value{}, locks: map[string]chan struct{}{}, listeners: map[*listener]struct{}{}}
}

// Get implements Store.
func (m *Memory) Get(_ context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return bytes.Clone(m.get(key)), nil
}

// Part implements Store.
func (m *Memory) Part(_ context.Context, key string, from, to int) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.get(key)
	if to = min(to, len(all)); from >= to {
		return nil, nil
	}
	return bytes.Clone(all[from:to]), nil
}

// get returns the value of a key, nil if there is none. The caller holds mu.
func (m *Memory) get(key string) []byte {
	v, ok := m.values[key]
	if !ok || time.Now().After(v.until) {
		return nil
	}
	return v.bytes
}

// Set implements Store.
func (m *Memory) Set(_ context.Context, key string, bytes []byte, keep time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.set(key, bytes, keep)
	return nil
}

// Add implements Store.
func (m *Memory) Add(_ context.Context, key string, bytes []byte, keep time.Duration) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.get(key) != nil {
		return false, nil
	}
	m.set(key, bytes, keep)
	return true, nil
}

// set replaces the value of a key. The caller holds mu.
func (m *Memory) set(key string, bytes []byte, keep time.Duration) {
	now := time.Now()
	m.values[key] = value{append([]byte{}, bytes...), now.Add(keep)}
	if m.writes++; m.writes%sweepEvery == 0 || len(m.values) > maxValues {
		m.sweep(now)
	}
}

// sweep removes expired values. If there are still too many, it removes a tenth: those that
// expire first. The caller holds mu.
func (m *Memory) sweep(now time.Time) {
	maps.DeleteFunc(m.values, func(_ string, v value) bool { return now.After(v.until) })
	if len(m.values) <= maxValues {
		return
	}
	keys := slices.SortedFunc(maps.Keys(m.values), func(a, b string) int { return m.values[a].until.Compare(m.values[b].until) })
	for _, key := range keys[:maxValues/10] {
		delete(m.values, key)
	}
}

// Keep implements Store.
func (m *Memory) Keep(_ context.Context, key string, keep time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.get(key) != nil {
		m.values[key] = value{m.values[key].bytes, time.Now().Add(keep)}
	}
	return nil
}

// Delete implements Store.
func (m *Memory) Delete(_ context.Context, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.values, key)
	return nil
}

// Lock implements Store. Waiters get the lock in any order. It does not end by itself: a
// process that dies takes its store with it.
func (m *Memory) Lock(ctx context.Context, key string) (Lock, error) {
	for {
		m.mu.Lock()
		held := m.locks[key]
		if held == nil {
			m.locks[key] = make(chan struct{})
		}
		m.mu.Unlock()
		if held == nil {
			return m.held(key), nil
		}
		select {
		case <-held:
		case <-ctx.Done():
			return Lock{}, context.Cause(ctx)
		}
	}
}

// held returns the lock of a key that has just been locked.
func (m *Memory) held(key string) Lock {
	set := func(ctx context.Context, value []byte, keep time.Duration) error {
		if len(value) == 0 {
			return m.Delete(ctx, key)
		}
		return m.Set(ctx, key, value, keep)
	}
	return Lock{set, sync.OnceFunc(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		close(m.locks[key])
		delete(m.locks, key)
	})}
}

// Publish implements Store. It returns when every listener has the message.
func (m *Memory) Publish(_ context.Context, message []byte) error {
	m.mu.Lock()
	listeners := slices.Collect(maps.Keys(m.listeners))
	m.mu.Unlock()
	for _, l := range listeners {
		l.receiving.Lock()
		l.receive(bytes.Clone(message))
		l.receiving.Unlock()
	}
	return nil
}

// Listen implements Store.
func (m *Memory) Listen(ctx context.Context, receive func(message []byte)) {
	l := &listener{receive: receive}
	m.mu.Lock()
	m.listeners[l] = struct{}{}
	m.mu.Unlock()
	<-ctx.Done()
	m.mu.Lock()
	delete(m.listeners, l)
	m.mu.Unlock()
}

// Err implements Store.
func (m *Memory) Err() error { return nil }

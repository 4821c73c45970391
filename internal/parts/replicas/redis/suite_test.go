package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpx/internal/mcptest"
	"mcpx/internal/parts/replicas/storetest"
	"mcpx/internal/store"
)

// waitTime bounds how long a test waits, on a busy machine.
const waitTime = 30 * time.Second

// stores are the stores that every test of the suite runs over. open returns a function
// that opens one store as another replica would.
var stores = []struct {
	name string
	open func(t *testing.T) func() store.Store
}{
	{"memory", func(*testing.T) func() store.Store {
		m := store.NewMemory()
		return func() store.Store { return m }
	}},
	{"redis", func(t *testing.T) func() store.Store {
		s := storetest.Start(t)
		t.Cleanup(func() { checkExpiry(t, s) })
		return opener(t, s.Address())
	}},
	{"cluster", func(t *testing.T) func() store.Store {
		nodes := startCluster(t, 3)
		for _, s := range nodes {
			t.Cleanup(func() { checkExpiry(t, s) })
		}
		return opener(t, nodes[0].Address()+"?addr="+nodes[0].Host()+"&prefix=other")
	}},
	{"a cluster of one node, which does not know its address", func(t *testing.T) func() store.Store {
		s := startCluster(t, 1)[0]
		t.Cleanup(func() { checkExpiry(t, s) })
		return opener(t, s.Address()+"?addr="+s.Host())
	}},
	{"sentinel", func(t *testing.T) func() store.Store {
		s := storetest.Start(t)
		t.Cleanup(func() { checkExpiry(t, s) })
		return opener(t, startSentinels(t, s, 1)[0].Address()+"?master_name=main")
	}},
}

func opener(t *testing.T, address string) func() store.Store {
	return func() store.Store {
		r, err := Open(address, Options{Limit: waitTime})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Close() })
		return r
	}
}

// checkExpiry checks that the test has left no key that never expires.
func checkExpiry(t *testing.T, s *storetest.Server) {
	t.Helper()
	if keys := s.Eternal(); keys != "" {
		t.Errorf("keys that never expire: %s", keys)
	}
}

// await waits until done returns true.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(waitTime); time.Now().Before(end); <-time.After(2 * time.Millisecond) {
		if done() {
			return
		}
	}
	t.Fatalf("%s: still not there after %s", what, waitTime)
}

// TestStore runs the suite over each kind of store.
func TestStore(t *testing.T) {
	for _, kind := range stores {
		t.Run(kind.name, func(t *testing.T) {
			mcptest.NothingLeft(t)
			open := kind.open(t)
			for _, test := range []struct {
				name string
				run  func(t *testing.T, a, b store.Store)
			}{
				{"values", testValues},
				{"parts", testParts},
				{"expiry", testExpiry},
				{"locks", testLocks},
				{"a lock that is not released", testWaiting},
				{"messages", testMessages},
			} {
				t.Run(test.name, func(t *testing.T) { test.run(t, open(), open()) })
			}
		})
	}
}

// must returns a value of a request that must not fail.
func must[T any](t *testing.T) func(value T, err error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func testValues(t *testing.T, a, b store.Store) {
	ctx := t.Context()
	get, add := must[[]byte](t), must[bool](t)
	if got := get(b.Get(ctx, "values")); got != nil {
		t.Errorf("a key without a value has %q", got)
	}
	if !add(a.Add(ctx, "values", []byte("one"), time.Minute)) || add(b.Add(ctx, "values", []byte("two"), time.Minute)) {
		t.Error("the first Add must succeed, the second must not")
	}
	got := get(b.Get(ctx, "values"))
	if string(got) != "one" {
		t.Errorf("got %q", got)
	}
	got[0] = 'X'
	if again := get(b.Get(ctx, "values")); string(again) != "one" {
		t.Errorf("a change of a returned value changes the stored one: %q", again)
	}
	value := []byte("\x00\xff bytes")
	if err := b.Set(ctx, "values", value, time.Minute); err != nil {
		t.Fatal(err)
	}
	value[0] = 'X'
	if got := get(a.Get(ctx, "values")); string(got) != "\x00\xff bytes" {
		t.Errorf("got %q", got)
	}
	if err := errors.Join(a.Delete(ctx, "values"), a.Delete(ctx, "values")); err != nil {
		t.Fatal(err)
	}
	if got := get(b.Get(ctx, "values")); got != nil {
		t.Errorf("a deleted value is %q", got)
	}
	if err := errors.Join(a.Err(), b.Err()); err != nil {
		t.Error(err)
	}
}

func testParts(t *testing.T, a, b store.Store) {
	ctx := t.Context()
	if err := a.Set(ctx, "parts", []byte("0123456789"), time.Minute); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		key      string
		from, to int
		want     string
	}{
		{"parts", 0, 10, "0123456789"}, {"parts", 2, 5, "234"}, {"parts", 8, 100, "89"},
		{"parts", 10, 20, ""}, {"parts", 0, 0, ""}, {"parts", 5, 4, ""}, {"other", 0, 5, ""},
	} {
		got := must[[]byte](t)(b.Part(ctx, row.key, row.from, row.to))
		if string(got) != row.want || row.want == "" && got != nil {
			t.Errorf("%s from %d to %d: %q, want %q", row.key, row.from, row.to, got, row.want)
		}
	}
}

func testExpiry(t *testing.T, a, b store.Store) {
	ctx := t.Context()
	get := must[[]byte](t)
	for key, keep := range map[string]time.Duration{"brief": 20 * time.Millisecond, "none": 0, "negative": -1, "long": time.Minute, "kept": time.Minute} {
		if err := a.Set(ctx, key, []byte("value"), keep); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(b.Keep(ctx, "kept", 20*time.Millisecond), b.Keep(ctx, "nothing", time.Minute)); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"brief", "none", "negative", "kept", "nothing"} {
		await(t, "the end of "+key, func() bool { return get(b.Get(ctx, key)) == nil })
	}
	if got := get(b.Get(ctx, "long")); string(got) != "value" {
		t.Errorf("got %q", got)
	}
	if !must[bool](t)(a.Add(ctx, "brief", []byte("value"), time.Minute)) {
		t.Error("a value that has expired cannot be added again")
	}
}

// testLocks lets many goroutines of two replicas change a value under its lock.
func testLocks(t *testing.T, a, b store.Store) {
	ctx := t.Context()
	const users, times = 4, 10
	var all sync.WaitGroup
	for i := range users {
		s := []store.Store{a, b}[i%2]
		all.Go(func() {
			for range times {
				lock, err := s.Lock(ctx, "count")
				if err != nil {
					t.Error(err)
					return
				}
				value, err := s.Get(ctx, "count")
				err = errors.Join(err, lock.Set(ctx, append(value, '+'), time.Minute))
				lock.Unlock()
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got := must[[]byte](t)(a.Get(ctx, "count")); string(got) != strings.Repeat("+", users*times) {
		t.Errorf("%d of %d changes are there", len(got), users*times)
	}
	lock := must[store.Lock](t)(a.Lock(ctx, "count"))
	defer lock.Unlock()
	if err := lock.Set(ctx, nil, 0); err != nil {
		t.Error(err)
	}
	if got := must[[]byte](t)(b.Get(ctx, "count")); got != nil {
		t.Errorf("a deleted value is %q", got)
	}
}

// testWaiting checks that a lock excludes others until it is released, and only once.
func testWaiting(t *testing.T, a, b store.Store) {
	first := must[store.Lock](t)(a.Lock(t.Context(), "held"))
	reason := errors.New("the caller gave up")
	for _, s := range []store.Store{a, b} {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(50*time.Millisecond, func() { cancel(reason) })
		if _, err := s.Lock(ctx, "held"); !errors.Is(err, reason) {
			t.Errorf("a held lock: %v", err)
		}
	}
	must[store.Lock](t)(b.Lock(t.Context(), "another")).Unlock()
	first.Unlock()
	second := must[store.Lock](t)(b.Lock(t.Context(), "held"))
	first.Unlock() // is not the holder's
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := a.Lock(ctx, "held"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a lock that was released twice: %v", err)
	}
	second.Unlock()
}

// testMessages checks that each replica receives the messages of all in order.
func testMessages(t *testing.T, a, b store.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	t.Cleanup(all.Wait)
	t.Cleanup(cancel)
	var received [2]chan string
	for i, s := range []store.Store{a, b} {
		received[i] = make(chan string, 1000)
		all.Go(func() { s.Listen(ctx, func(message []byte) { received[i] <- string(message) }) })
		await(t, "the first message", func() bool {
			_ = a.Publish(ctx, []byte("hello"))
			select {
			case <-received[i]:
				return true
			case <-time.After(20 * time.Millisecond):
				return false
			}
		})
	}
	for i := range 20 {
		if err := []store.Store{a, b}[i%2].Publish(ctx, fmt.Append(nil, "message ", i)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range received {
		for n := 0; n < 20; {
			select {
			case got := <-received[i]:
				if got == "hello" {
					continue
				}
				if want := fmt.Sprint("message ", n); got != want {
					t.Fatalf("got %q, want %q", got, want)
				}
				n++
			case <-time.After(waitTime):
				t.Fatalf("message %d is missing", n)
			}
		}
	}
}

package redis

import (
	"context"
	"errors"
	"testing"
	"time"

	"mcpx/internal/mcptest"
	"mcpx/internal/parts/replicas/storetest"
	"mcpx/internal/store"
)

// TestLostLock checks that a holder whose lock has ended changes nothing.
func TestLostLock(t *testing.T) {
	server := storetest.Start(t)
	r := opener(t, server.Address())()
	ctx := t.Context()
	first := must[store.Lock](t)(r.Lock(ctx, "key"))
	server.Do("DEL mcpx:lock:{mcpx:key}") // as if LockTime were over
	second := must[store.Lock](t)(r.Lock(ctx, "key"))
	if err := second.Set(ctx, []byte("new"), time.Minute); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{"Set": first.Set(ctx, []byte("old"), time.Minute), "Delete": first.Set(ctx, nil, 0)} {
		if !errors.Is(err, store.ErrLockLost) {
			t.Errorf("%s: %v", name, err)
		}
	}
	first.Unlock()
	if err := second.Set(ctx, []byte("newer"), time.Minute); err != nil {
		t.Errorf("the first holder has ended the lock of the second: %v", err)
	}
	if got := must[[]byte](t)(r.Get(ctx, "key")); string(got) != "newer" {
		t.Errorf("got %q", got)
	}
}

// TestReleasedLock: a lock is free soon after an outage, even if its holder does not know that
// it holds it, or could not release it.
func TestReleasedLock(t *testing.T) {
	for name, leave := range map[string]func(t *testing.T, s *storetest.Server, r *Store){
		"no response to the request": func(t *testing.T, s *storetest.Server, r *Store) {
			s.Pause()
			if _, err := r.Lock(t.Context(), "key"); err == nil {
				t.Error("a server that hangs gives a lock")
			}
		},
		"the caller does not wait for the response": func(t *testing.T, s *storetest.Server, r *Store) {
			ctx, cancel := context.WithTimeout(t.Context(), store.Limit/10)
			defer cancel()
			s.Pause()
			if _, err := r.Lock(ctx, "key"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		},
		"a release while the store is down": func(t *testing.T, s *storetest.Server, r *Store) {
			lock := must[store.Lock](t)(r.Lock(t.Context(), "key"))
			s.Pause()
			await(t, "a failure", func() bool { _, err := r.Get(t.Context(), "key"); return err != nil })
			lock.Unlock()
		},
	} {
		t.Run(name, func(t *testing.T) {
			mcptest.NothingLeft(t)
			server := storetest.Start(t)
			r, _ := openLogged(t, server.Address())
			must[store.Lock](t)(r.Lock(t.Context(), "key")).Unlock() // connects
			leave(t, server, r)
			server.Resume()
			ctx, cancel := context.WithTimeout(t.Context(), store.LockTime/2)
			defer cancel()
			other, err := opener(t, server.Address())().Lock(ctx, "key")
			if err != nil {
				t.Fatalf("another replica: %v", err)
			}
			other.Unlock()
		})
	}
}

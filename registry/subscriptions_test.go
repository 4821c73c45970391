package registry

import (
	"errors"
	"fmt"
	"mcpx/internal/jsonrpc"
	"strings"
	"testing"
	"time"
)

// TestSubscriptionsAreBounded: a client has so many at a time, and a new session of
// the upstream is subscribed to them a few at a time.
func TestSubscriptionsAreBounded(t *testing.T) {
	asked, slow := 0, false
	f := &fake{}
	f.script = func(_ *fakeLink, method, _ string, _ []byte) (bool, error) {
		if method == "resources/subscribe" {
			f.mu.Lock()
			defer f.mu.Unlock()
			asked++
			return slow, nil
		}
		return false, nil
	}
	inTime(t, f, func(t *testing.T, r *Registry) {
		c, other := newRecorder("one"), newRecorder("two")
		r.Attach(c)
		r.Attach(other)
		subscribe := func(c Client, i int) error {
			uri := fmt.Sprint("test://", i)
			return r.Subscribe(t.Context(), c, "a", uri, uri)
		}
		for i := range maxSubscriptions {
			if err := subscribe(c, i); err != nil {
				t.Fatalf("subscription %d: %v", i, err)
			}
		}
		if err := subscribe(c, 0); err != nil {
			t.Errorf("one of them again: %v", err)
		}
		if err := subscribe(c, maxSubscriptions); !errors.Is(err, errTooManySubscriptions) {
			t.Errorf("one more: %v", err)
		}
		if err := subscribe(other, maxSubscriptions); err != nil {
			t.Errorf("another client: %v", err)
		}
		if err := r.Unsubscribe(t.Context(), c, "a", "test://0"); err != nil {
			t.Error(err)
		}
		if err := subscribe(c, maxSubscriptions); err != nil {
			t.Errorf("after one has ended: %v", err)
		}
		long := "test://" + strings.Repeat("x", maxURI)
		if err := r.Subscribe(t.Context(), c, "a", long, long); !errors.Is(err, errLongURI) {
			t.Errorf("a URI that is too long: %v", err)
		}
		f.set(func(*fake) { asked, slow = 0, true })
		f.die()
		after(time.Second)
		if n := f.count(&asked); n != resubscribeAtOnce {
			t.Errorf("the new session was asked for %d subscriptions at once, want %d", n, resubscribeAtOnce)
		}
		r.Detach(t.Context(), c)
		if n := len(r.clients.subscriptions); n != 1 {
			t.Errorf("%d clients are counted, want 1", n)
		}
	})
}

// TestASubscriptionSurvivesTwoDeaths: the upstream dies again while it is subscribed
// anew, and only the write notices. The session after that one is subscribed.
func TestASubscriptionSurvivesTwoDeaths(t *testing.T) {
	asked, dying := 0, false
	f := &fake{}
	f.script = func(_ *fakeLink, method, _ string, _ []byte) (bool, error) {
		if method != "resources/subscribe" {
			return false, nil
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		asked++
		if dying {
			return true, jsonrpc.ErrClosed
		}
		return false, nil
	}
	inTime(t, f, func(t *testing.T, r *Registry) {
		c := newRecorder("one")
		r.Attach(c)
		if err := r.Subscribe(t.Context(), c, "a", "test://one", "test://one"); err != nil {
			t.Fatal(err)
		}
		f.set(func(*fake) { dying = true })
		f.die()
		after(time.Second)
		f.set(func(*fake) { asked, dying = 0, false })
		f.die()
		after(2 * time.Second)
		if n := f.count(&asked); n != 1 {
			t.Errorf("the third session was asked %d times, want once", n)
		}
	})
}

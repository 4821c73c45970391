package registry

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/mcptest"
	"mcpx/internal/rpc"
	"mcpx/registry/live"
	"mcpx/registry/registrytest"
	"mcpx/registry/upstream"
)

func TestSubscriptions(t *testing.T) {
	r, l := run(t, map[string]any{"a": mcptest.Upstream(t, "-full")})
	one, two := newRecorder("one"), newRecorder("two")
	r.Attach(one)
	r.Attach(two)
	subscribe := func(c *recorder, uri string) {
		t.Helper()
		if err := r.Subscribe(t.Context(), c, "a", uri, "known:"+uri); err != nil {
			t.Fatal(err)
		}
	}
	subscribe(one, "test://one")
	subscribe(two, "test://one")
	subscribe(two, "test://two")
	update := func(uri string) {
		mustCall(t, r, "a", "say", fmt.Sprintf(`{"method":"notifications/resources/updated","params":[{"uri":%q}]}`, uri))
	}
	for _, uri := range []string{"test://one", "test://two", "test://three", "test://one/part", "test://onemore"} {
		update(uri)
	}
	updates := func(c *recorder) []string { return c.heard("notifications/resources/updated") }
	if got, want := updates(one), []string{`{"uri":"known:test://one"}`, `{"uri":"known:test://one/part"}`}; !slices.Equal(got, want) {
		t.Errorf("one heard of %q, want %q", got, want)
	}
	if got, want := updates(two), []string{`{"uri":"known:test://one"}`, `{"uri":"known:test://two"}`, `{"uri":"known:test://one/part"}`}; !slices.Equal(got, want) {
		t.Errorf("two heard of %q, want %q", got, want)
	}
	l.wait(t, "resources/subscribe test://two") // which came after it
	if n := l.count("resources/subscribe test://one"); n != 1 {
		t.Errorf("the upstream was asked %d times, want once for two clients", n)
	}

	_, _ = callTool(t.Context(), r, "a", "crash", "{}")
	mustCall(t, r, "a", "pid", "{}")
	l.waitFor(t, `"line":"resources/subscribe test://one"`, 2) // subscriptions survive a restart
	l.waitFor(t, `"line":"resources/subscribe test://two"`, 2)

	if err := r.Unsubscribe(t.Context(), one, "a", "test://one"); err != nil {
		t.Fatal(err)
	}
	if err := r.Unsubscribe(t.Context(), one, "a", "test://one"); err != nil {
		t.Fatal(err) // twice does no harm
	}
	if n := l.count("resources/unsubscribe"); n != 0 {
		t.Errorf("the upstream was told %d times though a subscriber is left", n)
	}
	r.Remove(two)(t.Context())
	l.waitFor(t, "resources/unsubscribe test://one", 1)
	l.waitFor(t, "resources/unsubscribe test://two", 1)
	update("test://one")
	if got := len(updates(one)) + len(updates(two)); got != 5 {
		t.Errorf("%d updates in all, want the 5 of before", got)
	}
}

// TestSubscriptionsAreBounded: a client has a limited number of subscriptions. A new
// upstream session is subscribed to them a few at a time.
func TestSubscriptionsAreBounded(t *testing.T) {
	asked, slow := 0, false
	f := &fake{}
	f.Script = func(_ *fakeLink, method, _ string, _ []byte) (bool, error) {
		if method == "resources/subscribe" {
			f.Mu.Lock()
			defer f.Mu.Unlock()
			asked++
			return slow, nil
		}
		return false, nil
	}
	inTime(t, f, func(t *testing.T, r *Registry) {
		c, other := newRecorder("one"), newRecorder("two")
		r.Attach(c)
		r.Attach(other)
		subscribe := func(c upstream.Client, i int) error {
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
		f.Set(func(*fake) { asked, slow = 0, true })
		f.Die()
		after(time.Second)
		if n := registrytest.Get(f, &asked); n != resubscribeAtOnce {
			t.Errorf("the new session was asked for %d subscriptions at once, want %d", n, resubscribeAtOnce)
		}
		r.Remove(c)(t.Context())
		if n := len(r.clients.attached); n != 1 {
			t.Errorf("%d clients are counted, want 1", n)
		}
	})
}

// TestSubscribersChange: while one client leaves and another comes, the upstream gets
// subscribe and unsubscribe in turns, so that the last one is right.
func TestSubscribersChange(t *testing.T) {
	r, l := run(t, map[string]any{"a": mcptest.Upstream(t, "-full")})
	r.Settled(t.Context(), "a")
	here, other := newRecorder("one"), newRecorder("two")
	r.Attach(here)
	r.Attach(other)
	subscribe := func(c upstream.Client) error { return r.Subscribe(t.Context(), c, "a", "test://one", "test://one") }
	if err := subscribe(here); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		var left, came error
		var both sync.WaitGroup
		both.Go(func() { left = r.Unsubscribe(t.Context(), here, "a", "test://one") })
		both.Go(func() { came = subscribe(other) })
		both.Wait()
		if left != nil || came != nil {
			t.Fatal(left, came)
		}
		here, other = other, here
	}
	r.Remove(here)(t.Context())
	if err := r.Subscribe(t.Context(), other, "a", "test://end", "test://end"); err != nil {
		t.Fatal(err)
	}
	r.Remove(other)(t.Context())
	l.wait(t, "resources/unsubscribe test://end") // the log has all of it
	told := regexp.MustCompile(`resources/(un)?subscribe test://one`).FindAllString(l.String(), -1)
	for i, got := range told {
		if want := []string{"resources/subscribe test://one", "resources/unsubscribe test://one"}[i%2]; got != want {
			t.Fatalf("the upstream was told %q one after the other, want them to alternate", told[max(i-2, 0):i+1])
		}
	}
	if len(told)%2 != 0 {
		t.Errorf("the upstream was told %q last, and nobody is left", told[len(told)-1])
	}
	if n := len(r.clients.subscribed); n != 0 {
		t.Errorf("%d scopes have subscriptions, want none", n)
	}
}

// TestSubscribeTwice: if one of two attempts of a client fails, the other one and the
// subscription stay.
func TestSubscribeTwice(t *testing.T) {
	r, l := run(t, map[string]any{"a": mcptest.Upstream(t, "-full")})
	r.Settled(t.Context(), "a")
	c := newRecorder("one")
	r.Attach(c)
	subscribe := func(ctx context.Context) error { return r.Subscribe(ctx, c, "a", "test://one", "test://one") }
	update := func(want int) {
		t.Helper()
		mustCall(t, r, "a", "say", `{"method":"notifications/resources/updated","params":[{"uri":"test://one"}]}`)
		if got := len(c.heard("notifications/resources/updated")); got != want {
			t.Fatalf("%d updates, want %d", got, want)
		}
	}
	s := r.clients.subscription(sessionKey{server: "a"}, "test://one")
	s.turn <- struct{}{} // somebody is at it
	waiting, cancel := context.WithCancel(t.Context())
	var first, second error
	var both sync.WaitGroup
	both.Go(func() { first = subscribe(waiting) })
	both.Go(func() { second = subscribe(t.Context()) })
	eventually(t, "both wait", func() bool {
		r.clients.mu.Lock()
		defer r.clients.mu.Unlock()
		return s.using == 3
	})
	cancel()
	<-s.turn
	both.Wait()
	r.clients.release(sessionKey{server: "a"}, "test://one", s)
	if second != nil {
		t.Fatal(first, second)
	}
	update(1)
	for range 20 { // which of two reasons to end is seen first is a matter of luck
		if err := subscribe(waiting); !errors.Is(err, context.Canceled) {
			t.Fatalf("error %v, want that it was canceled", err)
		}
	}
	update(2)
	r.Remove(c)(t.Context())
	l.waitFor(t, "resources/unsubscribe test://one", 1)
	if err := subscribe(t.Context()); !errors.Is(err, errNoStream) {
		t.Errorf("error %v for a client that has left, want %v", err, errNoStream)
	}
	if n := len(r.clients.subscribed); n != 0 {
		t.Errorf("%d scopes have subscriptions, want none", n)
	}
}

// TestClientComesBack: a client that is attached again before the requests of its removal are
// sent keeps its new subscription and its own upstream session.
func TestClientComesBack(t *testing.T) {
	for _, isolation := range []string{"shared", "client"} {
		t.Run(isolation, func(t *testing.T) {
			u := mcptest.Upstream(t, "-full")
			u["isolation"] = isolation
			r, _ := run(t, map[string]any{"a": u})
			before, after := newRecorder("one"), newRecorder("one")
			subscribe := func(c *recorder) {
				t.Helper()
				r.Attach(c)
				if err := r.Subscribe(t.Context(), c, "a", "test://one", "test://one"); err != nil {
					t.Fatal(err)
				}
			}
			subscribe(before)
			unsubscribe := r.Remove(before)
			subscribe(after)
			pid, err := callAs(t, r, after, "pid", "{}")
			if err != nil {
				t.Fatal(err)
			}
			unsubscribe(t.Context())
			if again, err := callAs(t, r, after, "pid", "{}"); err != nil || again != pid {
				t.Errorf("the process is %s, then %s: %v", pid, again, err)
			}
			if _, err := callAs(t, r, after, "say", `{"method":"notifications/resources/updated","params":[{"uri":"test://one"}]}`); err != nil {
				t.Fatal(err)
			}
			after.wait(t, `notifications/resources/updated {"uri":"test://one"}`)
			if got := before.heard("notifications/resources/updated"); got != nil {
				t.Errorf("the client that is gone was notified: %q", got)
			}
			r.Remove(after)(t.Context())
			if n := len(r.clients.subscribed) + len(r.clients.attached) + len(r.owned.byKey); n != 0 {
				t.Errorf("%d entries are left", n)
			}
		})
	}
}

// TestSubscribersWaitForOneTurnAtMost: an upstream that never responds delays each of
// many subscribers for one call, and one turn before it.
func TestSubscribersWaitForOneTurnAtMost(t *testing.T) {
	f := &fake{Script: func(_ *fakeLink, method, _ string, _ []byte) (bool, error) {
		return method == "resources/subscribe", nil
	}}
	inTime(t, f, func(t *testing.T, r *Registry) {
		var all sync.WaitGroup
		begin := time.Now()
		for i := range 100 {
			c := newRecorder(fmt.Sprint("client ", i))
			r.Attach(c)
			all.Go(func() {
				var late *upstream.Timeout
				err := r.Subscribe(t.Context(), c, "a", "test://one", "test://one")
				if took := time.Since(begin); !errors.As(err, &late) || took > 2*time.Minute {
					t.Errorf("after %s: %v, want a *Timeout", took, err)
				}
			})
		}
		all.Wait()
	})
}

// TestASubscriptionAtTheStartIsSentOnce: a new session gets each subscription once,
// whether it was made before or during the start.
func TestASubscriptionAtTheStartIsSentOnce(t *testing.T) {
	for i := range 300 {
		asked := 0
		f := &fake{Starts: time.Second}
		f.Script = func(_ *fakeLink, method, _ string, _ []byte) (bool, error) {
			if method == "resources/subscribe" {
				f.Set(func(*fake) { asked++ })
			}
			return false, nil
		}
		inTime(t, f, func(t *testing.T, r *Registry) {
			c := newRecorder("one")
			r.Attach(c)
			if err := r.Subscribe(t.Context(), c, "a", "test://one", "test://one"); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			if n := registrytest.Get(f, &asked); n != 1 {
				t.Errorf("time %d: the upstream was asked %d times", i, n)
			}
			f.Die()
			after(time.Second)
			if n := registrytest.Get(f, &asked); n != 2 {
				t.Errorf("time %d: the upstream was asked %d times in all after a restart, want 2", i, n)
			}
		})
		if t.Failed() {
			return
		}
	}
}

// TestASubscriptionSurvivesTwoDeaths: the upstream dies again while it is subscribed
// again, and only the write fails. The third session is subscribed.
func TestASubscriptionSurvivesTwoDeaths(t *testing.T) {
	asked, dying := 0, false
	f := &fake{}
	f.Script = func(_ *fakeLink, method, _ string, _ []byte) (bool, error) {
		if method != "resources/subscribe" {
			return false, nil
		}
		f.Mu.Lock()
		defer f.Mu.Unlock()
		asked++
		if dying {
			return true, rpc.ErrClosed
		}
		return false, nil
	}
	inTime(t, f, func(t *testing.T, r *Registry) {
		c := newRecorder("one")
		r.Attach(c)
		if err := r.Subscribe(t.Context(), c, "a", "test://one", "test://one"); err != nil {
			t.Fatal(err)
		}
		f.Set(func(*fake) { dying = true })
		f.Die()
		after(time.Second)
		f.Set(func(*fake) { asked, dying = 0, false })
		f.Die()
		after(2 * time.Second)
		if n := registrytest.Get(f, &asked); n != 1 {
			t.Errorf("the third session was asked %d times, want once", n)
		}
	})
}

// TestASubscriberWhileItIsDown: who subscribes while the upstream is down gets its error, even
// if there is a subscriber already, whose subscription is repeated after the restart.
func TestASubscriberWhileItIsDown(t *testing.T) {
	var asked []string
	f := &fake{}
	f.Script = func(_ *fakeLink, method, _ string, _ []byte) (bool, error) {
		if strings.HasPrefix(method, "resources/") {
			f.Set(func(*fake) { asked = append(asked, method) })
		}
		return false, nil
	}
	inTime(t, f, func(t *testing.T, r *Registry) {
		one, two := newRecorder("one"), newRecorder("two")
		r.Attach(one)
		r.Attach(two)
		subscribe := func(c upstream.Client) error { return r.Subscribe(t.Context(), c, "a", "test://one", "test://one") }
		if err := subscribe(one); err != nil {
			t.Fatal(err)
		}
		f.Set(func(f *fake) { f.Down = true })
		f.Die()
		synctest.Wait()
		var unavailable *live.Unavailable
		if err := subscribe(two); !errors.As(err, &unavailable) {
			t.Errorf("while it is down: %v", err)
		}
		f.Set(func(f *fake) { f.Down = false })
		after(time.Minute)
		if err := r.Unsubscribe(t.Context(), one, "a", "test://one"); err != nil {
			t.Error(err)
		}
		if got, want := registrytest.Get(f, &asked), []string{"resources/subscribe", "resources/subscribe", "resources/unsubscribe"}; !slices.Equal(got, want) {
			t.Errorf("it was asked for %q, want %q", got, want)
		}
	})
}

package registry

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/config"
	"mcpx/internal/rawjson"
	"mcpx/registry/live"
	"mcpx/registry/registrytest"
	"mcpx/registry/upstream"
)

func newCommand(u *config.Upstream) { u.Command = "another" }

// TestApplyInPlace: changes that concern no session keep it.
func TestApplyInPlace(t *testing.T) {
	f := &fake{Pings: never}
	inTime(t, f, func(t *testing.T, r *Registry) {
		session := r.Catalog().Upstream("a").Session
		r.Apply(registrytest.Profile(func(u *config.Upstream) {
			u.Description, u.Timeout, u.IdleStop = "new", time.Second, 10*time.Minute
			u.Tools.Deny = []string{"t1"}
		}))
		u := r.Catalog().Upstream("a")
		if u.Session != session || u.Description != "new" || len(u.Tools) != 0 || r.limits("a").Idle != time.Second {
			t.Errorf("after the change: %+v", u)
		}
		r.Apply(registrytest.Profile(func(u *config.Upstream) { u.IdleStop = 10 * time.Minute }))
		if u := r.Catalog().Upstream("a"); u.Tool("t1") == nil {
			t.Error("a tool that is allowed again does not appear")
		}
		expect(t, r, f, live.Ready, 1)
		after(time.Hour)
		expect(t, r, f, live.Idle, 1) // the idle time was applied to the running session
		mustCallFake(t, r)
		r.Apply(registrytest.Profile())
		after(24 * time.Hour)
		expect(t, r, f, live.Ready, 2)
	})
}

// TestApplyReplacesSession: a call in flight finishes on the old session, the next call
// uses the new one, and nothing waits meanwhile.
func TestApplyReplacesSession(t *testing.T) {
	f := &fake{Pings: never, Takes: 30 * time.Second}
	inTime(t, f, func(t *testing.T, r *Registry) {
		old := r.Catalog().Upstream("a").Session
		var calls sync.WaitGroup
		calls.Go(func() {
			if _, err := call(t.Context(), r, nil); err != nil {
				t.Errorf("the call in flight: %v", err)
			}
		})
		synctest.Wait()
		f.Set(func(f *fake) { f.Starts = 5 * time.Second })
		r.Apply(registrytest.Profile(newCommand))
		after(time.Second)
		if u := r.Catalog().Upstream("a"); u.Session != old || u.State != live.Ready {
			t.Error("the old session is gone before the new one is open")
		}
		after(5 * time.Second)
		u := r.Catalog().Upstream("a")
		if u.Session == old || u.State != live.Ready || u.Config.Command != "another" || old.IsOver() {
			t.Errorf("the new session: %+v, old ended: %v", u, old.IsOver())
		}
		calls.Wait()
		after(time.Second)
		if !old.IsOver() {
			t.Error("the old session stays open")
		}
		mustCallFake(t, r)
		expect(t, r, f, live.Ready, 2)
	})
}

// TestApplyEndsSlowCalls: a call that does not end in time fails, and is not repeated.
func TestApplyEndsSlowCalls(t *testing.T) {
	f := &fake{Pings: never, Takes: time.Hour, Progress: 30 * time.Second}
	inTime(t, f, func(t *testing.T, r *Registry) {
		begun := time.Now()
		ended := make(chan error, 1)
		go func() {
			_, err := r.Call(t.Context(), "a", upstream.Request{Method: "tools/call", Meta: []byte("{}"), Progress: func([]byte) {}})
			ended <- err
		}()
		synctest.Wait()
		r.Apply(registrytest.Profile(newCommand))
		err := <-ended
		var lost *upstream.Lost
		if !errors.As(err, &lost) || !strings.Contains(lost.Reason, "config has changed") || time.Since(begun) > 2*drainTime {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
		synctest.Wait()
		if n := len(f.Times()); n != 2 {
			t.Errorf("dialed %d times", n)
		}
	})
}

// TestApplyFailure: if the new session cannot be opened, the upstream is down, as after a
// start that failed.
func TestApplyFailure(t *testing.T) {
	f := &fake{Pings: never}
	inTime(t, f, func(t *testing.T, r *Registry) {
		f.Set(func(f *fake) { f.Down = true })
		r.Apply(registrytest.Profile(newCommand))
		synctest.Wait()
		if u := r.Catalog().Upstream("a"); u.State != live.Waiting || u.Reason != "down on purpose" || u.RetryAt.IsZero() {
			t.Errorf("%+v", u)
		}
		f.Set(func(f *fake) { f.Down = false })
		after(2 * time.Second)
		mustCallFake(t, r)
	})
}

// TestApplyTwice: the newest config wins, also over a replacement that is still starting.
func TestApplyTwice(t *testing.T) {
	f := &fake{Pings: never}
	inTime(t, f, func(t *testing.T, r *Registry) {
		session := r.Catalog().Upstream("a").Session
		f.Set(func(f *fake) { f.Starts = 5 * time.Second })
		r.Apply(registrytest.Profile(newCommand))
		after(time.Second)
		r.Apply(registrytest.Profile(newCommand, func(u *config.Upstream) { u.Description = "x" })) // keeps the replacement
		after(time.Second)
		r.Apply(registrytest.Profile()) // back again
		after(time.Minute)
		if u := r.Catalog().Upstream("a"); u.Session != session || u.Config.Command != "" {
			t.Errorf("%+v", u)
		}
		r.Apply(registrytest.Profile(newCommand))
		after(time.Second)
		r.Apply(registrytest.Profile(func(u *config.Upstream) { u.Command = "third" }))
		after(time.Minute)
		if u := r.Catalog().Upstream("a"); u.State != live.Ready || u.Config.Command != "third" {
			t.Errorf("%+v", u)
		}
		if !session.IsOver() {
			t.Error("the first session stays open")
		}
	})
}

// TestApplyAddsAndRemoves: upstreams come and go; the order is that of the config.
func TestApplyAddsAndRemoves(t *testing.T) {
	f := &fake{Pings: never, Takes: 10 * time.Second}
	inTime(t, f, func(t *testing.T, r *Registry) {
		p := registrytest.Profile()
		b := p.Upstreams[0]
		b.Name = "b"
		p.Upstreams = slices.Insert(p.Upstreams, 0, b)
		r.Apply(p)
		synctest.Wait()
		if all := r.Catalog().Upstreams; len(all) != 2 || all[0].Name != "b" || all[0].State != live.Ready || all[1].State != live.Ready {
			t.Errorf("%+v", all)
		}
		var calls sync.WaitGroup
		calls.Go(func() {
			if _, err := r.Call(t.Context(), "b", upstream.Request{Method: "tools/call"}); err != nil {
				t.Errorf("the call in flight: %v", err)
			}
		})
		synctest.Wait()
		session := r.Catalog().Upstream("b").Session
		r.Apply(registrytest.Profile())
		if r.Catalog().Upstream("b") != nil {
			t.Error("it is still there")
		}
		_, err := r.Call(t.Context(), "b", upstream.Request{Method: "tools/call"})
		var unavailable *live.Unavailable
		if !errors.As(err, &unavailable) || !strings.Contains(unavailable.Reason, "not in the config") {
			t.Errorf("a call to it: %v", err)
		}
		calls.Wait()
		after(time.Second)
		if !session.IsOver() {
			t.Error("its session stays open")
		}
	})
}

// TestApplyWakesWaiters: a call that waits for an upstream goes to the one that replaces it.
func TestApplyWakesWaiters(t *testing.T) {
	f := &fake{Pings: never, Silent: true}
	inTime(t, f, func(t *testing.T, r *Registry) {
		var calls sync.WaitGroup
		calls.Go(func() {
			if _, err := call(t.Context(), r, nil); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		f.Set(func(f *fake) { f.Silent = false })
		r.Apply(registrytest.Profile(newCommand))
		calls.Wait()
		expect(t, r, f, live.Ready, 2)
	})
}

// TestApplyToOwnSessions: a client's own session is replaced too, and its call in flight
// finishes.
func TestApplyToOwnSessions(t *testing.T) {
	f := &fake{Pings: never, Takes: 10 * time.Second}
	own := func(u *config.Upstream) { u.Isolation = config.PerClient }
	inTime(t, f, func(t *testing.T, r *Registry) {
		c := newRecorder("c")
		r.Attach(c)
		var calls sync.WaitGroup
		calls.Go(func() {
			if _, err := call(t.Context(), r, c); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		old := r.owned.sessionsOf("a")[0]
		r.Apply(registrytest.Profile(own, newCommand))
		synctest.Wait()
		if old.IsOver() {
			t.Error("the session of a call in flight is closed")
		}
		calls.Wait()
		if _, err := call(t.Context(), r, c); err != nil {
			t.Fatal(err)
		}
		if next := r.owned.sessionsOf("a"); len(next) != 1 || next[0] == old || !old.IsOver() {
			t.Errorf("sessions %v, old ended: %v", next, old.IsOver())
		}
		r.Remove(c)(t.Context())
	}, own)
}

// TestApplyKeepsSubscriptions: the new session is subscribed to what the old one was.
func TestApplyKeepsSubscriptions(t *testing.T) {
	var mu sync.Mutex
	subscribed := map[*fakeLink]string{}
	f := &fake{Pings: never, Script: func(l *fakeLink, method, _ string, message []byte) (bool, error) {
		if method == "resources/subscribe" {
			mu.Lock()
			defer mu.Unlock()
			subscribed[l], _ = rawjson.String(rawjson.Get(rawjson.Get(message, "params"), "uri"))
		}
		return false, nil
	}}
	inTime(t, f, func(t *testing.T, r *Registry) {
		c := newRecorder("c")
		r.Attach(c)
		if err := r.Subscribe(t.Context(), c, "a", "x:y", "x:y"); err != nil {
			t.Fatal(err)
		}
		r.Apply(registrytest.Profile(newCommand))
		after(time.Second)
		mu.Lock()
		defer mu.Unlock()
		if len(subscribed) != 2 || subscribed[registrytest.Get(f, &f.Current)] != "x:y" {
			t.Errorf("subscribed: %v", subscribed)
		}
		r.Remove(c)(t.Context())
	})
}

// TestApplyAfterStop: a registry that stops stays stopped.
func TestApplyAfterStop(t *testing.T) {
	f := &fake{Pings: never}
	inTime(t, f, func(t *testing.T, r *Registry) {
		r.stop()
		r.Apply(registrytest.Profile(newCommand))
		after(time.Minute)
		if n := len(f.Times()); n != 1 {
			t.Errorf("dialed %d times", n)
		}
	})
}

// TestApplyAnnouncesLostLists: clients are notified when the new session has fewer lists,
// or none because it failed.
func TestApplyAnnouncesLostLists(t *testing.T) {
	f := &fake{Pings: never}
	inTime(t, f, func(t *testing.T, r *Registry) {
		c := newRecorder("c")
		r.Attach(c)
		notified := func() (n int) {
			c.mu.Lock()
			defer c.mu.Unlock()
			for _, told := range c.told {
				if told == upstream.ListChanged("tools") {
					n++
				}
			}
			return n
		}
		f.Set(func(f *fake) { f.Down, f.Starts = true, 5*time.Second })
		r.Apply(registrytest.Profile(newCommand))
		after(time.Second)
		before := notified()
		after(4500 * time.Millisecond)
		if u := r.Catalog().Upstream("a"); u.State != live.Waiting || len(u.Tools) > 0 {
			t.Fatalf("%+v", u)
		}
		if n := notified(); n != before+1 {
			t.Errorf("notified %d times after the new session failed", n-before)
		}
		r.Remove(c)(t.Context())
	})
}

package registry

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/config"
	"mcpx/registry/live"
	"mcpx/registry/registrytest"
)

// TestLevelsOfTwoClients: the upstream has the most verbose level that any client
// wants, after a restart and when both set theirs at the same time, too.
func TestLevelsOfTwoClients(t *testing.T) {
	last := ""
	f := loggingFake(&last)
	inTime(t, f, func(t *testing.T, r *Registry) {
		one, two := newRecorder("one"), newRecorder("two")
		r.Attach(one)
		r.Attach(two)
		level := func(when, want string) {
			t.Helper()
			if got := registrytest.Get(f, &last); got != want {
				t.Fatalf("%s: the upstream is left with %s, want %s", when, got, want)
			}
		}
		r.SetLevel(one, "warning")
		level("one client", "warning")
		r.SetLevel(two, "debug")
		r.SetLevel(one, "error")
		level("two clients", "debug")
		f.Set(func(*fake) { last = "" })
		f.Die()
		after(time.Second)
		level("restarted", "debug")
		r.Remove(two)(t.Context())
		level("one is left", "error")
		r.Attach(two)
		for i := range 3000 {
			r.SetLevel(one, "error")
			r.SetLevel(two, "error")
			var both sync.WaitGroup
			both.Go(func() { r.SetLevel(one, "info") })
			both.Go(func() { r.SetLevel(two, "debug") })
			both.Wait()
			level(fmt.Sprint("time ", i), "debug")
		}
	})
}

// TestALevelWhileASessionOpens: a level that is set while a client's own session opens
// reaches that session.
func TestALevelWhileASessionOpens(t *testing.T) {
	last := ""
	f := loggingFake(&last)
	inTime(t, f, func(t *testing.T, r *Registry) {
		for i := range 3000 {
			c := newRecorder(fmt.Sprint(i))
			r.Attach(c)
			r.SetLevel(c, "error")
			var both sync.WaitGroup
			both.Go(func() {
				if _, err := call(t.Context(), r, c); err != nil {
					t.Error(err)
				}
			})
			both.Go(func() {
				for range i % 400 { // about what it takes to open it
					runtime.Gosched()
				}
				r.SetLevel(c, "debug")
			})
			both.Wait()
			synctest.Wait()
			for _, s := range r.owned.sessionsOf("a") {
				if got := registrytest.Get(f, &s.Link.(*fakeLink).Level); got != "debug" {
					t.Fatalf("time %d: its session is left with %s", i, got)
				}
			}
			r.Remove(c)(t.Context())
			synctest.Wait()
		}
	}, func(c *config.Upstream) { c.Isolation = config.PerClient })
}

// TestSetLevelWaitsForTheUpstream: the messages of a call that comes right after
// the level are wanted, too. A slow upstream does not delay the client for long.
func TestSetLevelWaitsForTheUpstream(t *testing.T) {
	last := ""
	f := loggingFake(&last)
	f.Starts, f.Takes = time.Second, levelTime/2
	inTime(t, f, func(t *testing.T, r *Registry) {
		c := newRecorder("one")
		r.Attach(c)
		r.SetLevel(c, "debug") // the upstream is not there yet
		u := r.Settled(t.Context(), "a")
		f.Set(func(*fake) {
			if u.State != live.Ready || last != "debug" {
				t.Errorf("a new session is %s with level %q", u.State, last)
			}
		})
		after(sideTime) // the first SetLevel and the start may both send the level, one after the other
		for takes, want := range map[time.Duration]time.Duration{levelTime / 2: levelTime / 2, sideTime / 2: levelTime} {
			f.Set(func(f *fake) { f.Takes = takes })
			begin := time.Now()
			r.SetLevel(c, "info")
			if took := time.Since(begin); took != want {
				t.Errorf("an upstream that takes %s: SetLevel took %s, want %s", takes, took, want)
			}
			after(sideTime)
		}
	})
}

package registry

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/listcache"
	"mcpx/internal/mcptest"
	"mcpx/registry/live"
)

// never is an interval that does not end in a test. A process gets no pings.
const never = 1000 * time.Hour

// lazy makes an upstream start on first use.
func lazy(u *config.Upstream) { u.Start, u.IdleStop = config.StartLazy, 15*time.Minute }

// expect fails unless the upstream is in a state and was dialled so many times.
func expect(t *testing.T, r *Registry, f *fake, state live.State, dialled int) {
	t.Helper()
	if u := r.Catalog().Upstream("a"); u.State != state || len(f.times()) != dialled {
		t.Fatalf("it is %s (%s), and was dialled %d times; want %s and %d", u.State, u.Reason, len(f.times()), state, dialled)
	}
}

func mustCallFake(t *testing.T, r *Registry) {
	t.Helper()
	if _, err := call(t.Context(), r, nil); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// TestLazyWithoutCache: it is started once in the background to be listed, then stopped,
// and started again by a call.
func TestLazyWithoutCache(t *testing.T) {
	f := &fake{pings: never}
	inTime(t, f, func(t *testing.T, r *Registry) {
		expect(t, r, f, live.Ready, 1)
		after(2 * fillTime)
		expect(t, r, f, live.Idle, 1)
		u := r.Catalog().Upstream("a")
		if u.Tool("t1") == nil || u.ListedAt.IsZero() || !u.NeedsStart() {
			t.Errorf("after the first start: %+v", u)
		}
		mustCallFake(t, r)
		expect(t, r, f, live.Ready, 2)
		if u := r.Catalog().Upstream("a"); u.Tool("t2") == nil || u.NeedsStart() {
			t.Error("it was not listed again")
		}
		after(14 * time.Minute)
		mustCallFake(t, r)
		after(14 * time.Minute)
		expect(t, r, f, live.Ready, 2)
		after(10 * time.Minute)
		expect(t, r, f, live.Idle, 2)
		mustCallFake(t, r)
		expect(t, r, f, live.Ready, 3)
	}, lazy)
}

// TestFillsDoNotWaitForUsers: an upstream that is used during its background start does not
// keep the others from theirs.
func TestFillsDoNotWaitForUsers(t *testing.T) {
	f := &fake{pings: never}
	inTime(t, f, func(t *testing.T, r *Registry) {
		mustCallFake(t, r)
		after(fillTime)
		expect(t, r, f, live.Ready, 1)
		two := profileOf(lazy)
		other := two.Upstreams[0]
		other.Name = "b"
		two.Upstreams = append(two.Upstreams, other)
		r.Apply(two)
		after(fillTime)
		if u := r.Catalog().Upstream("b"); u.ListedAt.IsZero() {
			t.Errorf("the next upstream was not started: it is %s", u.State)
		}
	}, lazy)
}

// TestLazyWithCache: what another process has listed is known at once, and nothing is
// started.
func TestLazyWithCache(t *testing.T) {
	folder := t.TempDir()
	inTime(t, &fake{pings: never, cache: listcache.New(folder, folder+"-key", zerolog.Nop())}, func(t *testing.T, _ *Registry) { after(time.Second) }, func(u *config.Upstream) { u.Command = "x" })
	second := &fake{pings: never, cache: listcache.New(folder, folder+"-key", zerolog.Nop())}
	inTime(t, second, func(t *testing.T, r *Registry) {
		expect(t, r, second, live.Idle, 0)
		if u := r.Catalog().Upstream("a"); u.Tool("t1") == nil || u.ListedAt.IsZero() || !u.Has("tools") || u.InFirstStart() {
			t.Errorf("from the cache: %+v", u)
		}
		after(24 * time.Hour)
		expect(t, r, second, live.Idle, 0)
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if _, err := call(t.Context(), r, nil); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		expect(t, r, second, live.Ready, 1)
	}, lazy, func(u *config.Upstream) { u.Command = "x" })
	third := &fake{pings: never, cache: listcache.New(folder, folder+"-key", zerolog.Nop())}
	inTime(t, third, func(t *testing.T, r *Registry) { expect(t, r, third, live.Ready, 1) }, lazy, func(u *config.Upstream) { u.Command = "another" })
}

// TestUnusableCacheIsLogged: lists of lazy upstreams that cannot be saved cause one warning,
// since these upstreams are started again and again.
func TestUnusableCacheIsLogged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	eager, one, two := mcptest.Upstream(t), mcptest.Upstream(t), mcptest.Upstream(t)
	one["start"], two["start"] = "lazy", "lazy"
	_, l := runWith(t, Options{Cache: listcache.New(filepath.Join(file, "cache"), filepath.Join(t.TempDir(), "key"), zerolog.Nop())}, map[string]any{"eager": eager, "one": one, "two": two})
	l.waitFor(t, "could not save the lists", 3)
	if n := l.count(`"level":"warn"`); n != 1 {
		t.Errorf("%d warnings, want 1:\n%s", n, l)
	}
}

func TestIdleStopSparesUsers(t *testing.T) {
	t.Run("a long call", func(t *testing.T) {
		f := &fake{pings: never, takes: 2 * time.Hour, progress: 30 * time.Second}
		inTime(t, f, func(t *testing.T, r *Registry) {
			done := make(chan error, 1)
			go func() {
				_, err := call(t.Context(), r, nil)
				done <- err
			}()
			after(90 * time.Minute)
			expect(t, r, f, live.Ready, 1)
			if err := <-done; err != nil {
				t.Error(err)
			}
			after(30 * time.Minute)
			expect(t, r, f, live.Idle, 1)
		}, lazy, func(u *config.Upstream) { u.MaxTimeout = 3 * time.Hour })
	})
	t.Run("a subscription", func(t *testing.T) {
		f := &fake{pings: never}
		inTime(t, f, func(t *testing.T, r *Registry) {
			c := &recorder{id: "one"}
			r.Attach(c)
			if err := r.Subscribe(t.Context(), c, "a", "file:///x", "file:///x"); err != nil {
				t.Fatal(err)
			}
			after(5 * time.Hour)
			expect(t, r, f, live.Ready, 1)
			r.Remove(c)(t.Context())
			after(time.Hour)
			expect(t, r, f, live.Idle, 1)
		}, lazy)
	})
	t.Run("eager without an idle time", func(t *testing.T) {
		f := &fake{pings: never}
		inTime(t, f, func(t *testing.T, r *Registry) {
			after(24 * time.Hour)
			expect(t, r, f, live.Ready, 1)
		})
	})
	t.Run("eager with an idle time", func(t *testing.T) {
		f := &fake{pings: never}
		inTime(t, f, func(t *testing.T, r *Registry) {
			expect(t, r, f, live.Ready, 1)
			after(2 * time.Hour)
			expect(t, r, f, live.Idle, 1)
			mustCallFake(t, r)
			expect(t, r, f, live.Ready, 2)
			f.die() // an eager one is restarted
			after(time.Second)
			expect(t, r, f, live.Ready, 3)
		}, func(u *config.Upstream) { u.IdleStop = time.Hour })
	})
}

// TestLazyFailures: a lazy upstream that dies or does not start waits for the next call, which
// may come at once after its death.
func TestLazyFailures(t *testing.T) {
	f := &fake{pings: never}
	inTime(t, f, func(t *testing.T, r *Registry) {
		mustCallFake(t, r)
		f.die()
		after(time.Hour)
		expect(t, r, f, live.Idle, 1)
		if u := r.Catalog().Upstream("a"); u.Reason != "died on purpose" || u.Tool("t1") == nil {
			t.Errorf("after its death: %+v", u)
		}
		f.set(func(f *fake) { f.down = true })
		for range 2 {
			var down *live.Unavailable
			if _, err := call(t.Context(), r, nil); !errors.As(err, &down) || down.Reason != "down on purpose" {
				t.Errorf("got %v", err)
			}
			after(time.Hour)
		}
		expect(t, r, f, live.Waiting, 3)
		f.set(func(f *fake) { f.down = false })
		mustCallFake(t, r)
		expect(t, r, f, live.Ready, 4)
		f.die()
		synctest.Wait()
		mustCallFake(t, r)
		expect(t, r, f, live.Ready, 5)
	}, lazy)
}

// TestCallsDuringIdleStop: a call that comes while the process is being stopped goes to
// the next one.
func TestCallsDuringIdleStop(t *testing.T) {
	f := &fake{pings: never, stops: 2 * time.Second}
	inTime(t, f, func(t *testing.T, r *Registry) {
		mustCallFake(t, r)
		session := r.Catalog().Upstream("a").Session
		<-session.Done() // it is unused for its idle time
		mustCallFake(t, r)
		expect(t, r, f, live.Ready, 2)
	}, lazy)
}

// TestApplyKeepsIdleTime: a reload that does not change the idle time does not begin it
// again, and a process that only fills the cache stops as soon as without a reload.
func TestApplyKeepsIdleTime(t *testing.T) {
	f := &fake{pings: never}
	inTime(t, f, func(t *testing.T, r *Registry) {
		r.Apply(profileOf(lazy, func(u *config.Upstream) { u.IdleStop = time.Hour }))
		after(2 * fillTime)
		expect(t, r, f, live.Idle, 1)
		r.Apply(profileOf(lazy))
		mustCallFake(t, r)
		for range 5 {
			after(5 * time.Minute)
			r.Apply(profileOf(lazy, func(u *config.Upstream) { u.Description = time.Now().String() }))
		}
		synctest.Wait()
		expect(t, r, f, live.Idle, 2)
	}, lazy)
}

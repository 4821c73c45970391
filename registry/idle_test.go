package registry

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/listcache"
	"mcpx/internal/mcptest"
	"mcpx/registry/link"
	"mcpx/registry/live"
	"mcpx/registry/registrytest"
)

// never is an interval that does not end in a test.
const never = registrytest.Never

// lazy makes an upstream start on first use.
func lazy(u *config.Upstream) { u.Start, u.IdleStop = config.StartLazy, 15*time.Minute }

// expect fails unless the upstream is in a state and was dialed so many times.
func expect(t *testing.T, r *Registry, f *fake, state live.State, dialed int) {
	t.Helper()
	if u := r.Catalog().Upstream("a"); u.State != state || len(f.Times()) != dialed {
		t.Fatalf("it is %s (%s), and was dialed %d times; want %s and %d", u.State, u.Reason, len(f.Times()), state, dialed)
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
	f := &fake{Pings: never}
	inTime(t, f, func(t *testing.T, r *Registry) {
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

// startOrder records in which order upstreams begin to start.
type startOrder struct {
	mu    sync.Mutex
	names []string
}

// watch makes f record its starts.
func (s *startOrder) watch(f *fake) {
	link.Transports[registrytest.Transport] = func(ctx context.Context, o link.Options) (link.Link, error) {
		s.mu.Lock()
		s.names = append(s.names, o.Upstream.Name)
		s.mu.Unlock()
		return f.Dial(ctx, o)
	}
}

// got returns the names so far.
func (s *startOrder) got() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.names, " ")
}

// withUpstreams returns the profile of the test with upstreams of these names instead.
func withUpstreams(names string, change func(u *config.Upstream)) *config.Profile {
	p := registrytest.Profile(change)
	one := p.Upstreams[0]
	p.Upstreams = nil
	for _, name := range strings.Fields(names) {
		one.Name = name
		p.Upstreams = append(p.Upstreams, one)
	}
	return p
}

// TestFills: upstreams without a cache are listed in the background, as many at once as may
// start, and without a pause. Eager upstreams go first. Each one is stopped at once.
func TestFills(t *testing.T) {
	f := &fake{Pings: never}
	inTime(t, f, func(t *testing.T, r *Registry) {
		var order startOrder
		order.watch(f)
		f.Set(func(f *fake) { f.Starts = time.Second })
		p := withUpstreams("a b c d e", lazy)
		r.Apply(p)
		synctest.Wait()
		if got := order.got(); len(strings.Fields(got)) != 2 {
			t.Fatalf("%q have started, want two", got)
		}
		p.Upstreams = append(p.Upstreams, withUpstreams("x y", func(*config.Upstream) {}).Upstreams...)
		r.Apply(p)
		after(time.Second)
		if got := strings.Fields(order.got()); len(got) != 4 || !slices.Contains(got[2:], "x") || !slices.Contains(got[2:], "y") {
			t.Fatalf("%q have started, want x and y next", got)
		}
		after(3 * time.Second)
		for _, name := range strings.Fields("a b c d e") {
			if u := r.Catalog().Upstream(name); u.State != live.Idle || u.ListedAt.IsZero() {
				t.Errorf("%s is %s, listed at %s", name, u.State, u.ListedAt)
			}
		}
		if got := strings.Fields(order.got()); len(got) != 6 { // a was listed before
			t.Errorf("%q were started, want each once", got)
		}
		r.Apply(registrytest.Profile(lazy))
	}, lazy)
}

// TestFillsDuringAReload: a reload removes upstreams while they are listed, or wait for that. They
// are not started again. inTime checks the same when mcpx stops.
func TestFillsDuringAReload(t *testing.T) {
	f := &fake{Pings: never, Starts: time.Second}
	inTime(t, f, func(t *testing.T, r *Registry) {
		r.Apply(withUpstreams("a b c d e f g", lazy))
		after(500 * time.Millisecond)
		r.Apply(withUpstreams("a g", lazy))
		after(5 * time.Second)
		for _, u := range r.Catalog().Upstreams {
			if u.State != live.Idle || u.ListedAt.IsZero() {
				t.Errorf("%s is %s, listed at %s", u.Name, u.State, u.ListedAt)
			}
		}
		if n := len(f.Times()); n > 4 { // those that started before the reload, and the two
			t.Errorf("%d were started", n)
		}
		r.Apply(withUpstreams("a b c d e f g h i j", lazy))
		after(500 * time.Millisecond)
	}, lazy)
}

// TestFillWithARequest: a request that comes while an upstream is being listed uses that process.
// The other upstreams do not wait until the process ends.
func TestFillWithARequest(t *testing.T) {
	f := &fake{Pings: never, Starts: time.Second}
	inTime(t, f, func(t *testing.T, r *Registry) {
		mustCallFake(t, r)
		r.Apply(withUpstreams("a b c", lazy))
		if _, err := r.For(nil).Listed(t.Context(), "b"); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if u := r.Catalog().Upstream("b"); u.State != live.Ready {
			t.Errorf("b is %s, want it ready for the request", u.State)
		}
		after(2 * fillTime)
		expect(t, r, f, live.Ready, 3)
		if u := r.Catalog().Upstream("c"); u.State != live.Idle || u.ListedAt.IsZero() {
			t.Errorf("c is %s, listed at %s", u.State, u.ListedAt)
		}
	}, lazy)
}

// TestLazyWithCache: what another process has listed is known at once, and nothing is
// started.
func TestLazyWithCache(t *testing.T) {
	folder := t.TempDir()
	inTime(t, &fake{Pings: never, Cache: listcache.New(folder, folder+"-key", zerolog.Nop())}, func(t *testing.T, _ *Registry) { after(time.Second) }, func(u *config.Upstream) { u.Command = "x" })
	second := &fake{Pings: never, Cache: listcache.New(folder, folder+"-key", zerolog.Nop())}
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
	third := &fake{Pings: never, Cache: listcache.New(folder, folder+"-key", zerolog.Nop())}
	inTime(t, third, func(t *testing.T, r *Registry) { expect(t, r, third, live.Idle, 1) }, lazy, func(u *config.Upstream) { u.Command = "another" })
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
		f := &fake{Pings: never, Takes: 2 * time.Hour, Progress: 30 * time.Second}
		inTime(t, f, func(t *testing.T, r *Registry) {
			done := make(chan error, 1)
			go func() {
				_, err := call(t.Context(), r, nil)
				done <- err
			}()
			after(90 * time.Minute)
			expect(t, r, f, live.Ready, 2)
			if err := <-done; err != nil {
				t.Error(err)
			}
			after(30 * time.Minute)
			expect(t, r, f, live.Idle, 2)
		}, lazy, func(u *config.Upstream) { u.MaxTimeout = 3 * time.Hour })
	})
	t.Run("a subscription", func(t *testing.T) {
		f := &fake{Pings: never}
		inTime(t, f, func(t *testing.T, r *Registry) {
			c := newRecorder("one")
			r.Attach(c)
			if err := r.Subscribe(t.Context(), c, "a", "file:///x", "file:///x"); err != nil {
				t.Fatal(err)
			}
			after(5 * time.Hour)
			expect(t, r, f, live.Ready, 2)
			r.Remove(c)(t.Context())
			after(time.Hour)
			expect(t, r, f, live.Idle, 2)
		}, lazy)
	})
	t.Run("eager without an idle time", func(t *testing.T) {
		f := &fake{Pings: never}
		inTime(t, f, func(t *testing.T, r *Registry) {
			after(24 * time.Hour)
			expect(t, r, f, live.Ready, 1)
		})
	})
	t.Run("eager with an idle time", func(t *testing.T) {
		f := &fake{Pings: never}
		inTime(t, f, func(t *testing.T, r *Registry) {
			expect(t, r, f, live.Ready, 1)
			after(2 * time.Hour)
			expect(t, r, f, live.Idle, 1)
			mustCallFake(t, r)
			expect(t, r, f, live.Ready, 2)
			f.Die() // an eager one is restarted
			after(time.Second)
			expect(t, r, f, live.Ready, 3)
		}, func(u *config.Upstream) { u.IdleStop = time.Hour })
	})
}

// TestLazyFailures: a lazy upstream that dies or does not start waits for the next call, which
// may come at once after its death.
func TestLazyFailures(t *testing.T) {
	f := &fake{Pings: never}
	inTime(t, f, func(t *testing.T, r *Registry) {
		mustCallFake(t, r)
		f.Die()
		after(time.Hour)
		expect(t, r, f, live.Idle, 2)
		if u := r.Catalog().Upstream("a"); u.Reason != "died on purpose" || u.Tool("t2") == nil {
			t.Errorf("after its death: %+v", u)
		}
		f.Set(func(f *fake) { f.Down = true })
		for range 2 {
			var down *live.Unavailable
			if _, err := call(t.Context(), r, nil); !errors.As(err, &down) || down.Reason != "down on purpose" {
				t.Errorf("got %v", err)
			}
			after(time.Hour)
		}
		expect(t, r, f, live.Waiting, 4)
		f.Set(func(f *fake) { f.Down = false })
		mustCallFake(t, r)
		expect(t, r, f, live.Ready, 5)
		f.Die()
		synctest.Wait()
		mustCallFake(t, r)
		expect(t, r, f, live.Ready, 6)
	}, lazy)
}

// TestCallsDuringIdleStop: a call that comes while the process is being stopped goes to
// the next one.
func TestCallsDuringIdleStop(t *testing.T) {
	f := &fake{Pings: never, Stops: 2 * time.Second}
	inTime(t, f, func(t *testing.T, r *Registry) {
		mustCallFake(t, r)
		session := r.Catalog().Upstream("a").Session
		<-session.Done() // it is unused for its idle time
		mustCallFake(t, r)
		expect(t, r, f, live.Ready, 3)
	}, lazy)
}

// TestApplyKeepsIdleTime: a reload that does not change the idle time does not begin it
// again, and a process that only fills the cache stops as soon as without a reload.
func TestApplyKeepsIdleTime(t *testing.T) {
	f := &fake{Pings: never}
	inTime(t, f, func(t *testing.T, r *Registry) {
		r.Apply(registrytest.Profile(lazy, func(u *config.Upstream) { u.IdleStop = time.Hour }))
		after(2 * fillTime)
		expect(t, r, f, live.Idle, 1)
		r.Apply(registrytest.Profile(lazy))
		mustCallFake(t, r)
		for range 5 {
			after(5 * time.Minute)
			r.Apply(registrytest.Profile(lazy, func(u *config.Upstream) { u.Description = time.Now().String() }))
		}
		synctest.Wait()
		expect(t, r, f, live.Idle, 2)
	}, lazy)
}

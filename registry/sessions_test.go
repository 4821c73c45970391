package registry

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/mcptest"
	"mcpx/internal/rpc"
	"mcpx/registry/link"
	"mcpx/registry/live"
	"mcpx/registry/registrytest"
	"mcpx/registry/upstream"
)

func TestIsolatedClientsHaveTheirOwnSessions(t *testing.T) {
	own := mcptest.Upstream(t, "-full")
	own["isolation"] = "client"
	r, _ := run(t, map[string]any{"a": own})
	one, two := newRecorder("one"), newRecorder("two")
	r.Attach(one)
	r.Attach(two)
	pids := map[string]bool{}
	for _, c := range []*recorder{one, two} {
		pid, err := callAs(t, r, c, "pid", "{}")
		if err != nil {
			t.Fatal(err)
		}
		if again, err := callAs(t, r, c, "pid", "{}"); err != nil || again != pid {
			t.Errorf("%s went from process %s to %s, %v", c.id, pid, again, err)
		}
		pids[pid] = true
	}
	pids[mustCall(t, r, "a", "pid", "{}")] = true // mcpx's own session
	if len(pids) != 3 {
		t.Errorf("%d processes, want 3", len(pids))
	}

	// What is not certain on a shared session is on one's own.
	if err := r.Subscribe(t.Context(), one, "a", "test://one", "test://one"); err != nil {
		t.Fatal(err)
	}
	if err := r.Subscribe(t.Context(), two, "a", "test://one", "test://one"); err != nil {
		t.Fatal(err)
	}
	if _, err := callAs(t, r, one, "say", `{"method":"notifications/resources/updated","params":[{"uri":"test://one"}]}`); err != nil {
		t.Fatal(err)
	}
	one.wait(t, `notifications/resources/updated {"uri":"test://one"}`)
	if got := two.heard("notifications/resources/updated"); got != nil {
		t.Errorf("two was told %q", got)
	}

	_, err := callAs(t, r, one, "crash", `{"status":3}`)
	var lost *upstream.Lost
	if !errors.As(err, &lost) {
		t.Errorf("error %v, want a *Lost", err)
	}
	if _, err := callAs(t, r, one, "pid", "{}"); err != nil {
		t.Errorf("after its death: %v", err)
	}
	r.Remove(one)(t.Context())
	if n := len(r.owned.sessionsOf("a")); n != 1 {
		t.Errorf("%d upstream sessions with an owner after one client has gone, want 1", n)
	}
}

// TestSessionsOfSessionlessClients: clients without a session share an upstream
// session if they have the same owner. The number of such sessions is limited.
func TestSessionsOfSessionlessClients(t *testing.T) {
	own := mcptest.Upstream(t)
	own["isolation"] = "client"
	r, _ := run(t, map[string]any{"a": own})
	pid := func(c *recorder) string {
		t.Helper()
		pid, err := callAs(t, r, c, "pid", "{}")
		if err != nil {
			t.Fatal(err)
		}
		return pid
	}
	stays := newRecorder("stays")
	r.Attach(stays)
	first := pid(stays)
	one, again := newRecorder("1"), newRecorder("2")
	one.owner, again.owner = "sender", "sender"
	if a, b := pid(one), pid(again); a != b || a == first {
		t.Errorf("processes %s, %s and %s, want one for the sender and another for the client with a session", a, b, first)
	}
	for _, c := range []*recorder{again, one} { // each gets the notifications of its own call, even if the other opened the session
		params := fmt.Sprintf(`{"level":"info","data":%q,"logger":"a"}`, c.id)
		if _, err := callAs(t, r, c, "say", `{"method":"notifications/message","params":[`+params+`]}`); err != nil {
			t.Fatal(err)
		}
		if got, want := c.heard("notifications/message"), fmt.Sprintf(`{"level":"info","data":%q,"logger":"a/a"}`, c.id); !slices.Equal(got, []string{want}) {
			t.Errorf("%s heard %q, want %s", c.id, got, want)
		}
	}
	for i := range maxSessionless - 1 { // the sender has one
		c := newRecorder(fmt.Sprint("passing ", i))
		if err := r.forCalls(c).ensureOwn(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
	_, err := callAs(t, r, newRecorder("one more"), "pid", "{}")
	var unavailable *live.Unavailable
	if !errors.As(err, &unavailable) || !strings.Contains(err.Error(), "clients without a session use it already") {
		t.Errorf("error %v, want that there are too many", err)
	}
	left, cancel := context.WithCancel(t.Context())
	cancel()
	r.Remove(stays)(t.Context())
	if _, err := r.sessionFor(left, "a", stays); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v for a client that has left", err)
	}
}

// TestSessionsOfSessionlessClientsExpire: the idle time begins when the last call is
// over.
func TestSessionsOfSessionlessClientsExpire(t *testing.T) {
	for _, c := range []struct {
		name   string
		f      *fake
		dialed int // for a call, 50 s, a call, and the session's end
	}{
		{"a short call", &fake{}, 2},
		{"a call of nearly a minute", &fake{Takes: sessionlessIdle - time.Second}, 2},
		{"a call of more than a minute", &fake{Takes: sessionlessIdle + 10*time.Second, Progress: 10 * time.Second}, 2},
		{"a slow start", &fake{Starts: sessionlessIdle + 10*time.Second}, 2},
		{"a stream that stays open", registrytest.New2026(), 3}, // the first one gets initialize before
	} {
		t.Run(c.name, func(t *testing.T) {
			inTime(t, c.f, func(t *testing.T, r *Registry) {
				for i := range 2 {
					client := newRecorder(fmt.Sprint("call ", i))
					client.owner = "sender"
					if _, err := call(t.Context(), r, client); err != nil {
						t.Error(err)
					}
					after(sessionlessIdle - 10*time.Second)
				}
				if n := len(c.f.Times()); n != c.dialed {
					t.Errorf("it was dialed %d times, want %d", n, c.dialed)
				}
				after(11*time.Second + sessionlessIdle/4) // its use is checked so often
				if n := len(r.owned.sessionsOf("a")); n != 0 {
					t.Errorf("%d sessions are left", n)
				}
			}, func(c *config.Upstream) { c.Isolation, c.StartupTimeout = config.PerClient, 5*time.Minute })
		})
	}
}

// TestSessionsOfClientsThatLeave: a client may leave while its call is about to open a session.
// Nothing of it is left.
func TestSessionsOfClientsThatLeave(t *testing.T) {
	f := &fake{Pings: never}
	inTime(t, f, func(t *testing.T, r *Registry) {
		c := newRecorder("one")
		r.Attach(c)
		ctx, cancel := context.WithCancel(t.Context())
		var calls sync.WaitGroup
		r.mu.Lock() // the call waits here
		calls.Go(func() {
			if _, err := call(ctx, r, c); !errors.Is(err, context.Canceled) {
				t.Errorf("the call ended with %v", err)
			}
		})
		for range 10_000 { // until it does
			runtime.Gosched()
		}
		cancel()
		r.clients.mu.Lock()
		delete(r.clients.attached, c.ID())
		r.clients.mu.Unlock()
		r.mu.Unlock()
		calls.Wait()
		if n := len(r.owned.byKey); n != 0 {
			t.Errorf("%d entries are left", n)
		}
	}, func(c *config.Upstream) { c.Isolation = config.PerClient })
}

// TestPerClientSessionsDoNotNeedTheSharedOne: while the shared session is down, a
// client keeps its own session, and another one opens its own as soon as the upstream
// can be reached. Calls in a row do not dial again and again.
func TestPerClientSessionsDoNotNeedTheSharedOne(t *testing.T) {
	f := &fake{}
	inTime(t, f, func(t *testing.T, r *Registry) {
		shared := f.Current
		call := func(c upstream.Client) error {
			_, err := call(t.Context(), r, c)
			return err
		}
		one, two := newRecorder("one"), newRecorder("two")
		r.Attach(one)
		r.Attach(two)
		if err := call(one); err != nil {
			t.Fatal(err)
		}
		f.Set(func(f *fake) { f.Down = true })
		shared.End(&link.Failure{Reason: "died on purpose"})
		after(0)
		if err := call(one); err != nil {
			t.Errorf("with a session of its own: %v", err)
		}
		dialed := len(f.Times())
		var unavailable *live.Unavailable
		for range 10 {
			if err := call(two); !errors.As(err, &unavailable) {
				t.Errorf("without one: %v", err)
			}
		}
		if n := len(f.Times()) - dialed; n != 1 {
			t.Errorf("10 calls in a row dialed %d times", n)
		}
		f.Set(func(f *fake) { f.Down, f.Dialed = false, nil })
		<-time.After(retryGrace)
		if err := call(two); err != nil {
			t.Errorf("once it can be reached: %v", err)
		}
	}, func(c *config.Upstream) { c.Isolation = config.PerClient })
}

// TestACallThatWasNotSent: the link accepts a call, and finds out later that it cannot
// send it. The call is then made over the next session, as Call does it.
func TestACallThatWasNotSent(t *testing.T) {
	calls := 0
	f := &fake{Script: func(l *fakeLink, method, id string, _ []byte) (bool, error) {
		if method != "tools/call" {
			return false, nil
		}
		if calls++; calls > 1 {
			return false, nil
		}
		l.Broken <- &link.CallEnd{ID: []byte(id), Outcome: link.NotSent}
		time.AfterFunc(time.Second, func() { l.End(&link.Failure{Reason: "unreachable"}) })
		return true, nil
	}}
	inTime(t, f, func(t *testing.T, r *Registry) {
		_, err := rpc.Wait(func(done rpc.Done) {
			r.Go(t.Context(), "a", upstream.Request{Method: "tools/call", Client: newRecorder("A")}, done)
		})
		if err != nil || calls != 2 {
			t.Errorf("%v after %d calls", err, calls)
		}
	})
}

// TestACallThatIsNeverSent: a call to an upstream that ends before each call can be sent does
// not start it over and over. The error says why it ended.
func TestACallThatIsNeverSent(t *testing.T) {
	for name, change := range map[string]func(u *config.Upstream){
		"lazy": lazy, "user": perUser, "client": func(u *config.Upstream) { u.Isolation = config.PerClient },
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{Pings: never, Script: func(l *fakeLink, method, id string, _ []byte) (bool, error) {
				if method != "tools/call" {
					return false, nil
				}
				l.Broken <- &link.CallEnd{ID: []byte(id), Outcome: link.NotSent}
				l.End(&link.Failure{Reason: "no license"})
				return true, nil
			}}
			inTime(t, f, func(t *testing.T, r *Registry) {
				after(time.Minute)
				before := len(f.Times())
				c := recorderOf("1", "ann")
				r.Attach(c)
				_, err := call(t.Context(), r, c)
				if starts := len(f.Times()) - before; err == nil || !strings.Contains(err.Error(), "no license") || starts < 1 || starts > maxTries {
					t.Errorf("%d starts, %v", starts, err)
				}
				r.Remove(c)(t.Context())
			}, change)
		})
	}
}

// TestTheEndOfASessionWhenMcpxStops: a call that finds its session closed does not
// wait for another one after mcpx has stopped.
func TestTheEndOfASessionWhenMcpxStops(t *testing.T) {
	link.Transports[registrytest.Transport] = (&fake{}).Dial
	defer delete(link.Transports, registrytest.Transport)
	synctest.Test(t, func(t *testing.T) {
		upstream := config.Upstream{Name: "a", Transport: registrytest.Transport, StartupTimeout: 30 * time.Second}
		r := New(&config.Profile{Upstreams: []config.Upstream{upstream}}, Options{Log: zerolog.Nop(), MessageBytes: 1 << 20, ConnectsAtOnce: 2})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = r.Run(ctx) })
		synctest.Wait()
		session := r.Catalog().Upstream("a").Session
		cancel()
		wg.Wait()
		limited, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if err := r.waitForEnd(limited, session); err != nil {
			t.Errorf("it waits in vain: %v", err)
		}
	})
}

// TestApplyWakesOwnWaiters: a call that waits for a client's own session goes to the one
// that replaces it.
func TestApplyWakesOwnWaiters(t *testing.T) {
	f := &fake{Pings: never}
	own := func(u *config.Upstream) { u.Isolation = config.PerClient }
	inTime(t, f, func(t *testing.T, r *Registry) {
		c := newRecorder("c")
		r.Attach(c)
		f.Set(func(f *fake) { f.Silent = true })
		begun := time.Now()
		var calls sync.WaitGroup
		calls.Go(func() {
			if _, err := call(t.Context(), r, c); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		f.Set(func(f *fake) { f.Silent = false })
		r.Apply(registrytest.Profile(own, newCommand))
		calls.Wait()
		if took := time.Since(begun); took > time.Second {
			t.Errorf("the call waited for %s", took)
		}
		r.Remove(c)(t.Context())
	}, own)
}

// TestCallsWhileStopping: a call to a client's own session fails as soon as the registry
// stops.
func TestCallsWhileStopping(t *testing.T) {
	f := &fake{Pings: never}
	inTime(t, f, func(t *testing.T, r *Registry) {
		c := newRecorder("c")
		r.Attach(c)
		r.stop()
		_, err := r.sessionFor(t.Context(), "a", c)
		var unavailable *live.Unavailable
		if !errors.As(err, &unavailable) {
			t.Errorf("a session while the registry stops: %v", err)
		}
		r.Remove(c)(t.Context())
	}, func(u *config.Upstream) { u.Isolation = config.PerClient })
}

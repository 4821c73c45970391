package registry

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/config"
	"mcpx/registry/live"
)

// must fails the test for an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestRestart: a restart fails the calls in flight and opens a new session, whatever state
// the upstream is in.
func TestRestart(t *testing.T) {
	f := &fake{Pings: never, Takes: time.Hour}
	inTime(t, f, func(t *testing.T, r *Registry) {
		var lost error
		var calls sync.WaitGroup
		calls.Go(func() { _, lost = call(t.Context(), r, nil) })
		synctest.Wait()
		must(t, r.Restart("a"))
		calls.Wait()
		after(time.Second)
		expect(t, r, f, live.Ready, 2)
		if lost == nil || !strings.Contains(lost.Error(), "a person has stopped it") {
			t.Errorf("the call in flight ended with %v", lost)
		}
		must(t, r.Stop("a"))
		after(time.Second)
		must(t, r.Restart("a"))
		after(time.Second)
		expect(t, r, f, live.Ready, 3)
	})
}

// TestStop: a stopped upstream refuses calls and is not started, until a person starts it.
func TestStop(t *testing.T) {
	for _, v := range []struct {
		name   string
		change func(u *config.Upstream)
		starts time.Duration
		before func(t *testing.T, r *Registry)
		dialed int // before the stop
	}{
		{"ready", nil, 0, func(*testing.T, *Registry) {}, 1},
		{"starting", nil, 10 * time.Second, func(*testing.T, *Registry) {}, 1},
		{"idle", lazy, 0, func(*testing.T, *Registry) { after(time.Minute) }, 1},
	} {
		t.Run(v.name, func(t *testing.T) {
			change := v.change
			if change == nil {
				change = func(*config.Upstream) {}
			}
			f := &fake{Pings: never, Starts: v.starts}
			inTime(t, f, func(t *testing.T, r *Registry) {
				v.before(t, r)
				must(t, r.Stop("a"))
				after(time.Hour)
				expect(t, r, f, live.Stopped, v.dialed)
				var down *live.Unavailable
				if _, err := call(t.Context(), r, nil); !errors.As(err, &down) || !strings.Contains(down.Reason, "stopped in the console") {
					t.Errorf("a call gets %v", err)
				}
				expect(t, r, f, live.Stopped, v.dialed)
				f.Set(func(f *fake) { f.Starts = 0 })
				must(t, r.Start("a"))
				after(time.Second)
				expect(t, r, f, live.Ready, v.dialed+1)
				mustCallFake(t, r)
			}, change)
		})
	}
}

// TestStopEndsOwnSessions: with an upstream, the sessions of clients and callers are stopped,
// and no new ones are opened before a person starts it.
func TestStopEndsOwnSessions(t *testing.T) {
	for _, isolation := range []config.Isolation{config.PerClient, config.PerUser} {
		t.Run(string(isolation), func(t *testing.T) {
			f := &fake{Pings: never, Takes: time.Second}
			inTime(t, f, func(t *testing.T, r *Registry) {
				ann, bob := recorderOf("1", "ann"), recorderOf("2", "bob")
				r.Attach(ann)
				r.Attach(bob)
				var lost error
				var calls sync.WaitGroup
				calls.Go(func() { _, lost = call(t.Context(), r, ann) })
				synctest.Wait()
				must(t, r.Stop("a"))
				calls.Wait()
				if lost == nil || !strings.Contains(lost.Error(), "a person has stopped it") {
					t.Errorf("the call in flight ended with %v", lost)
				}
				dialed := len(f.Times())
				for _, c := range []*recorder{ann, bob} {
					if _, err := call(t.Context(), r, c); err == nil || !strings.Contains(err.Error(), live.HeldReason) || len(f.Times()) != dialed {
						t.Errorf("a call of %s: %v, dialed %d times", c.id, err, len(f.Times()))
					}
				}
				must(t, r.Start("a"))
				synctest.Wait()
				for _, c := range []*recorder{ann, bob} {
					if _, err := call(t.Context(), r, c); err != nil {
						t.Errorf("a call of %s after the start: %v", c.id, err)
					}
				}
				r.Remove(ann)(t.Context())
				r.Remove(bob)(t.Context())
			}, func(u *config.Upstream) {
				u.Isolation = isolation
				if isolation == config.PerUser {
					perUser(u)
				}
			})
		})
	}
}

// TestControlRefuses: an unknown upstream, or one that can never start, is not controlled.
func TestControlRefuses(t *testing.T) {
	inTime(t, &fake{Pings: never}, func(t *testing.T, r *Registry) {
		if err := r.Restart("b"); !errors.Is(err, ErrUnknown) {
			t.Errorf("an unknown upstream: %v", err)
		}
		if err := r.Stop("a"); !errors.Is(err, ErrUnusable) {
			t.Errorf("an unusable upstream: %v", err)
		}
	}, func(u *config.Upstream) { u.Err = errors.New("a variable is not set") })
}

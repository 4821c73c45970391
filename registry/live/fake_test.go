package live

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"mcpx/config"
	"mcpx/internal/mcptest"
	"mcpx/registry/registrytest"
)

// inTime runs a test of a supervisor of a fake upstream in a synctest bubble, where an hour
// takes no time. The limits are the defaults.
func inTime(t *testing.T, f *registrytest.Fake, test func(t *testing.T, s *Supervisor), changes ...func(c *config.Upstream)) {
	t.Helper()
	inTimeWith(t, f, Options{}, test, changes...)
}

// inTimeWith is inTime with more options.
func inTimeWith(t *testing.T, f *registrytest.Fake, o Options, test func(t *testing.T, s *Supervisor), changes ...func(c *config.Upstream)) {
	t.Helper()
	mcptest.NothingLeft(t)
	f.InTime(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		h := &host{}
		o.Log, o.MessageBytes, o.ConnectsAtOnce, o.Cache, o.PingEvery, o.Views = f.Log, 1<<20, 2, f.Cache, f.Pings, f.Views
		h.supervisor = New(NewGroup(ctx, h, o), &registrytest.Profile(changes...).Upstreams[0])
		var running sync.WaitGroup
		running.Go(h.supervisor.Run)
		synctest.Wait()
		test(t, h.supervisor)
		stop()
		running.Wait()
		if u := h.supervisor.Upstream(); u.State != Stopped {
			t.Errorf("it is %s after the end", u.State)
		}
	})
}

// expect fails unless the upstream is in a state and was dialed so many times.
func expect(t *testing.T, s *Supervisor, f *registrytest.Fake, state State, dialed int) {
	t.Helper()
	if u := s.Upstream(); u.State != state || len(f.Times()) != dialed {
		t.Fatalf("it is %s (%s), and was dialed %d times; want %s and %d", u.State, u.Reason, len(f.Times()), state, dialed)
	}
}

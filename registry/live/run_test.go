package live

import (
	"testing"
	"time"

	"mcpx/registry/registrytest"
)

func TestAnUpstreamThatNeverStarts(t *testing.T) {
	f := &registrytest.Fake{Down: true}
	inTime(t, f, func(t *testing.T, _ *Supervisor) {
		registrytest.After(200 * time.Second)
		got := f.Times()
		least, most := 0.0, 0.0
		for i, wait := range []float64{0, 1, 2, 4, 8, 16, 32, 60} { // each may be a fifth shorter
			least, most = least+wait*0.8, most+wait
			if i >= len(got) || got[i] < least || got[i] > most+0.001 {
				t.Fatalf("attempt %d of %v, want one between %g and %g", i, got, least, most)
			}
		}
	})
}

func TestAHealthyUpstreamIsStartedAgainAtOnce(t *testing.T) {
	f := &registrytest.Fake{}
	inTime(t, f, func(t *testing.T, s *Supervisor) {
		ready := func() bool { return s.Upstream().State == Ready }
		registrytest.After(10 * time.Second)
		f.Die()
		registrytest.After(0)
		if !ready() || len(f.Times()) != 2 {
			t.Errorf("after the first death: ready %v, attempts at %v", ready(), f.Times())
		}
		f.Die()
		registrytest.After(700 * time.Millisecond)
		if u := s.Upstream(); u.State != Waiting || u.Reason != "died on purpose" {
			t.Errorf("after the second death it is %s (%s), want it to wait", u.State, u.Reason)
		}
		registrytest.After(300 * time.Millisecond)
		if !ready() {
			t.Error("it does not come back within a second")
		}
		registrytest.After(time.Minute) // of health, which forgives everything
		f.Die()
		registrytest.After(0)
		if !ready() {
			t.Error("after a minute of health it is not started again at once")
		}
	})
}

func TestTheStartupLimit(t *testing.T) {
	f := &registrytest.Fake{Silent: true}
	inTime(t, f, func(t *testing.T, s *Supervisor) {
		registrytest.After(30*time.Second - time.Millisecond)
		if u := s.Upstream(); u.State != Starting {
			t.Errorf("before its limit it is %s (%s)", u.State, u.Reason)
		}
		registrytest.After(2 * time.Millisecond)
		if u := s.Upstream(); u.State != Waiting || u.Reason != `not ready within 30s (its "startup_timeout")` {
			t.Errorf("after its limit it is %s (%s)", u.State, u.Reason)
		}
	})
}

// TestAShutdownStartsNothing: mcpx stops while an upstream waits for its next
// start. inTime checks that it is not started.
func TestAShutdownStartsNothing(t *testing.T) {
	f := &registrytest.Fake{Down: true}
	inTime(t, f, func(t *testing.T, s *Supervisor) {
		registrytest.After(4 * time.Second)
		if u := s.Upstream(); u.State != Waiting {
			t.Errorf("it is %s", u.State)
		}
		f.Set(func(f *registrytest.Fake) { f.Down = false })
	})
}

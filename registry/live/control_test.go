package live

import (
	"testing"
	"time"

	"mcpx/registry/registrytest"
)

// TestStopWhileWaiting: a stop ends the tries of an upstream that fails.
func TestStopWhileWaiting(t *testing.T) {
	f := &registrytest.Fake{Pings: registrytest.Never}
	inTime(t, f, func(t *testing.T, s *Supervisor) {
		f.Set(func(f *registrytest.Fake) { f.Down = true })
		f.Die()
		registrytest.After(5 * time.Second)
		if u := s.Upstream(); u.State != Waiting {
			t.Fatalf("it is %s", u.State)
		}
		tries := len(f.Times())
		s.Stop()
		registrytest.After(time.Hour)
		expect(t, s, f, Stopped, tries)
	})
}

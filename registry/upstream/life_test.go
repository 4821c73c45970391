package upstream

import (
	"testing"
	"time"
)

// initialized runs a test of a session that was opened with initialize.
func initialized(t *testing.T, test func(t *testing.T, f fixture)) {
	t.Helper()
	inTime(t, func(t *testing.T, f fixture) {
		if _, err := f.Initialize(t.Context()); err != nil {
			t.Fatal(err)
		}
		test(t, f)
	})
}

// TestPings: an idle session is pinged, one with a call is not.
func TestPings(t *testing.T) {
	initialized(t, func(t *testing.T, f fixture) {
		pings := func(when string, want int) {
			t.Helper()
			if n := len(f.peer.got("ping")); n != want {
				t.Errorf("%s: %d pings, want %d", when, n, want)
			}
		}
		after(3*pingEvery + time.Second)
		pings("idle", 3)
		f.peer.answer("tools/call", done, 10*time.Minute)
		if _, err := f.Request(t.Context(), "tools/call", nil); err != nil {
			t.Error(err)
		}
		pings("after a call", 3)
		f.peer.answer("ping", `"error":{"code":-32601,"message":"no"}`, 0)
		after(2 * pingEvery)
		pings("idle again", 5)
		if f.IsOver() {
			t.Errorf("it has ended, though it responds: %v", f.Err())
		}
	})
}

// TestSilentSessionEnds: an idle session that does not respond to a ping in time ends. An
// upstream that handles one request at a time may handle a call before an earlier ping: it
// is not silent meanwhile.
func TestSilentSessionEnds(t *testing.T) {
	initialized(t, func(t *testing.T, f fixture) {
		f.peer.on("ping", nil)
		after(pingEvery)
		f.peer.answer("tools/call", done, 50*time.Second)
		if _, err := f.call(t.Context(), nil); err != nil {
			t.Error(err)
		}
		after(10 * time.Second) // the next ping
		after(pingEvery - time.Second)
		if f.IsOver() {
			t.Errorf("before its time is over: %v", f.Err())
		}
		after(time.Second)
		if !f.IsOver() || f.Err().Error() != "no response to ping within 30s" {
			t.Errorf("it has ended: %t, %v", f.IsOver(), f.Err())
		}
	})
}

package server

import (
	"net/http/httptest"
	"testing"
	"time"
)

// one opens a session to look at.
func one(t *testing.T, all *sessions) *session {
	t.Helper()
	n, err := all.open(bare(), httptest.NewRequestWithContext(t.Context(), "POST", "/mcp", nil))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// stands reports whether a stream that is opened now stays open.
func stands(n *session) bool {
	out := newStream(usualTimes)
	n.listen(out)
	_, ended := out.take()
	return !ended
}

// TestAStreamComesTooLate: one whose request found the session just before that
// ended would never end, and nobody would say anything on it.
func TestAStreamComesTooLate(t *testing.T) {
	all := newSessions(10, time.Hour)
	n := one(t, all)
	if !stands(n) {
		t.Error("a stream of an open session does not stand")
	}
	all.end(n)
	if stands(n) {
		t.Error("a stream of a session that has ended stands")
	}
}

// TestASessionOpensDuringTheEnd: its stream would hold up the end, which waits for
// all that is open.
func TestASessionOpensDuringTheEnd(t *testing.T) {
	h := &HTTP{Servers: map[string]*Server{"default": bare()}, Sessions: 10, Idle: time.Hour}
	h.Handler()
	h.closeStreams()
	n := one(t, h.sessions)
	if stands(n) {
		t.Error("its stream stands")
	}
	select {
	case <-n.client.goodbye():
	default:
		t.Error("its subscriptions do not end")
	}
}

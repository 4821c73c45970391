package server

import (
	"io"
	"net/http"
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

// TestAMessageComesDuringTheEnd: it is not accepted if its answer has no stream
// to come on any more.
func TestAMessageComesDuringTheEnd(t *testing.T) {
	h := &HTTP{Servers: map[string]*Server{"default": bare()}, BodyBytes: 1000, Sessions: 10, Idle: time.Hour}
	handler := h.Handler()
	n := one(t, h.sessions)
	n.carryAnswers()
	n.listen(newStream(usualTimes))
	body, client := io.Pipe()
	go func() {
		message := request("ping", "")
		_, _ = io.WriteString(client, message[:1]) // it is read when the session was found
		h.closeStreams()
		_, _ = io.WriteString(client, message[1:])
		_ = client.Close()
	}()
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost/message?sessionId="+n.id, body))
	if w.Code != http.StatusNotFound {
		t.Errorf("answered with %d %s", w.Code, w.Body)
	}
	if n.idleFor() == 0 {
		t.Error("the session stays busy")
	}
}

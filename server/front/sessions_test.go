package front

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/rawjson"
	"mcpx/server"
)

// streamBytes is what a client may leave unread in these tests.
const streamBytes = defaultUnread

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
	out := newStream(defaultTimes, streamBytes)
	n.setStream(out)
	_, ended := out.pop()
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
	h := &HTTP{Servers: map[string]*server.Server{"default": bare()}, Sessions: 10, Idle: time.Hour}
	h.Handler()
	h.closeStreams()
	n := one(t, h.sessions)
	if stands(n) {
		t.Error("its stream stands")
	}
	select {
	case <-n.client.Ended:
	default:
		t.Error("its subscriptions do not end")
	}
}

// TestARequestBeginsAfterAllWereCancelled: when the drain time is over, calls that
// waited for room must not take the place of those that were cancelled.
func TestARequestBeginsAfterAllWereCancelled(t *testing.T) {
	all := newSessions(10, time.Hour)
	n := one(t, all)
	n.carryAnswers(1)
	before, _ := n.client.Conn.Begin(context.Background(), []byte("1"), 0)
	if !n.client.Quota.Enter() {
		t.Fatal("no room")
	}
	waiting := make(chan error, 1)
	go func() {
		_, err := n.room(t.Context(), server.Read([]byte(request("ping", ""))))
		waiting <- err
	}()
	all.cancelAll(errStopping)
	select {
	case err := <-waiting:
		if err == nil {
			t.Error("a call got room")
		}
	case <-time.After(2 * time.Second):
		t.Error("a call waits for room")
	}
	after, _ := n.client.Conn.Begin(context.Background(), []byte("2"), 0)
	if !before.IsCancelledBy(errStopping) || !after.IsCancelledBy(errStopping) {
		t.Error("a request was not cancelled")
	}
}

// TestAMessageComesDuringTheEnd: it is not accepted if its answer has no stream
// to come on any more.
func TestAMessageComesDuringTheEnd(t *testing.T) {
	h := &HTTP{Servers: map[string]*server.Server{"default": bare()}, BodyBytes: 1000, Sessions: 10, Idle: time.Hour, Unread: streamBytes}
	handler := h.Handler()
	n := one(t, h.sessions)
	n.useLegacySSE(0)
	n.setStream(newStream(defaultTimes, streamBytes))
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
	if n.busy > 0 {
		t.Error("the session stays busy")
	}
}

// TestASessionIsFoundAsItExpires: it has either gone, or stays for the request
// that found it.
func TestASessionIsFoundAsItExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newSessions(10_000, time.Millisecond)
		defer all.close()
		all.tasks.Go(all.expire)
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/mcp", nil)
		for range 20 { // who comes first is left to chance
			var ids []string
			for range 200 {
				ids = append(ids, one(t, all).id)
			}
			<-time.After(time.Second) // which is when they expire
			found := map[*session]func(){}
			for _, id := range ids {
				if n, done := all.find(id, streamableHTTP, r); n != nil {
					found[n] = done
				}
			}
			synctest.Wait()
			for n, done := range found {
				if n.isOver() {
					t.Fatal("a session has ended that was found")
				}
				done()
			}
		}
	})
}

// TestAnswersWaitForTheirStream: a client of the older transport that reads slowly
// gets every answer.
func TestAnswersWaitForTheirStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &HTTP{Servers: map[string]*server.Server{"default": bare()}, BodyBytes: 1000, Sessions: 10, Idle: time.Hour, Unread: streamBytes}
		handler := h.Handler()
		n := one(t, h.sessions)
		n.useLegacySSE(0)
		out := newStream(defaultTimes, streamBytes)
		n.setStream(out)
		if err := n.send(make([]byte, streamBytes)); err != nil {
			t.Fatal(err)
		}
		post := func() {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost/message?sessionId="+n.id, strings.NewReader(request("ping", ""))))
			if w.Code != http.StatusAccepted {
				t.Errorf("answered with %d %s", w.Code, w.Body)
			}
			synctest.Wait()
		}
		post()
		read, _ := out.pop()
		out.written(read)
		synctest.Wait()
		read, _ = out.pop()
		if len(read) != 1 || string(read[0]) != result("{}") {
			t.Errorf("the stream has %q, want the answer", read)
		}
		out.written(read)
		if err := n.send(make([]byte, streamBytes)); err != nil {
			t.Fatal(err)
		}
		post()
		h.sessions.end(n) // which nobody who waits outlives
		synctest.Wait()
		if n.busy > 0 {
			t.Error("the session stays busy")
		}
	})
}

// TestACallKeepsToItsStream: what there is no room for on it comes on no other, as
// long as the call is under way.
func TestACallKeepsToItsStream(t *testing.T) {
	n := one(t, newSessions(10, time.Hour))
	getStream, own := newStream(defaultTimes, streamBytes), newStream(defaultTimes, streamBytes)
	n.setStream(getStream)
	c := call{client: n.client}
	if err := own.Send(make([]byte, streamBytes)); err != nil {
		t.Fatal(err)
	}
	if err := c.send(own, []byte("one too many")); err == nil {
		t.Error("it was sent")
	}
	if got, _ := getStream.pop(); len(got) != 0 {
		t.Errorf("the GET stream has %q", got)
	}
	own.close()
	if err := c.send(own, []byte("after the end")); err != nil {
		t.Error(err)
	}
	if got, _ := getStream.pop(); len(got) != 1 {
		t.Errorf("the GET stream has %q", got)
	}
}

// TestHandlerTwice: a second call of Handler returns the same handler, with the
// sessions there are.
func TestHandlerTwice(t *testing.T) {
	h := &HTTP{Servers: map[string]*server.Server{"default": bare()}, Sessions: 10, Idle: time.Hour}
	h.Handler()
	n := one(t, h.sessions)
	h.Handler()
	found, done := h.sessions.find(n.id, streamableHTTP, httptest.NewRequestWithContext(t.Context(), "POST", "/mcp", nil))
	if found != n {
		t.Fatal("the session is gone")
	}
	done()
}

// TestBacklog: requests come out in their order; one that is queued can be
// cancelled, a batch, which has no ID, cannot.
func TestBacklog(t *testing.T) {
	b := newBacklog()
	for i := range 5 {
		b.add(server.Read([]byte(request("ping", fmt.Sprintf(`{"n":%d}`, i)))))
	}
	b.queue[2].Message.ID, b.queue[3].Message.ID = []byte("7"), nil
	if b.cancel(nil) || b.cancel([]byte("8")) || !b.cancel([]byte("7")) || b.cancel([]byte("7")) {
		t.Error("the wrong request is cancelled")
	}
	var order []string
	for !b.isEmpty() {
		p, ok := b.pop()
		if !ok || b.isEmpty() {
			t.Fatal("a request that starts counts as started")
		}
		order = append(order, string(rawjson.Get(p.Message.Params, "n")))
		b.started()
	}
	if got := strings.Join(order, " "); got != "0 1 3 4" || b.bytes != 0 {
		t.Errorf("the order is %s, %d bytes are left", got, b.bytes)
	}
}

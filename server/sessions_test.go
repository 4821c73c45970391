package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/rawjson"
)

// streamBytes is what a client may leave unread in these tests.
const streamBytes = usualUnread

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
	out := newStream(usualTimes, streamBytes)
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
	case <-n.client.ended:
	default:
		t.Error("its subscriptions do not end")
	}
}

// TestAMessageComesDuringTheEnd: it is not accepted if its answer has no stream
// to come on any more.
func TestAMessageComesDuringTheEnd(t *testing.T) {
	h := &HTTP{Servers: map[string]*Server{"default": bare()}, BodyBytes: 1000, Sessions: 10, Idle: time.Hour, Unread: streamBytes}
	handler := h.Handler()
	n := one(t, h.sessions)
	n.carryAnswers()
	n.listen(newStream(usualTimes, streamBytes))
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
				if n, done := all.find(id, false, r); n != nil {
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
		h := &HTTP{Servers: map[string]*Server{"default": bare()}, BodyBytes: 1000, Sessions: 10, Idle: time.Hour, Unread: streamBytes}
		handler := h.Handler()
		n := one(t, h.sessions)
		n.carryAnswers()
		out := newStream(usualTimes, streamBytes)
		n.listen(out)
		if err := n.tell(make([]byte, streamBytes)); err != nil {
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
		read, _ := out.take()
		out.written(read)
		synctest.Wait()
		read, _ = out.take()
		if len(read) != 1 || string(read[0]) != result("{}") {
			t.Errorf("the stream has %q, want the answer", read)
		}
		out.written(read)
		if err := n.tell(make([]byte, streamBytes)); err != nil {
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
	standing, own := newStream(usualTimes, streamBytes), newStream(usualTimes, streamBytes)
	n.listen(standing)
	c := call{client: n.client}
	if err := own.Send(make([]byte, streamBytes)); err != nil {
		t.Fatal(err)
	}
	if err := c.send(own, []byte("one too many")); err == nil {
		t.Error("it was sent")
	}
	if got, _ := standing.take(); len(got) != 0 {
		t.Errorf("the standing stream has %q", got)
	}
	own.close()
	if err := c.send(own, []byte("after the end")); err != nil {
		t.Error(err)
	}
	if got, _ := standing.take(); len(got) != 1 {
		t.Errorf("the standing stream has %q", got)
	}
}

// TestHandlerTwice: a second call of Handler returns the same handler, with the
// sessions there are.
func TestHandlerTwice(t *testing.T) {
	h := &HTTP{Servers: map[string]*Server{"default": bare()}, Sessions: 10, Idle: time.Hour}
	h.Handler()
	n := one(t, h.sessions)
	h.Handler()
	found, done := h.sessions.find(n.id, false, httptest.NewRequestWithContext(t.Context(), "POST", "/mcp", nil))
	if found != n {
		t.Fatal("the session is gone")
	}
	done()
}

// TestQuota: calls and unread answers are bounded, and so are the calls that wait.
func TestQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuota(2, 100)
		for i := range 3 {
			if got := q.enter(); got != (i < 2) {
				t.Errorf("call %d: %v", i, got)
			}
		}
		q.leave()
		release := q.hold(make([]byte, 101))
		if q.enter() {
			t.Error("a call begins though too much is unread")
		}
		release()
		if !q.enter() {
			t.Error("no call begins though there is room")
		}
		const waiting = 3
		ended := make(chan error, waiting)
		for range waiting {
			go func() { ended <- q.wait(t.Context(), maxQueuedBytes/waiting) }()
		}
		synctest.Wait()
		if err := q.wait(t.Context(), maxQueuedBytes/waiting); !errors.Is(err, errNoRoom) {
			t.Errorf("more bytes wait than may: %v", err)
		}
		for range waiting {
			q.leave()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		roomy, over := newQuota(2, 100), context.Canceled
		cancelled, stop := context.WithCancelCause(t.Context())
		stop(over)
		if err := roomy.wait(cancelled, 0); !errors.Is(err, over) || roomy.calls != 0 {
			t.Errorf("a call begins though its context has ended: %v", err)
		}
		go func() { ended <- q.wait(ctx, 0) }()
		synctest.Wait()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) || q.queued != 0 || q.bytes != 0 || q.calls != 2 {
			t.Errorf("%v, and the quota has %d and %d waiting, %d calls", err, q.queued, q.bytes, q.calls)
		}
	})
}

// TestBacklog: requests come out in their order; one that is queued can be
// cancelled, a batch, which has no ID, cannot.
func TestBacklog(t *testing.T) {
	b := newBacklog()
	for i := range 5 {
		b.add(parse([]byte(request("ping", fmt.Sprintf(`{"n":%d}`, i)))))
	}
	b.queue[2].message.ID, b.queue[3].message.ID = []byte("7"), nil
	if b.cancel(nil) || b.cancel([]byte("8")) || !b.cancel([]byte("7")) || b.cancel([]byte("7")) {
		t.Error("the wrong request is cancelled")
	}
	var order []string
	for !b.isEmpty() {
		p, ok := b.pop()
		if !ok || b.isEmpty() {
			t.Fatal("a request that starts counts as started")
		}
		order = append(order, string(rawjson.Get(p.message.Params, "n")))
		b.started()
	}
	if got := strings.Join(order, " "); got != "0 1 3 4" || b.bytes != 0 {
		t.Errorf("the order is %s, %d bytes are left", got, b.bytes)
	}
}

// TestABatchKeepsToTheQuota: the requests of a batch run at the same time as far as
// the client's quota allows, and at least one does.
func TestABatchKeepsToTheQuota(t *testing.T) {
	for most, want := range map[int]int{1: 1, 3: 3, 100: 20} {
		synctest.Test(t, func(t *testing.T) {
			c := newClient("one", true, nil)
			c.quota = newQuota(most, 0)
			c.quota.enter() // the batch itself
			var running, peak atomic.Int32
			var parts []func(reply func(answer []byte))
			for range 20 {
				parts = append(parts, func(reply func(answer []byte)) {
					now := running.Add(1)
					for old := peak.Load(); now > old && !peak.CompareAndSwap(old, now); old = peak.Load() {
					}
					<-time.After(time.Second)
					running.Add(-1)
					reply([]byte("{}"))
				})
			}
			if n := len(c.runBatch(parts)); n != 20 || peak.Load() != int32(want) || c.quota.calls != 1 {
				t.Errorf("quota %d: %d answers, %d at the same time, %d calls are left", most, n, peak.Load(), c.quota.calls)
			}
		})
	}
}

package httpfront

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/config"
	"mcpx/server"
)

// one opens a session.
func one(t *testing.T, all *sessions) *Session {
	t.Helper()
	n, err := all.open(bare(), httptest.NewRequestWithContext(t.Context(), "POST", "/mcp", nil), streamableHTTP)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// staysOpen reports whether a stream that is opened now stays open.
func staysOpen(n *Session) bool {
	out := newTestStream()
	n.setStream(out)
	_, ended := out.pop()
	return !ended
}

// TestAStreamComesTooLate: a stream whose session has just ended does not stay open.
func TestAStreamComesTooLate(t *testing.T) {
	all := newSessions(config.Limits{Sessions: 10, SessionIdle: time.Hour})
	n := one(t, all)
	if !staysOpen(n) {
		t.Error("a stream of an open session does not stand")
	}
	all.end(n)
	if staysOpen(n) {
		t.Error("a stream of a session that has ended stays open")
	}
}

// TestASessionOpensDuringTheEnd: its stream does not delay the shutdown.
func TestASessionOpensDuringTheEnd(t *testing.T) {
	h := &HTTP{Servers: map[string]*server.Server{"default": bare()}, Limits: config.Limits{Sessions: 10, SessionIdle: time.Hour}}
	h.Handler()
	h.closeStreams()
	n := one(t, h.sessions)
	if staysOpen(n) {
		t.Error("its stream stays open")
	}
	select {
	case <-n.client.Ended:
	default:
		t.Error("its subscriptions do not end")
	}
}

// TestAMessageComesDuringTheEnd: it is not accepted if its answer has no stream any
// more.
func TestAMessageComesDuringTheEnd(t *testing.T) {
	h := &HTTP{Servers: map[string]*server.Server{"default": bare()}, Limits: config.Limits{BodyBytes: 1000, Sessions: 10, SessionIdle: time.Hour, UnreadBytes: streamBytes}}
	handler := h.Handler()
	n := one(t, h.sessions)
	n.useLegacySSE()
	n.setStream(newTestStream())
	body, client := io.Pipe()
	go func() {
		message := request("ping", "")
		_, _ = io.WriteString(client, message[:1]) // it is read when the session was found
		h.closeStreams()
		_, _ = io.WriteString(client, message[1:])
		_ = client.Close()
	}()
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, postTo(t.Context(), "/message?sessionId="+n.id, body))
	if w.Code != http.StatusNotFound {
		t.Errorf("answered with %d %s", w.Code, w.Body)
	}
	if n.busy > 0 {
		t.Error("the session stays busy")
	}
}

// TestASessionIsFoundAsItExpires: it either is gone, or stays for the request that
// found it.
func TestASessionIsFoundAsItExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newSessions(config.Limits{Sessions: 10_000, SessionIdle: time.Millisecond})
		defer all.close()
		all.tasks.Go(all.expire)
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/mcp", nil)
		for range 20 { // who comes first is left to chance
			var ids []string
			for range 200 {
				ids = append(ids, one(t, all).id)
			}
			<-time.After(time.Second) // which is when they expire
			found := map[*Session]func(){}
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

func TestSessionsAreBounded(t *testing.T) {
	s := serveHTTP(t)
	var last string
	for range 3 {
		last = s.open(t, "{}")
	}
	for _, method := range [][3]string{{"POST", "/mcp", request("initialize", `{"protocolVersion":"2025-06-18"}`)}, {"GET", "/sse", ""}} {
		r := s.do(t, method[0], method[1], method[2])
		if got := whole(t, r); !strings.HasPrefix(got, "503 ") || !strings.Contains(got, "limits.sessions") || r.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %s", method[1], got)
		}
	}
	if got := whole(t, s.do(t, "POST", "/mcp", request("ping", ""), sessionHeader, last)); got != `200 {"jsonrpc":"2.0","id":1,"result":{}}` {
		t.Errorf("a live session answers %s", got)
	}
}

func TestIdleSessionsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newSessions(config.Limits{Sessions: 10, SessionIdle: time.Minute})
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/mcp", nil)
		idle, err := all.open(bare(), r, streamableHTTP)
		if err != nil {
			t.Fatal(err)
		}
		busy, err := all.open(bare(), r, streamableHTTP)
		if err != nil {
			t.Fatal(err)
		}
		_, done := all.find(busy.id, streamableHTTP, r)
		all.tasks.Go(all.expire)
		<-time.After(2 * time.Minute)
		if n, _ := all.find(idle.id, streamableHTTP, r); n != nil || idle.client.Conn.Context().Err() == nil {
			t.Error("the idle session is still there")
		}
		if n, again := all.find(busy.id, streamableHTTP, r); n == nil {
			t.Error("the busy one has gone")
		} else {
			again()
		}
		done()
		<-time.After(2 * time.Minute)
		if n, _ := all.find(busy.id, streamableHTTP, r); n != nil {
			t.Error("it stays though it is idle now")
		}
		all.close()
		synctest.Wait()
	})
}

// TestAskedClientLeaves: an upstream does not wait for a client that has left.
func TestAskedClientLeaves(t *testing.T) {
	s := serveHTTP(t, upstream(t, "one"))
	id := s.open(t, `{"roots":{}}`)
	getStream := events(s.do(t, "GET", "/mcp", "", sessionHeader, id))
	n, done := s.sessions.find(id, streamableHTTP, httptest.NewRequest(http.MethodGet, "/", nil))
	done()
	asked := make(chan error, 1)
	go func() {
		_, err := n.client.Request(t.Context(), "roots/list", nil)
		asked <- err
	}()
	if !getStream.Scan() || !strings.Contains(getStream.Text(), `"method":"roots/list"`) {
		t.Fatalf("the stream has %s", getStream.Text())
	}
	if got := whole(t, s.do(t, "DELETE", "/mcp", "", sessionHeader, id)); got != "204 " {
		t.Fatal(got)
	}
	if err := <-asked; err == nil || !strings.Contains(err.Error(), "the client has left") {
		t.Errorf("the question ends with %v", err)
	}
}

// TestARequestBeginsAfterAllWereCanceled: when the drain time is over, calls that
// waited for room must not take the place of those that were canceled.
func TestARequestBeginsAfterAllWereCanceled(t *testing.T) {
	all := newSessions(config.Limits{Sessions: 10, SessionIdle: time.Hour})
	n := one(t, all)
	n.useLegacySSE()
	before, _ := n.client.Conn.Begin(context.Background(), []byte("1"), 0)
	if !n.client.Quota.TryAcquire() {
		t.Fatal("no room")
	}
	waiting, _ := n.client.Conn.Begin(context.Background(), []byte("3"), 0)
	started := make(chan struct{})
	n.client.Quota.Start(waiting, 0, func(func(response []byte)) { close(started) }, nil)
	all.cancelAll(server.ErrStopping)
	select {
	case <-started:
	case <-time.After(2 * time.Second):
		t.Error("a call waits for room")
	}
	after, _ := n.client.Conn.Begin(context.Background(), []byte("2"), 0)
	if !before.IsCanceledBy(server.ErrStopping) || !waiting.IsCanceledBy(server.ErrStopping) || !after.IsCanceledBy(server.ErrStopping) {
		t.Error("a request was not canceled")
	}
}

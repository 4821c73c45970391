package httpfront

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/config"
	"mcpx/server"
)

func TestSSE(t *testing.T) {
	s := serveHTTP(t, upstream(t, "one"))
	r := s.do(t, "GET", "/sse", "")
	e := events(r)
	if !e.Scan() || !strings.HasPrefix(e.Text(), "/message?sessionId=") {
		t.Fatalf("the stream begins with %s", e.Text())
	}
	path := e.Text()
	if got := whole(t, s.do(t, "POST", path, request("initialize", `{"protocolVersion":"2024-11-05","capabilities":{}}`))); got != "202 Accepted" {
		t.Errorf("posting is answered with %s", got)
	}
	if want := `"protocolVersion":"2024-11-05"`; !e.Scan() || !strings.Contains(e.Text(), want) {
		t.Errorf("the stream has %s, want %s", e.Text(), want)
	}
	for _, row := range [][2]string{
		{`hello`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: not valid JSON"}}`},
		{`{"id":5,"method":"ping"}`, `{"jsonrpc":"2.0","id":5,"error":{"code":-32600,"message":"Invalid request: \"jsonrpc\" must be \"2.0\""}}`},
	} {
		s.do(t, "POST", path, row[0])
		for e.Scan() && strings.Contains(e.Text(), "list_changed") {
		}
		if e.Text() != row[1] {
			t.Errorf("%s: the stream has %s, want %s", row[0], e.Text(), row[1])
		}
	}
	s.do(t, "POST", path, request("tools/call", exec("progress", `{"steps":2}`)))
	for _, want := range []string{`"progress":1`, `"progress":2`, `"result"`} {
		for e.Scan() && strings.Contains(e.Text(), "list_changed") {
		}
		if !strings.Contains(e.Text(), want) {
			t.Errorf("the stream has %s, want %s", e.Text(), want)
		}
	}
	if got := whole(t, s.do(t, "POST", path, strings.Repeat("x", 20_000))); !strings.HasPrefix(got, "413 ") {
		t.Errorf("a large message is answered with %s", got)
	}
	_ = r.Body.Close()
	eventually(t, "the session ends with its stream", func() bool {
		return strings.HasPrefix(whole(t, s.do(t, "POST", path, request("ping", ""))), "404 ")
	})
}

// TestTransportsAreApart: a session belongs to the transport that opened it.
func TestTransportsAreApart(t *testing.T) {
	s := serveHTTP(t, upstream(t, "one"))
	id := s.open(t, "{}")
	if got := whole(t, s.do(t, "POST", "/message?sessionId="+id, request("ping", ""))); !strings.HasPrefix(got, "404 ") {
		t.Errorf("a session of /mcp on /message: %s", got)
	}
	e := events(s.do(t, "GET", "/sse", ""))
	if !e.Scan() {
		t.Fatal("no endpoint")
	}
	_, older, _ := strings.Cut(e.Text(), "sessionId=")
	for _, method := range []string{"POST", "GET", "DELETE"} {
		if got := whole(t, s.do(t, method, "/mcp", request("ping", ""), sessionHeader, older)); !strings.HasPrefix(got, "404 ") {
			t.Errorf("a session of /sse on %s /mcp: %s", method, got)
		}
	}
	s.Stateless = true
	if got := whole(t, s.do(t, "GET", "/sse", "")); !strings.HasPrefix(got, "405 ") {
		t.Errorf("/sse where no session is kept: %s", got)
	}
}

// TestAnswersWaitForTheirStream: a client of legacy SSE that reads slowly gets every
// answer.
func TestAnswersWaitForTheirStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &HTTP{Servers: map[string]*server.Server{"default": bare()}, Limits: config.Limits{BodyBytes: 1000, Sessions: 10, SessionIdle: time.Hour, UnreadBytes: streamBytes}}
		handler := h.Handler()
		n := one(t, h.sessions)
		n.useLegacySSE()
		out := newStream(defaultTimes, n.unread)
		n.setStream(out)
		if err := n.Send(make([]byte, streamBytes)); err != nil {
			t.Fatal(err)
		}
		post := func() {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, postTo(t.Context(), "/message?sessionId="+n.id, strings.NewReader(request("ping", ""))))
			if w.Code != http.StatusAccepted {
				t.Errorf("answered with %d %s", w.Code, w.Body)
			}
			synctest.Wait()
		}
		post()
		if read := popAll(out); len(read) != 2 || read[1] != result("{}") {
			t.Errorf("the stream has %d messages, want the answer after the first", len(read))
		}
		if err := n.Send(make([]byte, streamBytes)); err != nil {
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

// TestPostsWaitForTheQuota: a POST of legacy SSE waits while its call waits for room. The
// client can cancel the call, and give up the POST. If too many calls wait, it gets 429.
func TestPostsWaitForTheQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &HTTP{Servers: map[string]*server.Server{"default": bare()}, Limits: config.Limits{BodyBytes: 1000, Sessions: 10, SessionIdle: time.Hour, CallsPerClient: 1, UnreadBytes: streamBytes}}
		handler := h.Handler()
		n := one(t, h.sessions)
		n.useLegacySSE()
		out := newTestStream()
		n.setStream(out)
		post := func(ctx context.Context, body string) chan int {
			status := make(chan int, 1)
			go func() {
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, postTo(ctx, "/message?sessionId="+n.id, strings.NewReader(body)))
				status <- w.Code
			}()
			synctest.Wait()
			return status
		}
		if !n.client.Quota.TryAcquire() {
			t.Fatal("no room")
		}
		ctx, leave := context.WithCancel(t.Context())
		left := post(ctx, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
		canceled := post(t.Context(), `{"jsonrpc":"2.0","id":2,"method":"ping"}`)
		if len(left) > 0 || len(canceled) > 0 {
			t.Error("a POST does not wait")
		}
		leave()
		<-left
		post(t.Context(), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
		if status := <-canceled; status != http.StatusAccepted {
			t.Errorf("the POST of a canceled call gets %d", status)
		}
		large, _ := n.client.Conn.Begin(context.Background(), []byte("3"), 0)
		const size = 1<<20 - 60 // with the first call, nearly what may wait
		if !n.client.Quota.Enter(size) {
			t.Fatal("the queue is full")
		}
		n.client.Quota.Start(large, size, func(func(response []byte)) {}, nil)
		for _, body := range []string{request("ping", ""), "this is not JSON, but gets a response, too"} {
			if status := <-post(t.Context(), body); status != http.StatusTooManyRequests {
				t.Errorf("one message more than may wait gets %d: %s", status, body)
			}
		}
		n.client.Quota.Release()
		synctest.Wait()
		if read := popAll(out); len(read) != 1 || read[0] != result("{}") {
			t.Errorf("the stream has %q, want one response", read)
		}
		h.sessions.end(n)
		synctest.Wait()
		if n.busy > 0 {
			t.Error("the session stays busy")
		}
	})
}

package front

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/config"
	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/internal/seal"
	"mcpx/internal/store"
	"mcpx/server"
)

// replicate starts three replicas with one key. They share the store, unless it is nil.
func replicate(t *testing.T, shared store.Store) (a, b, c *site) {
	t.Helper()
	probed := &probedStore{Store: shared}
	var all []*site
	for range 3 {
		h := &HTTP{Seal: box(1)}
		if shared != nil {
			h.Store = probed
		}
		s := listenHTTP(t, h, upstream(t, "one", "-full")).site
		s.executor.Settle(t.Context(), nil, time.Minute)
		all = append(all, s)
	}
	if shared != nil {
		eventually(t, "all replicas listen", func() bool { return probed.listeners() == len(all) })
	}
	return all[0], all[1], all[2]
}

// probedStore counts who listens to a store.
type probedStore struct {
	store.Store
	heard atomic.Int64
}

const probe = "probe"

func (p *probedStore) Listen(ctx context.Context, receive func(message []byte)) {
	p.Store.Listen(ctx, func(message []byte) {
		if string(message) == probe {
			p.heard.Add(1)
			return
		}
		receive(message)
	})
}

func (p *probedStore) listeners() int {
	p.heard.Store(0)
	_ = p.Publish(context.Background(), []byte(probe))
	return int(p.heard.Load())
}

// in posts a message in a session and returns the whole answer.
func (s *site) in(t *testing.T, id, message string) string {
	t.Helper()
	return whole(t, s.do(t, "POST", "/mcp", message, sessionHeader, id))
}

// copy returns the copy of the only session here.
func (s *site) copy(t *testing.T) *session {
	t.Helper()
	all := s.sessions.all()
	if len(all) != 1 {
		t.Fatalf("%d sessions", len(all))
	}
	return all[0]
}

const echoed = `200 {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hi"}]}}`

var echo = request("tools/call", exec("echo", `{"text":"hi"}`))

// TestContinuedSession: each replica continues a session, with its capabilities.
func TestContinuedSession(t *testing.T) {
	a, b, c := replicate(t, nil)
	id := a.open(t, `{"roots":{}}`)
	for name, s := range map[string]*site{"a": a, "b": b, "c": c} {
		if got := s.in(t, id, echo); got != echoed {
			t.Errorf("%s: %s", name, got)
		}
		if got := s.copy(t).client; got.Supports("roots/list", nil) != nil || got.Supports("sampling/createMessage", nil) == nil || got.Revision() != "2025-06-18" {
			t.Errorf("%s: capabilities %s, revision %s", name, got.Capabilities(), got.Revision())
		}
	}
	if a, b := a.copy(t).client, b.copy(t).client; a.ID() != b.ID() || a.Owner() != b.Owner() {
		t.Errorf("the owner is %s, then %s", a.Owner(), b.Owner())
	}
	if got := whole(t, a.do(t, "DELETE", "/mcp", "", sessionHeader, id)); got != "204 " {
		t.Fatal(got)
	}
	if got := a.in(t, id, echo); got != noSuchSession {
		t.Errorf("after its end: %s", got)
	}
	if got := b.in(t, id, echo); got != echoed {
		t.Errorf("without a store, on another replica: %s", got)
	}
}

// TestEndedSession: a session that was ended is ended everywhere, also where it was unknown.
func TestEndedSession(t *testing.T) {
	a, b, c := replicate(t, store.NewMemory())
	id := a.open(t, `{}`)
	if got := b.in(t, id, echo); got != echoed {
		t.Fatal(got)
	}
	if got := whole(t, b.do(t, "DELETE", "/mcp", "", sessionHeader, id)); got != "204 " {
		t.Fatal(got)
	}
	eventually(t, "the copy ends", func() bool { return len(a.sessions.all()) == 0 })
	var together sync.WaitGroup
	for i := range 30 {
		together.Go(func() {
			if got := []*site{a, b, c}[i%3].in(t, id, echo); got != noSuchSession {
				t.Errorf("after its end: %s", got)
			}
		})
	}
	together.Wait()
	if left := len(a.sessions.all()) + len(b.sessions.all()) + len(c.sessions.all()); left > 0 {
		t.Errorf("%d copies are left", left)
	}
}

// TestEndedSessionsAreRemembered: a session that was ended does not come back on the replicas
// that know of it while the store is down, or after the store has lost its values.
func TestEndedSessionsAreRemembered(t *testing.T) {
	shared := &lossyStore{Memory: store.NewMemory()}
	a, b, c := replicate(t, shared)
	id := a.open(t, `{}`)
	if got := b.in(t, id, echo); got != echoed {
		t.Fatal(got)
	}
	if got := whole(t, a.do(t, "DELETE", "/mcp", "", sessionHeader, id)); got != "204 " {
		t.Fatal(got)
	}
	eventually(t, "the copy ends", func() bool { return len(b.sessions.all()) == 0 })
	check := func(when string) {
		t.Helper()
		for name, s := range map[string]*site{"the replica that ended it": a, "one that had a copy": b, "one that did not know it": c} {
			if got := s.in(t, id, echo); got != noSuchSession {
				t.Errorf("%s, %s: %s", when, name, got)
			}
		}
	}
	shared.isDown.Store(true)
	check("the store is down")
	shared.isDown.Store(false)
	shared.isEmpty.Store(true)
	check("the store is empty")
}

// TestEndedSessionIsReadFromTheStore: a replica that starts later reads from the store that a
// session has ended, and remembers it.
func TestEndedSessionIsReadFromTheStore(t *testing.T) {
	shared := &lossyStore{Memory: store.NewMemory()}
	a, _, _ := replicate(t, shared)
	id := a.open(t, `{}`)
	whole(t, a.do(t, "DELETE", "/mcp", "", sessionHeader, id))
	late := listenHTTP(t, &HTTP{Seal: box(1), Store: shared}).site
	if got := late.in(t, id, echo); got != noSuchSession {
		t.Fatal(got)
	}
	shared.isDown.Store(true)
	if got := late.in(t, id, echo); got != noSuchSession {
		t.Errorf("the store is down: %s", got)
	}
}

// lossyStore may be down, or have lost its values.
type lossyStore struct {
	*store.Memory
	isDown, isEmpty atomic.Bool
}

func (l *lossyStore) Get(ctx context.Context, key string) ([]byte, error) {
	switch {
	case l.isDown.Load():
		return nil, errBroken
	case l.isEmpty.Load():
		return nil, nil
	}
	return l.Memory.Get(ctx, key)
}

// TestSessionIsContinuedOnce: requests that arrive together get one copy.
func TestSessionIsContinuedOnce(t *testing.T) {
	a, b := small(t, box(1)), small(t, box(1))
	id := a.open(t, `{}`)
	var together sync.WaitGroup
	for range 20 {
		together.Go(func() {
			if got := b.in(t, id, request("ping", "")); got != "200 "+result("{}") {
				t.Error(got)
			}
		})
	}
	together.Wait()
	b.copy(t)
}

// TestIdleSessionIsContinued: idle time frees memory, and ends no sealed session.
func TestIdleSessionIsContinued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &HTTP{Servers: map[string]*server.Server{"default": bare()}, Limits: config.Limits{Sessions: 2, SessionIdle: time.Minute, BodyBytes: 1000}, Seal: box(1)}
		handler := h.Handler()
		h.sessions.run()
		defer h.close()
		post := func(id, message string) *httptest.ResponseRecorder {
			r := postTo(t.Context(), "/mcp", strings.NewReader(message))
			r.Header.Set(sessionHeader, id)
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			return w
		}
		id := post("", request("initialize", `{"protocolVersion":"2025-06-18"}`)).Header().Get(sessionHeader)
		for range 3 {
			<-time.After(2 * time.Minute)
			if open := len(h.sessions.all()); open != 0 {
				t.Fatalf("%d sessions in memory", open)
			}
			if w := post(id, request("ping", "")); w.Code != http.StatusOK {
				t.Fatalf("got %d %s", w.Code, w.Body)
			}
		}
		<-time.After(24*time.Hour - 6*time.Minute)
		if w := post(id, request("ping", "")); w.Code != http.StatusNotFound {
			t.Errorf("after a day: %d %s", w.Code, w.Body)
		}
	})
}

// TestNoWaitForUpstreams: after the end of a session, the next request does not wait until a
// hanging upstream has ended the subscriptions.
func TestNoWaitForUpstreams(t *testing.T) {
	for name, row := range map[string]struct {
		end  func(s *site, n *session)
		want string
	}{
		"ended by the client": {func(s *site, n *session) { s.sessions.replicas.end(n) }, noSuchSession},
		"idle":                {func(s *site, n *session) { s.sessions.end(n) }, "200 " + result("{}")},
	} {
		t.Run(name, func(t *testing.T) {
			s := listenHTTP(t, &HTTP{Seal: box(1)}, upstream(t, "one", "-full", "-silent", "resources/unsubscribe"))
			s.executor.Settle(t.Context(), nil, time.Minute)
			id := s.open(t, `{}`)
			if got := s.in(t, id, request("resources/subscribe", `{"uri":"test://one"}`)); !strings.Contains(got, `"result"`) {
				t.Fatal(got)
			}
			row.end(s.site, s.copy(t))
			begin := time.Now()
			if got := s.in(t, id, request("ping", "")); got != row.want {
				t.Errorf("got %s", got)
			}
			if took := time.Since(begin); took > patience {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// TestContinuedSessionsAreBounded: limits.sessions holds for sessions of other replicas too.
func TestContinuedSessionsAreBounded(t *testing.T) {
	a, b := small(t, box(1)), small(t, box(1))
	id := a.open(t, `{}`)
	for range 3 {
		b.open(t, `{}`)
	}
	r := b.do(t, "POST", "/mcp", request("ping", ""), sessionHeader, id)
	if got := whole(t, r); !strings.HasPrefix(got, "503 ") || !strings.Contains(got, "limits.sessions") || r.Header.Get("Retry-After") == "" {
		t.Errorf("got %s", got)
	}
}

// asked posts a call on a replica during which the upstream requests roots, and returns the
// request that the client gets, and the events of the call.
func (s *site) asked(t *testing.T, id string) (request string, next func() string) {
	t.Helper()
	e := events(s.do(t, "POST", "/mcp", requestWithID(7, "tools/call", exec("ask", `{"method":"roots/list"}`)), sessionHeader, id))
	next = func() string {
		if !e.Scan() {
			t.Fatal("the stream has ended")
		}
		return e.Text()
	}
	return next(), next
}

func requestWithID(id int, method, params string) string {
	return strings.Replace(request(method, params), `"id":1`, fmt.Sprintf(`"id":%d`, id), 1)
}

// answer returns the client's response to a request.
func answer(request string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"roots":[{"uri":"file:///mine"}]}}`, rawjson.Get([]byte(request), "id"))
}

// TestResponsesReachTheirReplica: a client's response may reach any replica.
func TestResponsesReachTheirReplica(t *testing.T) {
	a, b, c := replicate(t, store.NewMemory())
	id := a.open(t, `{"roots":{}}`)
	for range 3 {
		for _, other := range []*site{b, c, a} {
			request, next := a.asked(t, id)
			if got := other.in(t, id, answer(request)); got != "202 " {
				t.Errorf("the response is answered with %s", got)
			}
			if got := next(); !strings.Contains(got, "file:///mine") {
				t.Errorf("the call gets %s", got)
			}
		}
	}
	if got := b.in(t, id, `{"jsonrpc":"2.0","id":99,"result":{}}`); got != "202 " {
		t.Errorf("a response to nothing: %s", got)
	}
}

// TestResponsesInABatchReachTheirReplica: the same for the revision that has batches.
func TestResponsesInABatchReachTheirReplica(t *testing.T) {
	a, b, _ := replicate(t, store.NewMemory())
	r := a.do(t, "POST", "/mcp", request("initialize", `{"protocolVersion":"2025-03-26","capabilities":{"roots":{}}}`))
	id := r.Header.Get(sessionHeader)
	asked, next := a.asked(t, id)
	if got := b.in(t, id, `[`+answer(asked)+`,`+request("ping", "")+`]`); got != "200 ["+result("{}")+"]" {
		t.Errorf("the batch is answered with %s", got)
	}
	if got := next(); !strings.Contains(got, "file:///mine") {
		t.Errorf("the call gets %s", got)
	}
}

// TestResponsesWithoutAStore: the client learns what to change.
func TestResponsesWithoutAStore(t *testing.T) {
	a, b, _ := replicate(t, nil)
	id := a.open(t, `{"roots":{}}`)
	request, next := a.asked(t, id)
	if got := b.in(t, id, answer(request)); !strings.HasPrefix(got, "400 ") || !strings.Contains(got, "sticky routing") {
		t.Errorf("on another replica: %s", got)
	}
	if got := a.in(t, id, answer(request)); got != "202 " {
		t.Errorf("on its replica: %s", got)
	}
	if got := next(); !strings.Contains(got, "file:///mine") {
		t.Errorf("the call gets %s", got)
	}
	if got := a.in(t, id, answer(request)); got != "202 " {
		t.Errorf("a second time: %s", got)
	}
}

// TestCancellationsReachTheirReplica: so may a cancellation.
func TestCancellationsReachTheirReplica(t *testing.T) {
	a, b, _ := replicate(t, store.NewMemory())
	id := a.open(t, `{"roots":{}}`)
	a.asked(t, id)
	if got := b.in(t, id, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`); got != "202 " {
		t.Errorf("the cancellation is answered with %s", got)
	}
	eventually(t, "the call ends", func() bool { return a.copy(t).client.Conn.Incoming() == 0 })
}

// TestMessagesReachTheStream: what belongs to no call is sent on the GET stream, whichever
// replica has it.
func TestMessagesReachTheStream(t *testing.T) {
	a, b, c := replicate(t, store.NewMemory())
	id := a.open(t, `{"roots":{}}`)
	stream := events(b.do(t, "GET", "/mcp", "", sessionHeader, id))
	eventually(t, "the stream is open", func() bool { return b.copy(t).stream() != nil })
	if err := a.copy(t).send([]byte(`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"hi"}}`)); err != nil {
		t.Fatal(err)
	}
	if !stream.Scan() || !strings.Contains(stream.Text(), `"data":"hi"`) {
		t.Fatalf("the stream has %s", stream.Text())
	}
	asked := make(chan string, 1)
	go func() {
		got, err := a.copy(t).client.Request(t.Context(), "roots/list", nil)
		asked <- fmt.Sprint(string(got), err)
	}()
	if !stream.Scan() || !strings.Contains(stream.Text(), `"method":"roots/list"`) {
		t.Fatalf("the stream has %s", stream.Text())
	}
	if got := c.in(t, id, answer(stream.Text())); got != "202 " {
		t.Errorf("the response is answered with %s", got)
	}
	if got := <-asked; !strings.Contains(got, "file:///mine") {
		t.Errorf("the request ends with %s", got)
	}
}

// TestMessagesWithoutAStream: a request to a client without a stream fails.
func TestMessagesWithoutAStream(t *testing.T) {
	for name, row := range map[string]struct {
		store store.Store
		want  error
	}{
		"with a store":    {store.NewMemory(), errNotTaken},
		"without a store": {nil, errNoStream},
	} {
		t.Run(name, func(t *testing.T) {
			h := &HTTP{Seal: box(1), Store: row.store}
			s := listenHTTP(t, h)
			s.open(t, `{"roots":{}}`)
			h.sessions.replicas.takeTime = time.Millisecond
			_, err := s.copy(t).client.Request(t.Context(), "roots/list", nil)
			if err == nil || !strings.Contains(err.Error(), row.want.Error()) {
				t.Errorf("got %v", err)
			}
			if n := s.copy(t); len(n.offered) > 0 || n.client.Conn.Len() > 0 {
				t.Error("it is still pending")
			}
		})
	}
}

// TestRequestsWhileTheStoreIsDown: a request to a client whose stream may be elsewhere fails
// as soon as it is known that no replica gets it.
func TestRequestsWhileTheStoreIsDown(t *testing.T) {
	h := &HTTP{Seal: box(1), Store: brokenStore{store.NewMemory()}}
	s := listenHTTP(t, h)
	s.open(t, `{"roots":{}}`)
	h.sessions.replicas.takeTime = time.Hour
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := s.copy(t).client.Request(ctx, "roots/list", nil)
	if err == nil || !strings.Contains(err.Error(), errNotOffered.Error()) {
		t.Errorf("got %v", err)
	}
	if n := s.copy(t); len(n.offered) > 0 || n.client.Conn.Len() > 0 {
		t.Error("it is still pending")
	}
}

// TestStreamMoves: a client has one GET stream, the newest.
func TestStreamMoves(t *testing.T) {
	a, b, _ := replicate(t, store.NewMemory())
	id := a.open(t, `{}`)
	if got := b.in(t, id, echo); got != echoed {
		t.Fatal(got)
	}
	first := a.do(t, "GET", "/mcp", "", sessionHeader, id)
	eventually(t, "the stream is open", func() bool { return a.copy(t).stream() != nil })
	second := events(b.do(t, "GET", "/mcp", "", sessionHeader, id))
	if got := whole(t, first); got != "200 " {
		t.Errorf("the first stream ends with %s", got)
	}
	eventually(t, "the stream is open", func() bool { return b.copy(t).stream() != nil })
	if err := b.copy(t).send([]byte(`{"a":1}`)); err != nil || !second.Scan() || second.Text() != `{"a":1}` {
		t.Errorf("the second stream has %s: %v", second.Text(), err)
	}
}

// heldStore holds back the notes about streams until the gate is closed.
type heldStore struct {
	store.Store
	gate            chan struct{}
	held, published atomic.Int64
}

func (h *heldStore) Publish(ctx context.Context, message []byte) error {
	if !bytes.HasPrefix(message, []byte("session stream")) {
		return h.Store.Publish(ctx, message)
	}
	h.held.Add(1)
	<-h.gate
	defer h.published.Add(1)
	return h.Store.Publish(ctx, message)
}

// TestStreamsOfOneInstant: of two GET streams that a client opens on two replicas at the same
// time, one stays open.
func TestStreamsOfOneInstant(t *testing.T) {
	shared := &heldStore{Store: store.NewMemory(), gate: make(chan struct{})}
	a, b, _ := replicate(t, shared)
	id := a.open(t, `{}`)
	for _, s := range []*site{a, b} {
		s.do(t, "GET", "/mcp", "", sessionHeader, id)
		eventually(t, "the stream is open", func() bool { return s.copy(t).stream() != nil })
	}
	eventually(t, "both notes wait", func() bool { return shared.held.Load() == 2 })
	close(shared.gate)
	eventually(t, "both notes are published", func() bool { return shared.published.Load() >= 2 })
	if first, second := a.copy(t).stream() != nil, b.copy(t).stream() != nil; first || !second {
		t.Errorf("the first stream is open: %t, the second: %t; only the second should be", first, second)
	}
}

// TestStreamsWithDifferentClocks: of two GET streams on replicas whose clocks differ, one
// stays open.
func TestStreamsWithDifferentClocks(t *testing.T) {
	a, b, _ := replicate(t, store.NewMemory())
	id := a.open(t, `{}`)
	a.do(t, "GET", "/mcp", "", sessionHeader, id)
	eventually(t, "the first stream is open", func() bool { return a.copy(t).stream() != nil })
	first := a.copy(t)
	first.mu.Lock()
	first.newest.time += time.Hour.Microseconds()
	first.mu.Unlock()
	b.do(t, "GET", "/mcp", "", sessionHeader, id)
	eventually(t, "one stream is open", func() bool { return a.copy(t).stream() != nil && b.copy(t).stream() == nil })
	b.do(t, "GET", "/mcp", "", sessionHeader, id)
	eventually(t, "the newest stream stays", func() bool { return a.copy(t).stream() == nil && b.copy(t).stream() != nil })
}

// TestStreamStaysDuringADrain: a stream to a replica that stops does not end the one that the
// client has elsewhere.
func TestStreamStaysDuringADrain(t *testing.T) {
	a, b, _ := replicate(t, store.NewMemory())
	id := a.open(t, `{}`)
	a.sessions.drain()
	stream := events(b.do(t, "GET", "/mcp", "", sessionHeader, id))
	eventually(t, "the stream is open", func() bool { return b.copy(t).stream() != nil })
	open := b.copy(t).stream()
	if got := whole(t, a.do(t, "GET", "/mcp", "", sessionHeader, id)); got != "200 " {
		t.Errorf("the stream to the replica that stops: %s", got)
	}
	const message = `{"jsonrpc":"2.0","method":"notifications/message"}`
	if err := a.copy(t).send([]byte(message)); err != nil || !stream.Scan() || stream.Text() != message {
		t.Errorf("the stream has %s: %v", stream.Text(), err)
	}
	if b.copy(t).stream() != open {
		t.Error("the stream has ended")
	}
}

// TestLogLevelIsShared: a log level holds on replicas that know the session, and on those
// that continue it later.
func TestLogLevelIsShared(t *testing.T) {
	a, b, c := replicate(t, store.NewMemory())
	id := a.open(t, `{}`)
	if got := b.in(t, id, echo); got != echoed {
		t.Fatal(got)
	}
	if got := a.in(t, id, request("logging/setLevel", `{"level":"error"}`)); !strings.HasPrefix(got, "200 ") {
		t.Fatal(got)
	}
	say := request("tools/call", exec("say", `{"method":"notifications/message","params":[{"level":"info","data":"low"},{"level":"error","data":"high"}]}`))
	for name, s := range map[string]*site{"a": a, "b": b, "c": c} {
		eventually(t, "the level holds on "+name, func() bool {
			got := s.in(t, id, say)
			return strings.Contains(got, "high") && !strings.Contains(got, "low")
		})
	}
}

// TestRefusedMessagesAreNotShared: what one replica refuses has no effect on the others.
func TestRefusedMessagesAreNotShared(t *testing.T) {
	with(t, "wait", func(_ *server.Server, ctx context.Context, _ *server.Client, _ rpc.Message) ([]byte, error) {
		<-ctx.Done()
		return []byte("{}"), nil
	})
	level := request("logging/setLevel", `{"level":"error"}`)
	for name, row := range map[string]struct {
		calls         int
		message, want string
	}{
		"over the quota":   {1, level, "429 "},
		"a batch too long": {0, "[" + strings.Repeat(level+",", server.MaxBatch) + level + "]", `200 {"jsonrpc":"2.0","id":null,"error":`},
	} {
		t.Run(name, func(t *testing.T) {
			shared := store.NewMemory()
			s := listenHTTP(t, &HTTP{Seal: box(1), Store: shared, Limits: config.Limits{CallsPerClient: row.calls}})
			id := s.do(t, "POST", "/mcp", request("initialize", `{"protocolVersion":"2025-03-26","capabilities":{}}`)).Header.Get(sessionHeader)
			n := s.copy(t)
			var waiting sync.WaitGroup
			waiting.Go(func() { s.in(t, id, request("wait", "")) })
			eventually(t, "a call waits", func() bool { return n.client.Conn.Incoming() == 1 })
			if got := s.in(t, id, row.message); !strings.HasPrefix(got, row.want) {
				t.Errorf("got %s", got)
			}
			if got, _ := shared.Get(t.Context(), levelKey+n.id); got != nil {
				t.Errorf("the level %s is shared", got)
			}
			s.sessions.end(n)
			waiting.Wait()
		})
	}
}

// TestEveryCopyIsNotified: some messages concern each copy of a session.
func TestEveryCopyIsNotified(t *testing.T) {
	a, b, _ := replicate(t, store.NewMemory())
	id := a.open(t, `{"roots":{"listChanged":true}}`)
	if got := b.in(t, id, echo); got != echoed {
		t.Fatal(got)
	}
	if got := b.in(t, id, `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`); got != "202 " {
		t.Fatal(got)
	}
	if got := a.in(t, id, request("tools/call", exec("heard", `{"method":"notifications/roots/list_changed"}`))); !strings.Contains(got, `"text":"1"`) {
		t.Errorf("the upstream of the other replica heard %s", got)
	}
}

// TestSubscriptionsOfSeveralReplicas: updates of a resource reach the stream wherever the client has
// subscribed, until it unsubscribes anywhere.
func TestSubscriptionsOfSeveralReplicas(t *testing.T) {
	a, b, c := replicate(t, store.NewMemory())
	id := a.open(t, `{}`)
	stream := events(b.do(t, "GET", "/mcp", "", sessionHeader, id))
	eventually(t, "the stream is open", func() bool { return b.copy(t).stream() != nil })
	if got := a.in(t, id, request("resources/subscribe", `{"uri":"test://one"}`)); !strings.HasPrefix(got, `200 {"jsonrpc":"2.0","id":1,"result"`) {
		t.Fatal(got)
	}
	update := request("tools/call", exec("say", `{"method":"notifications/resources/updated","params":[{"uri":"test://one"}]}`))
	if got := a.in(t, id, update); !strings.HasPrefix(got, "200 ") {
		t.Fatal(got)
	}
	if !stream.Scan() || !strings.Contains(stream.Text(), `"uri":"test://one"`) {
		t.Fatalf("the stream has %s", stream.Text())
	}
	if got := c.in(t, id, request("resources/unsubscribe", `{"uri":"test://one"}`)); !strings.HasPrefix(got, `200 {"jsonrpc":"2.0","id":1,"result"`) {
		t.Fatal(got)
	}
	eventually(t, "the other replica has unsubscribed", func() bool { return a.copy(t).client.Conn.Incoming() == 0 })
	if got := a.in(t, id, update); !strings.HasPrefix(got, "200 ") {
		t.Fatal(got)
	}
	const end = `{"jsonrpc":"2.0","method":"the end"}`
	if err := a.copy(t).send([]byte(end)); err != nil || !stream.Scan() || stream.Text() != end {
		t.Errorf("the stream has %s: %v", stream.Text(), err)
	}
}

// TestListsOfSeveralReplicas: a replica that continues a session announces a list that changes
// there, though the client has not read it there.
func TestListsOfSeveralReplicas(t *testing.T) {
	a, b, _ := replicate(t, store.NewMemory())
	id := a.open(t, `{}`)
	stream := events(a.do(t, "GET", "/mcp", "", sessionHeader, id))
	eventually(t, "the stream is open", func() bool { return a.copy(t).stream() != nil })
	if got := b.in(t, id, request("tools/call", exec("change", `{"notices":1,"list":"prompts"}`))); !strings.HasPrefix(got, "200 ") {
		t.Fatal(got)
	}
	if !stream.Scan() || !strings.Contains(stream.Text(), "notifications/prompts/list_changed") {
		t.Errorf("the stream has %s", stream.Text())
	}
}

// TestRoundsOfSeveralReplicas: every replica continues a call of 2026-07-28 if the upstream speaks
// it too. Otherwise the client learns that the call waits elsewhere.
func TestRoundsOfSeveralReplicas(t *testing.T) {
	key := bytes.Repeat([]byte{1}, seal.KeyBytes)
	var replicas []*site
	for range 2 {
		b := startWith(t, server.Options{Rounds: seal.New(seal.Round, []seal.Key{key})}, upstream(t, "one", "-modern"), upstream(t, "old"))
		h := &HTTP{Servers: map[string]*server.Server{"default": b.Server}, Limits: config.Limits{BodyBytes: 10_000, Sessions: 3, SessionIdle: time.Hour}}
		s := httptest.NewServer(h.Handler())
		t.Cleanup(func() {
			h.closeStreams()
			s.Close()
			h.close()
		})
		b.executor.Settle(t.Context(), nil, time.Minute)
		replicas = append(replicas, &site{HTTP: h, url: s.URL})
	}
	round := func(s *site, name, more string) string {
		params := strings.Replace(exec("ask", `{"method":"roots/list"}`), `"_meta":{"progressToken":"tok"}`, meta(`{"roots":{}}`, "")+more, 1)
		params = strings.Replace(params, `"one"`, `"`+name+`"`, 1)
		return whole(t, s.do(t, "POST", "/mcp", request("tools/call", params), "Mcp-Method", "tools/call", "Mcp-Name", "exec"))
	}
	for _, row := range []struct {
		name, key string
		want      [2]string // on the replica of the first round, and on the other
	}{
		{"one", "one", [2]string{`state 1 {\"one\":{\"roots\":[]}}`, `state 1 {\"one\":{\"roots\":[]}}`}},
		{"old", "input", [2]string{`\"roots\":[]`, "waits on another replica of mcpx"}},
	} {
		for i, want := range row.want {
			asked := round(replicas[0], row.name, "")
			_, result, _ := strings.Cut(asked, " ")
			state := rawjson.Get(rawjson.Get([]byte(result), "result"), "requestState")
			if !strings.Contains(asked, `"inputRequests":{"`+row.key+`":{"method":"roots/list"`) || !strings.HasPrefix(string(state), `"v1.`) {
				t.Fatalf("%s: the first round ends with %s", row.name, asked)
			}
			if got := round(replicas[i], row.name, `,"inputResponses":{"`+row.key+`":{"roots":[]}},"requestState":`+string(state)); !strings.Contains(got, want) {
				t.Errorf("%s, on replica %d: %s", row.name, i, got)
			}
		}
	}
}

// brokenStore cannot be reached.
type brokenStore struct{ *store.Memory }

var errBroken = errors.New("the store is down")

func (brokenStore) Get(context.Context, string) ([]byte, error) { return nil, errBroken }

func (brokenStore) Set(context.Context, string, []byte, time.Duration) error { return errBroken }

func (b brokenStore) Publish(ctx context.Context, message []byte) error {
	if string(message) == probe {
		return b.Memory.Publish(ctx, message)
	}
	return errBroken
}

// TestStoreIsDown: a replica continues the sessions of others while the store is down.
func TestStoreIsDown(t *testing.T) {
	a, b, _ := replicate(t, brokenStore{store.NewMemory()})
	id := a.open(t, `{"roots":{}}`)
	if got := b.in(t, id, echo); got != echoed {
		t.Errorf("a call: %s", got)
	}
	if got := b.in(t, id, request("logging/setLevel", `{"level":"error"}`)); !strings.HasPrefix(got, "200 ") {
		t.Errorf("a log level: %s", got)
	}
	request, next := a.asked(t, id)
	if got := b.in(t, id, answer(request)); !strings.HasPrefix(got, "503 ") || !strings.Contains(got, "try again") {
		t.Errorf("a response to another replica: %s", got)
	}
	if got := a.in(t, id, answer(request)); got != "202 " {
		t.Errorf("a response: %s", got)
	}
	if got := next(); !strings.Contains(got, "file:///mine") {
		t.Errorf("the call gets %s", got)
	}
	if got := whole(t, b.do(t, "DELETE", "/mcp", "", sessionHeader, id)); got != "204 " {
		t.Errorf("the end: %s", got)
	}
}

// TestQueuesAreBounded: notes that cannot be published do not fill the memory.
func TestQueuesAreBounded(t *testing.T) {
	p := newReplicas(box(1), store.NewMemory(), newSessions(config.Limits{Sessions: 1, SessionIdle: time.Hour}))
	for name, payload := range map[string][]byte{"many": nil, "large": make([]byte, 10<<20)} {
		p.others = newQueue()
		var err error
		sent := 0
		for ; err == nil && sent <= maxNotes; sent++ {
			err = p.post(p.others, note{kind: noteOffered, session: "x", payload: payload})
		}
		if bytes := p.others.bytes.Load(); !errors.Is(err, errQueueFull) || bytes > maxNoteBytes {
			t.Errorf("%s: %d notes with %d bytes: %v", name, sent, bytes, err)
		}
	}
}

// stuckStore never publishes a notification.
type stuckStore struct {
	*store.Memory
	published chan string
}

func (s *stuckStore) Publish(ctx context.Context, message []byte) error {
	if bytes.Contains(message, []byte("notifications/")) {
		<-ctx.Done()
		return ctx.Err()
	}
	s.published <- string(message)
	return nil
}

// TestRequestsOvertakeNotifications: however many notifications wait, a request to a client is
// published at once.
func TestRequestsOvertakeNotifications(t *testing.T) {
	shared := &stuckStore{Memory: store.NewMemory(), published: make(chan string, 1)}
	all := newSessions(config.Limits{Sessions: 1, SessionIdle: time.Hour})
	all.replicas = newReplicas(box(1), shared, all)
	all.run()
	defer all.close()
	p := all.replicas
	n := &session{id: "x"}
	var err error
	for sent := 0; err == nil && sent <= maxNotes+1; sent++ { // one is being published
		err = p.offer(n, []byte(`{"jsonrpc":"2.0","method":"notifications/message"}`))
	}
	if !errors.Is(err, errQueueFull) {
		t.Fatalf("got %v", err)
	}
	asked := request("ping", "")
	if err := p.offer(n, []byte(asked)); err != nil {
		t.Fatal(err)
	}
	defer n.taken([]byte("1")) // ends its timer
	if got := <-shared.published; !strings.HasSuffix(got, asked) {
		t.Errorf("published: %s", got)
	}
}

// slowStore takes a time for each message, and counts how many are published at once.
type slowStore struct {
	*store.Memory
	time time.Duration

	mu            sync.Mutex
	running, most int
}

func (s *slowStore) Publish(context.Context, []byte) error {
	s.count(1)
	<-time.After(s.time)
	s.count(-1)
	return nil
}

func (s *slowStore) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running += n
	s.most = max(s.most, s.running)
}

// TestLongNotes: one client cannot flood the other replicas with long messages, and those of
// others do not wait for them.
func TestLongNotes(t *testing.T) {
	for name, row := range map[string]struct{ size, published, most int }{
		"short": {longNote / 2, 20, 20},
		"long":  {longNote, 3, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow := &slowStore{Memory: store.NewMemory(), time: store.Limit * 2 / 5}
				p := newReplicas(box(1), slow, newSessions(config.Limits{Sessions: 1, SessionIdle: time.Hour}))
				var all sync.WaitGroup
				var published atomic.Int64
				begin := time.Now()
				for range 20 {
					all.Go(func() {
						err := p.publish(note{kind: noteReceived, session: "x", payload: make([]byte, row.size)})
						if err == nil {
							published.Add(1)
						} else if !errors.Is(err, errQueueFull) {
							t.Error(err)
						}
					})
				}
				all.Wait()
				if n := int(published.Load()); slow.most != row.most || n != row.published {
					t.Errorf("%d were published, %d at once", n, slow.most)
				}
				if took := time.Since(begin); took > 2*store.Limit {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

// TestNotes: a note of this replica, or something else, does nothing.
func TestNotes(t *testing.T) {
	s := small(t, box(1))
	s.open(t, "{}")
	n := s.copy(t)
	p := s.sessions.replicas
	for _, text := range []string{
		"", "\n", "session", "session ended x", "token changed a b\n", "session unknown x " + n.id + "\n",
		"session ended " + p.id + " " + n.id + "\n", "session ended x other\n", "session received x " + n.id + "\n{", "session taken x " + n.id + "\n1",
		"session offered x " + n.id + "\n" + request("ping", ""), strings.Repeat("session ", 1000),
	} {
		p.receive([]byte(text))
	}
	if got := s.copy(t); got != n || n.isOver() {
		t.Error("the session has ended")
	}
	p.receive([]byte("session ended x " + n.id + "\n"))
	eventually(t, "the session ends", n.isOver)
}

// TestNotesCallNoTools: whoever can write to the store cannot call tools in a client session.
// Replicas accept only the kinds of messages that replicas forward.
func TestNotesCallNoTools(t *testing.T) {
	s := listenHTTP(t, &HTTP{Seal: box(1)}, upstream(t, "one", "-count-calls")).site
	s.executor.Settle(t.Context(), nil, time.Minute)
	id := s.do(t, "POST", "/mcp", request("initialize", `{"protocolVersion":"2025-03-26","capabilities":{}}`)).Header.Get(sessionHeader) // with batches
	call := request("tools/call", exec("calls", "{}"))
	n, p := s.copy(t), s.sessions.replicas
	for _, payload := range []string{call, "[" + call + "]", request("tools/call", `{"name":"one__calls"}`), request("resources/subscribe", `{"uri":"one:x"}`), request("ping", "")} {
		p.receive(note{kind: noteReceived, session: n.id, payload: []byte(payload)}.text("stranger"))
	}
	if got := s.in(t, id, call); !strings.Contains(got, `"text":"1"`) {
		t.Errorf("the number of calls: %s", got)
	}
}

// TestNotesHaveNoResponses: whoever can write to the store cannot respond to a client.
func TestNotesHaveNoResponses(t *testing.T) {
	s := small(t, box(1))
	id := s.open(t, "{}")
	stream := s.do(t, "GET", "/mcp", "", sessionHeader, id)
	n, p := s.copy(t), s.sessions.replicas
	eventually(t, "the stream is open", func() bool { return n.stream() != nil })
	for _, payload := range []string{result(`{"forged":1}`), "{", request("ping", "")} {
		p.receive(note{kind: noteOffered, session: n.id, payload: []byte(payload)}.text("stranger"))
	}
	n.stream().end(nil)
	if got := whole(t, stream); strings.Contains(got, "forged") || !strings.Contains(got, "ping") {
		t.Errorf("the client gets %s", got)
	}
}

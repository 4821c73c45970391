package replicas

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
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
	"mcpx/internal/store"
	"mcpx/server"
	httpfront "mcpx/server/http"
	"mcpx/server/servertest"
)

// replicate starts three replicas with one key. They share the store, unless it is nil.
func replicate(t *testing.T, shared store.Store) (a, b, c *site) {
	t.Helper()
	probed := &probedStore{Store: shared}
	var all []*site
	for range 3 {
		var own store.Store
		if shared != nil {
			own = probed
		}
		all = append(all, listen(t, own, servertest.Upstream(t, "one", "-full")))
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
		if got := s.copy(t, id).session.Client(); got.Supports("roots/list", nil) != nil || got.Supports("sampling/createMessage", nil) == nil || got.Revision() != "2025-06-18" {
			t.Errorf("%s: capabilities %s, revision %s", name, got.Capabilities(), got.Revision())
		}
	}
	if a, b := a.copy(t, id).session.Client(), b.copy(t, id).session.Client(); a.ID() != b.ID() || a.Owner() != b.Owner() {
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
	eventually(t, "the copy ends", func() bool { return a.Open() == 0 })
	var together sync.WaitGroup
	for i := range 30 {
		together.Go(func() {
			if got := []*site{a, b, c}[i%3].in(t, id, echo); got != noSuchSession {
				t.Errorf("after its end: %s", got)
			}
		})
	}
	together.Wait()
	if left := a.Open() + b.Open() + c.Open(); left > 0 {
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
	eventually(t, "the copy ends", func() bool { return b.Open() == 0 })
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
	late := listen(t, shared)
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
	b.copy(t, id)
}

// TestIdleSessionIsContinued: idle time frees memory, and ends no sealed session.
func TestIdleSessionIsContinued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &httpfront.HTTP{Servers: map[string]*server.Server{"default": servertest.Bare()}, Limits: config.Limits{Sessions: 2, SessionIdle: time.Minute, BodyBytes: 1000}}
		h.Replicas = New(h, box(1), nil)
		handler := h.Handler()
		idle := &idleListener{closed: make(chan struct{})}
		defer until(func(ctx context.Context) { _ = h.Run(ctx, idle) })()
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
			if open := h.Open(); open != 0 {
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

// idleListener never gets a connection.
type idleListener struct {
	closed chan struct{}
	once   sync.Once
}

func (l *idleListener) Accept() (net.Conn, error) {
	<-l.closed
	return nil, net.ErrClosed
}

func (l *idleListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (*idleListener) Addr() net.Addr { return &net.TCPAddr{} }

// TestNoWaitForUpstreams: after the end of a session, the next request does not wait until a
// hanging upstream has ended the subscriptions.
func TestNoWaitForUpstreams(t *testing.T) {
	for name, row := range map[string]struct {
		end  func(t *testing.T, s *site, id string)
		want string
	}{
		"ended by the client": {func(t *testing.T, s *site, id string) { whole(t, s.do(t, "DELETE", "/mcp", "", sessionHeader, id)) }, noSuchSession},
		"idle":                {func(_ *testing.T, s *site, _ string) { s.EndSessions(s.Servers["default"]) }, "200 " + result("{}")},
	} {
		t.Run(name, func(t *testing.T) {
			s := listen(t, nil, servertest.Upstream(t, "one", "-full", "-silent", "resources/unsubscribe"))
			id := s.open(t, `{}`)
			if got := s.in(t, id, request("resources/subscribe", `{"uri":"test://one"}`)); !strings.Contains(got, `"result"`) {
				t.Fatal(got)
			}
			row.end(t, s, id)
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
	eventually(t, "the call ends", func() bool { return a.copy(t, id).session.Client().Conn.Incoming() == 0 })
}

// TestMessagesReachTheStream: what belongs to no call is sent on the GET stream, whichever
// replica has it.
func TestMessagesReachTheStream(t *testing.T) {
	a, b, c := replicate(t, store.NewMemory())
	id := a.open(t, `{"roots":{}}`)
	stream := events(b.do(t, "GET", "/mcp", "", sessionHeader, id))
	eventually(t, "the stream is open", func() bool { return b.hasStream(t, id) })
	if err := a.copy(t, id).session.Send([]byte(`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"hi"}}`)); err != nil {
		t.Fatal(err)
	}
	if !stream.Scan() || !strings.Contains(stream.Text(), `"data":"hi"`) {
		t.Fatalf("the stream has %s", stream.Text())
	}
	asked := make(chan string, 1)
	go func() {
		got, err := a.copy(t, id).session.Client().Request(t.Context(), "roots/list", nil)
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
		"with a store":    {store.NewMemory(), errNotDelivered},
		"without a store": {nil, errNoStream},
	} {
		t.Run(name, func(t *testing.T) {
			s := listen(t, row.store)
			id := s.open(t, `{"roots":{}}`)
			s.replicas.deliveryTime = time.Millisecond
			_, err := s.copy(t, id).session.Client().Request(t.Context(), "roots/list", nil)
			if err == nil || !strings.Contains(err.Error(), row.want.Error()) {
				t.Errorf("got %v", err)
			}
			if n := s.copy(t, id); len(n.offered) > 0 || n.session.Client().Conn.Len() > 0 {
				t.Error("it is still pending")
			}
		})
	}
}

// TestRequestsWhileTheStoreIsDown: a request to a client whose stream may be elsewhere fails
// as soon as it is known that no replica gets it.
func TestRequestsWhileTheStoreIsDown(t *testing.T) {
	s := listen(t, brokenStore{store.NewMemory()})
	id := s.open(t, `{"roots":{}}`)
	s.replicas.deliveryTime = time.Hour
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := s.copy(t, id).session.Client().Request(ctx, "roots/list", nil)
	if err == nil || !strings.Contains(err.Error(), errNotOffered.Error()) {
		t.Errorf("got %v", err)
	}
	if n := s.copy(t, id); len(n.offered) > 0 || n.session.Client().Conn.Len() > 0 {
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
	eventually(t, "the stream is open", func() bool { return a.hasStream(t, id) })
	second := events(b.do(t, "GET", "/mcp", "", sessionHeader, id))
	if got := whole(t, first); got != "200 " {
		t.Errorf("the first stream ends with %s", got)
	}
	eventually(t, "the stream is open", func() bool { return b.hasStream(t, id) })
	if err := b.copy(t, id).session.Send([]byte(`{"a":1}`)); err != nil || !second.Scan() || second.Text() != `{"a":1}` {
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
		eventually(t, "the stream is open", func() bool { return s.hasStream(t, id) })
	}
	eventually(t, "both notes wait", func() bool { return shared.held.Load() == 2 })
	close(shared.gate)
	eventually(t, "both notes are published", func() bool { return shared.published.Load() >= 2 })
	if first, second := a.hasStream(t, id), b.hasStream(t, id); first || !second {
		t.Errorf("the first stream is open: %t, the second: %t; only the second should be", first, second)
	}
}

// TestStreamsWithDifferentClocks: of two GET streams on replicas whose clocks differ, one
// stays open.
func TestStreamsWithDifferentClocks(t *testing.T) {
	a, b, _ := replicate(t, store.NewMemory())
	id := a.open(t, `{}`)
	a.do(t, "GET", "/mcp", "", sessionHeader, id)
	eventually(t, "the first stream is open", func() bool { return a.hasStream(t, id) })
	first := a.copy(t, id)
	first.mu.Lock()
	first.newest.time += time.Hour.Microseconds()
	first.mu.Unlock()
	b.do(t, "GET", "/mcp", "", sessionHeader, id)
	eventually(t, "one stream is open", func() bool { return a.hasStream(t, id) && !b.hasStream(t, id) })
	b.do(t, "GET", "/mcp", "", sessionHeader, id)
	eventually(t, "the newest stream stays", func() bool { return !a.hasStream(t, id) && b.hasStream(t, id) })
}

// TestStreamStaysDuringADrain: a stream to a replica that stops does not end the one that the
// client has elsewhere.
func TestStreamStaysDuringADrain(t *testing.T) {
	a, b, _ := replicate(t, store.NewMemory())
	id := a.open(t, `{}`)
	late := httptest.NewServer(a.Handler()) // for requests that reach the front while it stops
	defer late.Close()
	a.stop()
	a.url = late.URL
	stream := events(b.do(t, "GET", "/mcp", "", sessionHeader, id))
	eventually(t, "the stream is open", func() bool { return b.hasStream(t, id) })
	open := b.copy(t, id).session.Stream()
	if got := whole(t, a.do(t, "GET", "/mcp", "", sessionHeader, id)); got != "200 " {
		t.Errorf("the stream to the replica that stops: %s", got)
	}
	const message = `{"jsonrpc":"2.0","method":"notifications/message"}`
	if err := a.copy(t, id).session.Send([]byte(message)); err != nil || !stream.Scan() || stream.Text() != message {
		t.Errorf("the stream has %s: %v", stream.Text(), err)
	}
	if b.copy(t, id).session.Stream() != open {
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
	servertest.AddMethod(t, "wait", func(_ *server.Server, ctx context.Context, _ *server.Client, _ rpc.Message) ([]byte, error) {
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
			s := listenWith(t, &httpfront.HTTP{Limits: config.Limits{BodyBytes: 8 << 20, Sessions: 10, SessionIdle: time.Hour, CallsPerClient: row.calls}}, shared)
			id := s.do(t, "POST", "/mcp", request("initialize", `{"protocolVersion":"2025-03-26","capabilities":{}}`)).Header.Get(sessionHeader)
			n := s.copy(t, id)
			var waiting sync.WaitGroup
			waiting.Go(func() { s.in(t, id, request("wait", "")) })
			eventually(t, "a call waits", func() bool { return n.session.Client().Conn.Incoming() == 1 })
			if got := s.in(t, id, row.message); !strings.HasPrefix(got, row.want) {
				t.Errorf("got %s", got)
			}
			if got, _ := shared.Get(t.Context(), levelKey+n.id); got != nil {
				t.Errorf("the level %s is shared", got)
			}
			s.EndSession(n.session)
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
	eventually(t, "the stream is open", func() bool { return b.hasStream(t, id) })
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
	eventually(t, "the other replica has unsubscribed", func() bool { return a.copy(t, id).session.Client().Conn.Incoming() == 0 })
	if got := a.in(t, id, update); !strings.HasPrefix(got, "200 ") {
		t.Fatal(got)
	}
	const end = `{"jsonrpc":"2.0","method":"the end"}`
	if err := a.copy(t, id).session.Send([]byte(end)); err != nil || !stream.Scan() || stream.Text() != end {
		t.Errorf("the stream has %s: %v", stream.Text(), err)
	}
}

// TestListsOfSeveralReplicas: a replica that continues a session announces a list that changes
// there, though the client has not read it there.
func TestListsOfSeveralReplicas(t *testing.T) {
	a, b, _ := replicate(t, store.NewMemory())
	id := a.open(t, `{}`)
	stream := events(a.do(t, "GET", "/mcp", "", sessionHeader, id))
	eventually(t, "the stream is open", func() bool { return a.hasStream(t, id) })
	if got := b.in(t, id, request("tools/call", exec("change", `{"notices":1,"list":"prompts"}`))); !strings.HasPrefix(got, "200 ") {
		t.Fatal(got)
	}
	if !stream.Scan() || !strings.Contains(stream.Text(), "notifications/prompts/list_changed") {
		t.Errorf("the stream has %s", stream.Text())
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
	p := New(&httpfront.HTTP{}, box(1), store.NewMemory())
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
	h := &httpfront.HTTP{}
	h.Handler()
	p := New(h, box(1), shared)
	defer until(p.Run)()
	c := &sessionCopy{replicas: p, id: "x"}
	var err error
	for sent := 0; err == nil && sent <= maxNotes+1; sent++ { // one is being published
		err = c.Send([]byte(`{"jsonrpc":"2.0","method":"notifications/message"}`))
	}
	if !errors.Is(err, errQueueFull) {
		t.Fatalf("got %v", err)
	}
	asked := request("ping", "")
	if err := c.Send([]byte(asked)); err != nil {
		t.Fatal(err)
	}
	defer c.endWait([]byte("1")) // ends its timer
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
				p := New(&httpfront.HTTP{}, box(1), slow)
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
	id := s.open(t, "{}")
	n := s.copy(t, id)
	p := s.replicas
	for _, text := range []string{
		"", "\n", "session", "session ended x", "token changed a b\n", "session unknown x " + n.id + "\n",
		"session ended " + p.id + " " + n.id + "\n", "session ended x other\n", "session received x " + n.id + "\n{", "session taken x " + n.id + "\n1",
		"session offered x " + n.id + "\n" + request("ping", ""), strings.Repeat("session ", 1000),
	} {
		p.receive([]byte(text))
	}
	if got := s.copy(t, id); got != n || n.isOver() {
		t.Error("the session has ended")
	}
	p.receive([]byte("session ended x " + n.id + "\n"))
	eventually(t, "the session ends", n.isOver)
}

// TestNotesCallNoTools: whoever can write to the store cannot call tools in a client session.
// Replicas accept only the kinds of messages that replicas forward.
func TestNotesCallNoTools(t *testing.T) {
	s := listen(t, nil, servertest.Upstream(t, "one", "-count-calls"))
	id := s.do(t, "POST", "/mcp", request("initialize", `{"protocolVersion":"2025-03-26","capabilities":{}}`)).Header.Get(sessionHeader) // with batches
	call := request("tools/call", exec("calls", "{}"))
	n, p := s.copy(t, id), s.replicas
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
	n, p := s.copy(t, id), s.replicas
	eventually(t, "the stream is open", func() bool { return n.session.Stream() != nil })
	for _, payload := range []string{result(`{"forged":1}`), "{", request("ping", "")} {
		p.receive(note{kind: noteOffered, session: n.id, payload: []byte(payload)}.text("stranger"))
	}
	n.session.EndStream(n.session.Stream())
	if got := whole(t, stream); strings.Contains(got, "forged") || !strings.Contains(got, "ping") {
		t.Errorf("the client gets %s", got)
	}
}

// TestResultsEndWithTheStream: nobody can continue a session of legacy SSE, so its results do
// not stay in the store.
func TestResultsEndWithTheStream(t *testing.T) {
	shared := &resultKeys{Memory: store.NewMemory()}
	s := listen(t, shared, servertest.Upstream(t, "one"))
	s.executor.Share(s.replicas.Shelf("default"))
	r := s.do(t, "GET", "/sse", "")
	e := events(r)
	if !e.Scan() {
		t.Fatal("no endpoint")
	}
	path := e.Text()
	s.do(t, "POST", path, request("initialize", `{"protocolVersion":"2024-11-05","capabilities":{}}`))
	s.do(t, "POST", path, request("tools/call", exec("echo", `{"text":"`+strings.Repeat("word ", 20_000)+`"}`)))
	for e.Scan() && !strings.Contains(e.Text(), "Kept as") {
	}
	if n := shared.added.Load(); n != 1 {
		t.Fatalf("%d results are shared", n)
	}
	_ = r.Body.Close()
	eventually(t, "it is removed", func() bool { return shared.removed.Load() == 1 })
}

// resultKeys counts the results that are added to a store and removed from it.
type resultKeys struct {
	*store.Memory
	added, removed atomic.Int64
}

func (s *resultKeys) Add(ctx context.Context, key string, value []byte, keep time.Duration) (bool, error) {
	s.added.Add(1)
	return s.Memory.Add(ctx, key, value, keep)
}

func (s *resultKeys) Delete(ctx context.Context, key string) error {
	s.removed.Add(1)
	return s.Memory.Delete(ctx, key)
}

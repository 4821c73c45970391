package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpx/internal/jsonrpc"
	"mcpx/internal/mcptest"
)

// recorder is a client that answers with its own name and notes what it is told.
type recorder struct {
	id    string
	owner string        // if it is another
	hold  chan struct{} // if not nil, answers wait for it
	mu    sync.Mutex
	told  []string
	asked []string
	news  chan struct{}
}

func newRecorder(id string) *recorder { return &recorder{id: id, news: make(chan struct{}, 1000)} }

func (c *recorder) ID() string { return c.id }

func (c *recorder) Owner() string { return cmp.Or(c.owner, c.id) }

func (c *recorder) Request(ctx context.Context, method string, params []byte) ([]byte, error) {
	c.mu.Lock()
	c.asked = append(c.asked, method+" "+string(params))
	c.mu.Unlock()
	c.news <- struct{}{}
	if c.hold != nil {
		select {
		case <-c.hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if method == "elicitation/create" {
		return nil, &jsonrpc.Error{Code: -1, Message: "User rejected", Data: []byte(`{"a":1}`)}
	}
	return fmt.Appendf(nil, `{"from":%q}`, c.id), nil
}

func (c *recorder) Notify(method string, params []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = append(c.told, strings.TrimSpace(method+" "+string(params)))
	c.news <- struct{}{}
}

// heard are the notifications of a method that came.
func (c *recorder) heard(method string) (params []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, told := range c.told {
		if text, ok := strings.CutPrefix(told, method+" "); ok {
			params = append(params, text)
		}
	}
	return params
}

// wait waits until the client was told all of that.
func (c *recorder) wait(t *testing.T, want ...string) {
	t.Helper()
	limit := time.After(10 * time.Second)
	for {
		c.mu.Lock()
		all := slices.Concat(c.told, c.asked)
		c.mu.Unlock()
		missing := slices.DeleteFunc(slices.Clone(want), func(w string) bool { return slices.Contains(all, w) })
		if len(missing) == 0 {
			return
		}
		select {
		case <-c.news:
		case <-limit:
			t.Fatalf("%s was never told %q, only %q", c.id, missing, all)
		}
	}
}

// callAs calls a tool for a client.
func callAs(t *testing.T, r *Registry, c Client, tool, arguments string) (string, error) {
	t.Helper()
	result, err := r.Call(t.Context(), "a", Request{
		Method: "tools/call", Params: fmt.Appendf(nil, `{"name":%q,"arguments":%s}`, tool, arguments), Meta: []byte("{}"), Client: c,
	})
	if err != nil {
		return "", err
	}
	var answer struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(result, &answer); err != nil {
		return "", err
	}
	return answer.Content[0].Text, nil
}

func TestUpstreamAsksTheClientWhoseCallItIs(t *testing.T) {
	r, _ := run(t, map[string]any{"a": mcptest.Upstream(t)})
	one, two := newRecorder("one"), newRecorder("two")
	r.Attach(one)
	r.Attach(two)
	for _, c := range []*recorder{one, two} {
		got, err := callAs(t, r, c, "ask", `{"method":"sampling/createMessage","params":{"temperature":0,"maxTokens":9007199254740993}}`)
		if want := fmt.Sprintf(`{"from":%q}`, c.id); err != nil || got != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
		c.wait(t, `sampling/createMessage {"temperature":0,"maxTokens":9007199254740993}`)
	}
	got, err := callAs(t, r, one, "ask", `{"method":"elicitation/create"}`)
	if want := `error {"code":-1,"message":"User rejected","data":{"a":1}}`; err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	got, _ = callAs(t, r, one, "ask", `{"method":"tasks/list"}`)
	if want := `error {"code":-32601,"message":"Method 'tasks/list' not found"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, _ = callAs(t, r, one, "ask", `{"method":"ping"}`); got != `{}` {
		t.Errorf("ping was answered with %s", got)
	}
}

func TestUncertainRequestsAreRefused(t *testing.T) {
	r, _ := run(t, map[string]any{"a": mcptest.Upstream(t)})
	one, two := newRecorder("one"), newRecorder("two")
	r.Attach(one)
	r.Attach(two)
	one.hold = make(chan struct{})
	first := make(chan string, 1)
	go func() {
		got, err := callAs(t, r, one, "ask", `{"method":"roots/list"}`)
		first <- fmt.Sprint(got, err)
	}()
	one.wait(t, "roots/list {}")
	got, err := callAs(t, r, two, "ask", `{"method":"roots/list"}`)
	want := `error {"code":-32600,"message":"roots/list was refused: several clients have calls in flight on the shared session of server \"a\"; set \"isolation\": \"client\" for it"}`
	if err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	close(one.hold)
	if got := <-first; got != `{"from":"one"}<nil>` {
		t.Errorf("the first client's call got %s", got)
	}
	two.mu.Lock()
	defer two.mu.Unlock()
	if len(two.asked) != 0 {
		t.Errorf("the second client was asked %q", two.asked)
	}
}

func TestRootsAtTheStartGoToTheOnlyClient(t *testing.T) {
	r, l := run(t, map[string]any{"a": mcptest.Upstream(t, "-ask-roots")})
	l.wait(t, "roots:")
	if l.count("no client has a call in flight") != 1 {
		t.Error("without a client the roots were not refused")
	}
	r.Attach(newRecorder("one"))
	_, _ = callTool(t.Context(), r, "a", "crash", "{}")
	mustCall(t, r, "a", "pid", "{}")
	l.wait(t, `roots: {\"from\":\"one\"}`)
}

func TestWithdrawnRequestsEnd(t *testing.T) {
	r, _ := run(t, map[string]any{"a": mcptest.Upstream(t)})
	c := newRecorder("one")
	c.hold = make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := r.Call(ctx, "a", Request{Method: "tools/call", Params: []byte(`{"name":"ask","arguments":{"method":"roots/list"}}`), Meta: []byte("{}"), Client: c})
		done <- err
	}()
	c.wait(t, "roots/list {}")
	cancel() // the upstream hears of it and withdraws what it asked
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	u := r.Catalog().Upstream("a")
	mustCall(t, r, "a", "pid", "{}")
	limit := time.After(10 * time.Second)
	for poll := time.NewTicker(5 * time.Millisecond); ; {
		left := u.session.conn.Incoming()
		if left == 0 {
			poll.Stop()
			return
		}
		select {
		case <-poll.C:
		case <-limit:
			t.Fatal("the client is still being asked")
		}
	}
}

func TestLogMessagesCarryTheirServer(t *testing.T) {
	r, _ := run(t, map[string]any{"a": mcptest.Upstream(t)})
	one, two := newRecorder("one"), newRecorder("two")
	r.Attach(one)
	r.Attach(two)
	if _, err := callAs(t, r, one, "say", `{"method":"notifications/message","params":[{"level":"info","data":1},{"level":"info","logger":"db","data":{"x":9007199254740993}}]}`); err != nil {
		t.Fatal(err)
	}
	want := []string{`{"level":"info","data":1,"logger":"a"}`, `{"level":"info","logger":"a/db","data":{"x":9007199254740993}}`}
	if got := one.heard("notifications/message"); !slices.Equal(got, want) {
		t.Errorf("one was told %q, want %q", got, want)
	}
	if got := two.heard("notifications/message"); got != nil {
		t.Errorf("two was told %q", got)
	}
}

func TestListsAreAnnounced(t *testing.T) {
	r, _ := run(t, map[string]any{"a": mcptest.Upstream(t, "-full", "-start-delay", "3s")}) // not ready before the client is there
	c := newRecorder("one")
	r.Attach(c)
	c.wait(t, "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed")
	u := r.Settled(t.Context(), "a")
	for what, keys := range map[string][2][]string{
		"prompts":   {{"plain", "choice", "needs"}, names(u.Prompts)},
		"resources": {{"test://one", "own://test"}, names(u.Resources)},
		"templates": {{"item://{id}", "own://test/{category}/{id}"}, names(u.Templates)},
	} {
		if !slices.Equal(keys[0], keys[1]) {
			t.Errorf("%s are %q, want %q", what, keys[1], keys[0])
		}
	}
	if !u.Has("completions") || u.Has("tasks") {
		t.Errorf("capabilities %s", u.Capabilities)
	}
}

func names(items []Item) (keys []string) {
	for _, i := range items {
		keys = append(keys, i.Key)
	}
	return keys
}

func TestSubscriptions(t *testing.T) {
	r, l := run(t, map[string]any{"a": mcptest.Upstream(t, "-full")})
	one, two := newRecorder("one"), newRecorder("two")
	r.Attach(one)
	r.Attach(two)
	subscribe := func(c *recorder, uri string) {
		t.Helper()
		if err := r.Subscribe(t.Context(), c, "a", uri, "known:"+uri); err != nil {
			t.Fatal(err)
		}
	}
	subscribe(one, "test://one")
	subscribe(two, "test://one")
	subscribe(two, "test://two")
	update := func(uri string) {
		mustCall(t, r, "a", "say", fmt.Sprintf(`{"method":"notifications/resources/updated","params":[{"uri":%q}]}`, uri))
	}
	for _, uri := range []string{"test://one", "test://two", "test://three", "test://one/part", "test://onemore"} {
		update(uri)
	}
	updates := func(c *recorder) []string { return c.heard("notifications/resources/updated") }
	if got, want := updates(one), []string{`{"uri":"known:test://one"}`, `{"uri":"known:test://one/part"}`}; !slices.Equal(got, want) {
		t.Errorf("one heard of %q, want %q", got, want)
	}
	if got, want := updates(two), []string{`{"uri":"known:test://one"}`, `{"uri":"known:test://two"}`, `{"uri":"known:test://one/part"}`}; !slices.Equal(got, want) {
		t.Errorf("two heard of %q, want %q", got, want)
	}
	l.wait(t, "resources/subscribe test://two") // which came after it
	if n := l.count("resources/subscribe test://one"); n != 1 {
		t.Errorf("the upstream was asked %d times, want once for two clients", n)
	}

	_, _ = callTool(t.Context(), r, "a", "crash", "{}")
	mustCall(t, r, "a", "pid", "{}")
	l.waitFor(t, "resources/subscribe test://one", 2) // subscriptions survive a restart

	if err := r.Unsubscribe(t.Context(), one, "a", "test://one"); err != nil {
		t.Fatal(err)
	}
	if err := r.Unsubscribe(t.Context(), one, "a", "test://one"); err != nil {
		t.Fatal(err) // twice does no harm
	}
	if n := l.count("resources/unsubscribe"); n != 0 {
		t.Errorf("the upstream was told %d times though a subscriber is left", n)
	}
	r.Detach(t.Context(), two)
	l.waitFor(t, "resources/unsubscribe test://one", 1)
	l.waitFor(t, "resources/unsubscribe test://two", 1)
	update("test://one")
	if got := len(updates(one)) + len(updates(two)); got != 5 {
		t.Errorf("%d updates in all, want the 5 of before", got)
	}
}

// TestSubscribersChange: while one client leaves and another comes, the upstream
// hears of ends and begins in their order, so that the last word is right.
func TestSubscribersChange(t *testing.T) {
	r, l := run(t, map[string]any{"a": mcptest.Upstream(t, "-full")})
	r.Settled(t.Context(), "a")
	here, other := newRecorder("one"), newRecorder("two")
	r.Attach(here)
	r.Attach(other)
	subscribe := func(c Client) error { return r.Subscribe(t.Context(), c, "a", "test://one", "test://one") }
	if err := subscribe(here); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		var left, came error
		var both sync.WaitGroup
		both.Go(func() { left = r.Unsubscribe(t.Context(), here, "a", "test://one") })
		both.Go(func() { came = subscribe(other) })
		both.Wait()
		if left != nil || came != nil {
			t.Fatal(left, came)
		}
		here, other = other, here
	}
	r.Detach(t.Context(), here)
	if err := r.Subscribe(t.Context(), other, "a", "test://end", "test://end"); err != nil {
		t.Fatal(err)
	}
	r.Detach(t.Context(), other)
	l.wait(t, "resources/unsubscribe test://end") // the log has all of it
	told := regexp.MustCompile(`resources/(un)?subscribe test://one`).FindAllString(l.String(), -1)
	for i, got := range told {
		if want := []string{"resources/subscribe test://one", "resources/unsubscribe test://one"}[i%2]; got != want {
			t.Fatalf("the upstream was told %q one after the other, want them to alternate", told[max(i-2, 0):i+1])
		}
	}
	if len(told)%2 != 0 {
		t.Errorf("the upstream was told %q last, and nobody is left", told[len(told)-1])
	}
	if n := len(r.clients.subscribed); n != 0 {
		t.Errorf("%d scopes have subscriptions, want none", n)
	}
}

// TestSubscribeTwice: of two attempts of one client, one that fails takes nothing
// from the other, nor from what stands.
func TestSubscribeTwice(t *testing.T) {
	r, l := run(t, map[string]any{"a": mcptest.Upstream(t, "-full")})
	r.Settled(t.Context(), "a")
	c := newRecorder("one")
	r.Attach(c)
	subscribe := func(ctx context.Context) error { return r.Subscribe(ctx, c, "a", "test://one", "test://one") }
	update := func(want int) {
		t.Helper()
		mustCall(t, r, "a", "say", `{"method":"notifications/resources/updated","params":[{"uri":"test://one"}]}`)
		if got := len(c.heard("notifications/resources/updated")); got != want {
			t.Fatalf("%d updates, want %d", got, want)
		}
	}
	s := r.clients.subscription(sessionKey{server: "a"}, "test://one")
	s.turn <- struct{}{} // somebody is at it
	waiting, cancel := context.WithCancel(t.Context())
	var first, second error
	var both sync.WaitGroup
	both.Go(func() { first = subscribe(waiting) })
	both.Go(func() { second = subscribe(t.Context()) })
	for limit := time.Now().Add(10 * time.Second); ; runtime.Gosched() {
		r.clients.mu.Lock()
		using := s.using
		r.clients.mu.Unlock()
		if using == 3 {
			break
		}
		if time.Now().After(limit) {
			t.Fatalf("%d are at it, want 3", using)
		}
	}
	cancel()
	<-s.turn
	both.Wait()
	r.clients.release(sessionKey{server: "a"}, "test://one", s)
	if second != nil {
		t.Fatal(first, second)
	}
	update(1)
	for range 20 { // which of two reasons to end is seen first is a matter of luck
		if err := subscribe(waiting); !errors.Is(err, context.Canceled) {
			t.Fatalf("error %v, want that it was cancelled", err)
		}
	}
	update(2)
	r.Detach(t.Context(), c)
	l.waitFor(t, "resources/unsubscribe test://one", 1)
	if err := subscribe(t.Context()); !errors.Is(err, errNoStream) {
		t.Errorf("error %v for a client that has left, want %v", err, errNoStream)
	}
	if n := len(r.clients.subscribed); n != 0 {
		t.Errorf("%d scopes have subscriptions, want none", n)
	}
}

// TestSubscribersWaitNoLonger: an upstream that never answers holds each of many
// subscribers for as long as one call, and one turn before it.
func TestSubscribersWaitNoLonger(t *testing.T) {
	upstream := mcptest.Upstream(t, "-full", "-silent", "resources/subscribe")
	upstream["timeout"] = "300ms"
	r, _ := run(t, map[string]any{"a": upstream})
	r.Settled(t.Context(), "a")
	var all sync.WaitGroup
	begin := time.Now()
	for i := range 100 {
		c := newRecorder(fmt.Sprint("client ", i))
		r.Attach(c)
		all.Go(func() {
			var late *Timeout
			if err := r.Subscribe(t.Context(), c, "a", "test://one", "test://one"); !errors.As(err, &late) {
				t.Errorf("error %v, want a *Timeout", err)
			}
		})
	}
	all.Wait()
	if took := time.Since(begin); took > 15*time.Second { // one after the other they would take 30 s
		t.Errorf("it took %s", took)
	}
}

func TestLevelIsTheMostTalkative(t *testing.T) {
	r, l := run(t, map[string]any{"a": mcptest.Upstream(t, "-full"), "b": mcptest.Upstream(t)})
	r.Settled(t.Context(), "a")
	one, two := newRecorder("one"), newRecorder("two")
	r.Attach(one)
	r.Attach(two)
	r.SetLevel(one, "warning")
	l.waitFor(t, "logging/setLevel warning", 1)
	r.SetLevel(two, "debug")
	l.waitFor(t, "logging/setLevel debug", 1)
	r.SetLevel(one, "error")
	l.waitFor(t, "logging/setLevel debug", 2)
	_, _ = callTool(t.Context(), r, "a", "crash", "{}")
	mustCall(t, r, "a", "pid", "{}")
	l.waitFor(t, "logging/setLevel debug", 3)
}

func TestIsolatedClientsHaveTheirOwnSessions(t *testing.T) {
	own := mcptest.Upstream(t, "-full")
	own["isolation"] = "client"
	r, _ := run(t, map[string]any{"a": own})
	one, two := newRecorder("one"), newRecorder("two")
	r.Attach(one)
	r.Attach(two)
	pids := map[string]bool{}
	for _, c := range []*recorder{one, two} {
		pid, err := callAs(t, r, c, "pid", "{}")
		if err != nil {
			t.Fatal(err)
		}
		if again, err := callAs(t, r, c, "pid", "{}"); err != nil || again != pid {
			t.Errorf("%s went from process %s to %s, %v", c.id, pid, again, err)
		}
		pids[pid] = true
	}
	pids[mustCall(t, r, "a", "pid", "{}")] = true // mcpx's own session
	if len(pids) != 3 {
		t.Errorf("%d processes, want 3", len(pids))
	}

	// What is not certain on a shared session is on one's own.
	if err := r.Subscribe(t.Context(), one, "a", "test://one", "test://one"); err != nil {
		t.Fatal(err)
	}
	if err := r.Subscribe(t.Context(), two, "a", "test://one", "test://one"); err != nil {
		t.Fatal(err)
	}
	if _, err := callAs(t, r, one, "say", `{"method":"notifications/resources/updated","params":[{"uri":"test://one"}]}`); err != nil {
		t.Fatal(err)
	}
	one.wait(t, `notifications/resources/updated {"uri":"test://one"}`)
	if got := two.heard("notifications/resources/updated"); got != nil {
		t.Errorf("two was told %q", got)
	}

	_, err := callAs(t, r, one, "crash", `{"status":3}`)
	var lost *Lost
	if !errors.As(err, &lost) {
		t.Errorf("error %v, want a *Lost", err)
	}
	if _, err := callAs(t, r, one, "pid", "{}"); err != nil {
		t.Errorf("after its death: %v", err)
	}
	r.Detach(t.Context(), one)
	if len(r.sessions.byKey) != 1 {
		t.Errorf("%d private sessions after one client has gone, want 1", len(r.sessions.byKey))
	}
}

// TestTheEndOfAVisitReachesWhoWasSent: a client that was sent to a url hears that
// the visit is over, whoever else uses the session then.
func TestTheEndOfAVisitReachesWhoWasSent(t *testing.T) {
	r, _ := run(t, map[string]any{"a": mcptest.Upstream(t)})
	one, two := newRecorder("one"), newRecorder("two")
	r.Attach(one)
	r.Attach(two)
	visit := func(c *recorder, mode, id string) {
		t.Helper()
		params := fmt.Sprintf(`{"mode":%q,"elicitationId":%q,"url":"https://example.com","message":"?"}`, mode, id)
		if _, err := callAs(t, r, c, "ask", `{"method":"elicitation/create","params":`+params+`}`); err != nil {
			t.Fatal(err)
		}
	}
	complete := func(by *recorder, id string) {
		t.Helper()
		if _, err := callAs(t, r, by, "say", fmt.Sprintf(`{"method":"notifications/elicitation/complete","params":[{"elicitationId":%q}]}`, id)); err != nil {
			t.Fatal(err)
		}
	}
	visit(one, "url", "first")
	visit(two, "url", "second")
	complete(two, "first")
	complete(one, "second")
	complete(one, "unknown") // goes to the one whose call it is
	one.wait(t, `notifications/elicitation/complete {"elicitationId":"first"}`, `notifications/elicitation/complete {"elicitationId":"unknown"}`)
	two.wait(t, `notifications/elicitation/complete {"elicitationId":"second"}`)
	if a, b := one.heard(elicitationComplete), two.heard(elicitationComplete); len(a) != 2 || len(b) != 1 {
		t.Errorf("one heard %q, two heard %q", a, b)
	}
	for i := range maxElicited {
		visit(two, "url", fmt.Sprint("more ", i))
	}
	complete(two, "first")
	two.wait(t, `notifications/elicitation/complete {"elicitationId":"first"}`) // it is forgotten: there are too many
}

// TestAnErrorThatSendsToAURL: the visit may also be what a failed call asks for.
func TestAnErrorThatSendsToAURL(t *testing.T) {
	s := &Session{}
	c := newRecorder("one")
	s.rememberURLs(&jsonrpc.Error{Code: -32042, Data: []byte(`{"elicitations":[{"mode":"url","elicitationId":"x","url":"https://example.com"},{"mode":"form","elicitationId":"y"}]}`)}, c)
	s.rememberURLs(&jsonrpc.Error{Code: -32603, Data: []byte(`{"elicitations":[{"mode":"url","elicitationId":"z"}]}`)}, c)
	for id, want := range map[string]Client{"x": c, "y": nil, "z": nil} {
		if got := s.visitor(fmt.Appendf(nil, `{"elicitationId":%q}`, id)); got != want {
			t.Errorf("%s: %v, want %v", id, got, want)
		}
	}
}

// TestPassingClientsHaveSessionsForAWhile: of clients without a session nobody
// hears when they leave.
func TestPassingClientsHaveSessionsForAWhile(t *testing.T) {
	own := mcptest.Upstream(t)
	own["isolation"] = "client"
	r, _ := run(t, map[string]any{"a": own})
	pid := func(c *recorder) string {
		t.Helper()
		pid, err := callAs(t, r, c, "pid", "{}")
		if err != nil {
			t.Fatal(err)
		}
		return pid
	}
	count := func() int {
		r.sessions.mu.Lock()
		defer r.sessions.mu.Unlock()
		return len(r.sessions.byKey)
	}
	stays := newRecorder("stays")
	r.Attach(stays)
	first := pid(stays)
	one, again := newRecorder("1"), newRecorder("2")
	one.owner, again.owner = "sender", "sender"
	if a, b := pid(one), pid(again); a != b || a == first {
		t.Errorf("processes %s, %s and %s, want one for the sender and another for the client with a session", a, b, first)
	}
	for _, c := range []*recorder{again, one} { // each hears of its own call, whoever opened the session
		params := fmt.Sprintf(`{"level":"info","data":%q,"logger":"a"}`, c.id)
		if _, err := callAs(t, r, c, "say", `{"method":"notifications/message","params":[`+params+`]}`); err != nil {
			t.Fatal(err)
		}
		if got, want := c.heard("notifications/message"), fmt.Sprintf(`{"level":"info","data":%q,"logger":"a/a"}`, c.id); !slices.Equal(got, []string{want}) {
			t.Errorf("%s heard %q, want %s", c.id, got, want)
		}
	}
	key := sessionKey{"a", "sender"}
	r.sessions.mu.Lock()
	p := r.sessions.byKey[key]
	r.sessions.mu.Unlock()
	uses := func(p *clientSession) int {
		r.sessions.mu.Lock()
		defer r.sessions.mu.Unlock()
		return p.using
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := r.Call(ctx, "a", Request{Method: "tools/call", Params: []byte(`{"name":"sleep","arguments":{"ms":3600000}}`), Client: again})
		ended <- err
	}()
	eventually(t, "the session is in use", func() bool { return uses(p) > 0 })
	r.sessions.expire(key, p) // in the middle of a call that takes longer than it may be idle
	if n := count(); n != 2 {
		t.Errorf("%d private sessions are open during a call, want 2", n)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the call ends with %v", err)
	}
	eventually(t, "the session is idle", func() bool { return uses(p) == 0 })
	p.idle.Reset(0)
	eventually(t, "only the session of the client that stays is open", func() bool { return count() == 1 })
	if again := pid(stays); again != first {
		t.Errorf("process %s, and %s before", again, first)
	}

	for i := range maxSessionless {
		c := newRecorder(fmt.Sprint("passing ", i))
		if _, err := r.sessions.acquire(t.Context(), r.supervisors["a"], c, untilIdle); err != nil {
			t.Fatal(err)
		}
	}
	_, err := callAs(t, r, newRecorder("one more"), "pid", "{}")
	var unavailable *Unavailable
	if !errors.As(err, &unavailable) || !strings.Contains(err.Error(), "clients without a session use it already") {
		t.Errorf("error %v, want that there are too many", err)
	}
	left, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := r.clientSession(left, r.supervisors["a"], stays); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v for a client that has left", err)
	}
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for limit := time.Now().Add(20 * time.Second); !is(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("never: %s", what)
		}
	}
}

// TestAClientThatThinksHoldsUpNoOther: one without a session comes back with its
// answer when it has one; until then others can be asked.
func TestAClientThatThinksHoldsUpNoOther(t *testing.T) {
	r, _ := run(t, map[string]any{"a": mcptest.Upstream(t)})
	r.Settled(t.Context(), "a")
	thinks, other := newRecorder("1"), newRecorder("2")
	thinks.owner, other.owner = "sender", "sender"
	thinks.hold = make(chan struct{})
	first := make(chan string, 1)
	go func() {
		answer, err := callAs(t, r, thinks, "ask", `{"method":"roots/list"}`)
		first <- fmt.Sprint(answer, err)
	}()
	thinks.wait(t, "roots/list {}")
	if got, err := callAs(t, r, other, "ask", `{"method":"roots/list"}`); err != nil || !strings.Contains(got, `"from":"2"`) {
		t.Errorf("the other was answered %s, %v", got, err)
	}
	close(thinks.hold)
	if got := <-first; !strings.Contains(got, `"from":"1"`) {
		t.Errorf("the first was answered %s", got)
	}
}

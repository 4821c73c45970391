package registry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/jsonrpc"
	"mcpx/internal/link"
	"mcpx/internal/mcptest"
	"mcpx/internal/rawjson"
)

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

// abandonments are the ways in which nobody waits for a call any more.
var abandonments = []struct {
	name    string
	abandon func(f *fake, id int64, cancel func())
}{
	{"cancelled", func(_ *fake, _ int64, cancel func()) { cancel() }},
	{"timed out", func(*fake, int64, func()) { after(time.Minute) }},
	{"connection broke", func(f *fake, id int64, _ func()) {
		f.current.broken <- &link.CallEnd{ID: fmt.Append(nil, id), Outcome: link.CutOff, Reason: "broke on purpose"}
	}},
}

// TestRequestsOfAbandonedCalls: an upstream goes on with an abandoned call and
// sends a request for it. No other client receives it, whether that client has a
// call in flight or is the only one connected. Once the upstream has answered the
// abandoned call, requests are certain again.
func TestRequestsOfAbandonedCalls(t *testing.T) {
	for _, how := range abandonments {
		for method := range forClients {
			t.Run(how.name+" "+method, func(t *testing.T) {
				replies := make(chan string, 10)
				f := silentFake(replies)
				inTime(t, f, func(t *testing.T, r *Registry) {
					a, b := newRecorder("A"), newRecorder("B")
					r.Attach(a)
					ask := func() string {
						f.current.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":"q","method":%q,"params":{}}`, method))
						return <-replies
					}
					var calls sync.WaitGroup
					call := func(c *recorder) (id int64, cancel func()) {
						ctx, stop := context.WithCancelCause(t.Context())
						calls.Go(func() {
							_, _ = r.Call(ctx, "a", Request{Method: "tools/call", Meta: []byte("{}"), Client: c})
						})
						synctest.Wait()
						return lastCall(r), func() { stop(errors.New("enough")) }
					}
					id, cancel := call(a)
					how.abandon(f, id, cancel)
					synctest.Wait()
					if got := ask(); strings.Contains(got, "isolation") {
						t.Errorf("the only client was not asked: %s", got)
					}
					r.Detach(t.Context(), a)
					r.Attach(b)
					refused := func(when string) {
						t.Helper()
						if got := ask(); !strings.Contains(got, "isolation") || rawjson.Get([]byte(got), "error") == nil || len(b.asked) > 0 {
							t.Errorf("%s: the upstream got %s, B was asked %q", when, got, b.asked)
						}
					}
					refused("B is idle")
					_, cancel = call(b)
					refused("B has a call in flight")
					f.current.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, id))
					synctest.Wait()
					if got := ask(); strings.Contains(got, "isolation") || len(b.asked) != 1 {
						t.Errorf("after the answer: the upstream got %s, B was asked %q", got, b.asked)
					}
					cancel()
					calls.Wait()
				})
			})
		}
	}
}

// TestAbandonedCallsAreBounded: what is remembered has a bound. Beyond it a
// request is refused where another client may be its owner, and only there.
func TestAbandonedCallsAreBounded(t *testing.T) {
	replies := make(chan string, 10)
	f := silentFake(replies)
	inTime(t, f, func(t *testing.T, r *Registry) {
		a, b := newRecorder("A"), newRecorder("B")
		r.Attach(a)
		call := func(ctx context.Context, c *recorder) {
			_, _ = r.Call(ctx, "a", Request{Method: "tools/call", Meta: []byte("{}"), Client: c})
		}
		for range 2 * jsonrpc.MaxAbandoned {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Millisecond, cancel)
			call(ctx, a)
		}
		conn := r.Catalog().Upstream("a").session.conn
		if n := len(conn.Snapshot().Abandoned); n != jsonrpc.MaxAbandoned {
			t.Errorf("%d calls are remembered, want %d", n, jsonrpc.MaxAbandoned)
		}
		ask := func(c *recorder) string {
			ctx, cancel := context.WithCancel(t.Context())
			var calling sync.WaitGroup
			calling.Go(func() { call(ctx, c) })
			synctest.Wait()
			f.current.say(`{"jsonrpc":"2.0","id":"q","method":"roots/list","params":{}}`)
			reply := <-replies
			cancel()
			calling.Wait()
			return reply
		}
		if got := ask(a); strings.Contains(got, "isolation") {
			t.Errorf("A is the only client, but got %s", got)
		}
		for _, c := range conn.Snapshot().Abandoned {
			f.current.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, c.ID))
			synctest.Wait()
		}
		r.Attach(b)
		for _, c := range []*recorder{b, a} {
			if got := ask(c); !strings.Contains(got, "isolation") {
				t.Errorf("%s: calls that were not remembered are forgotten: %s", c.id, got)
			}
		}
	})
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

// TestAThinkingClientKeepsTheCallAlive: while a client is asked, the time is its
// own.
func TestAThinkingClientKeepsTheCallAlive(t *testing.T) {
	const takes = 59 * time.Second // the upstream, once it has its answer; an idle call has a minute
	for _, thinks := range []time.Duration{time.Second, 59 * time.Second, time.Minute, 10 * time.Minute} {
		f := &fake{asks: true, takes: takes}
		inTime(t, f, func(t *testing.T, r *Registry) {
			c := newRecorder("one")
			c.hold = make(chan struct{})
			time.AfterFunc(thinks, func() { close(c.hold) })
			begin := time.Now()
			got, err := r.Call(t.Context(), "a", Request{Method: "tools/call", Meta: []byte("{}"), Client: c})
			if err != nil || string(got) != `{"from":"one"}` || time.Since(begin) != thinks+takes {
				t.Errorf("thinks for %s: got %s, %v, after %s", thinks, got, err, time.Since(begin))
			}
		})
	}
}

// TestAQuestionOfAnotherCall: the client that was asked has no call any more. The
// question then goes to the client whose call was in flight when it came, whose limit
// rests meanwhile, and never to a client that came later.
func TestAQuestionOfAnotherCall(t *testing.T) {
	for _, comesLater := range []bool{false, true} {
		replies := make(chan string, 10)
		f := silentFake(replies)
		inTime(t, f, func(t *testing.T, r *Registry) {
			thinking, over, last := newRecorder("thinking"), overClient{newRecorder("over"), make(chan struct{})}, newRecorder("last")
			thinking.owner, thinking.hold = "a sender without a session", make(chan struct{})
			ctx, cancel := context.WithCancel(t.Context())
			var calls sync.WaitGroup
			call := func(c Client) (id int64) {
				calls.Go(func() {
					_, _ = r.Call(ctx, "a", Request{Method: "tools/call", Meta: []byte("{}"), Client: c})
				})
				synctest.Wait()
				return lastCall(r)
			}
			ask := func(id string) {
				f.current.say(`{"jsonrpc":"2.0","id":"` + id + `","method":"roots/list"}`)
				synctest.Wait()
			}
			if !comesLater {
				call(thinking)
				ask("q1") // it is thinking about this when the next question comes
			}
			id := call(over)
			ask("q2")
			if comesLater {
				call(last)
			}
			f.current.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, id))
			synctest.Wait()
			close(over.over)
			synctest.Wait()
			if comesLater {
				if got := <-replies; !strings.Contains(got, "the call is over") || len(last.asked) > 0 {
					t.Errorf("the upstream got %s, the client that came later was asked %q", got, last.asked)
				}
			} else {
				after(3 * time.Minute) // longer than an idle call may take
				close(thinking.hold)
				for range 2 {
					if got := <-replies; !strings.Contains(got, `{"from":"thinking"}`) {
						t.Errorf("the upstream got %s", got)
					}
				}
			}
			cancel()
			calls.Wait()
		})
	}
}

// overClient says that its call is over when it is.
type overClient struct {
	*recorder
	over chan struct{}
}

func (c overClient) Request(context.Context, string, []byte) ([]byte, error) {
	<-c.over
	return nil, ErrCallOver
}

// TestAQuestionEndsWithItsCalls: what an upstream asks, and does not withdraw, is
// withdrawn when every call that may be its cause was given up.
func TestAQuestionEndsWithItsCalls(t *testing.T) {
	f := &fake{asks: true}
	inTime(t, f, func(t *testing.T, r *Registry) {
		c := newRecorder("one")
		c.hold = make(chan struct{})
		call := func() (cancel func()) {
			ctx, stop := context.WithCancelCause(t.Context())
			enough := errors.New("enough")
			var ended sync.WaitGroup
			ended.Go(func() {
				if _, err := r.Call(ctx, "a", Request{Method: "tools/call", Meta: []byte("{}"), Client: c}); !errors.Is(err, enough) {
					t.Errorf("the call ends with %v", err)
				}
			})
			after(0)
			return func() {
				stop(enough)
				ended.Wait()
				after(0)
			}
		}
		waiting := func() int {
			return r.Catalog().Upstream("a").session.conn.Incoming()
		}
		first, second := call(), call()
		for i, cancel := range []func(){func() {}, first, second} {
			cancel()
			if got, want := waiting(), 2-i; got != want { // the second question may be of either call
				t.Errorf("%d calls given up: %d questions wait, want %d", i, got, want)
			}
		}
		third := call()
		f.set(func(f *fake) {
			f.script = func(_ *fakeLink, method, _ string, _ []byte) (bool, error) { return method == "", nil }
		})
		f.current.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"%d"}}`, lastCall(r)))
		after(0)
		if got := waiting(); got != 0 {
			t.Errorf("withdrawn by the upstream: %d questions wait", got)
		}
		third()
	})
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

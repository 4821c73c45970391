package registry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/link"
	"mcpx/internal/mcptest"
	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/internal/upstream"
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

// TestUncertainRequestsAreRefused: if several clients have calls in flight, a request
// of the upstream goes to none of them. A client without a session that is preparing
// its response does not count: others get their requests meanwhile.
func TestUncertainRequestsAreRefused(t *testing.T) {
	for owner, want := range map[string]string{
		"":       `"error":{"code":-32600,"message":"roots/list was refused: several clients have calls in flight on the shared session of server \"a\"; set \"isolation\": \"client\" for it"}`,
		"sender": `"result":{"from":"two"}`,
	} {
		replies := make(chan string, 10)
		f := silentFake(replies)
		inTime(t, f, func(t *testing.T, r *Registry) {
			one, two := newRecorder("one"), newRecorder("two")
			one.owner, two.owner, one.hold = owner, owner, make(chan struct{})
			_, first := begin(t, f, r, one)
			f.say(`{"jsonrpc":"2.0","id":"q1","method":"roots/list"}`)
			_, second := begin(t, f, r, two)
			f.say(`{"jsonrpc":"2.0","id":"q2","method":"roots/list"}`)
			close(one.hold)
			for _, want := range []string{`{"jsonrpc":"2.0","id":"q2",` + want + `}`, `{"jsonrpc":"2.0","id":"q1","result":{"from":"one"}}`} {
				if got := <-replies; got != want {
					t.Errorf("owner %q: the upstream got %s, want %s", owner, got, want)
				}
			}
			if asked := len(two.asked) > 0; asked != (owner != "") {
				t.Errorf("owner %q: the second client got %q", owner, two.asked)
			}
			_, _ = first(), second()
		})
	}
}

// abandonments are the ways in which a call is given up before the upstream responds.
var abandonments = []struct {
	name    string
	abandon func(f *fake, id int64, cancel func() error)
}{
	{"cancelled", func(_ *fake, _ int64, cancel func() error) { _ = cancel() }},
	{"timed out", func(*fake, int64, func() error) { after(time.Minute) }},
	{"connection broke", func(f *fake, id int64, _ func() error) {
		f.current.broken <- &link.CallEnd{ID: fmt.Append(nil, id), Outcome: link.CutOff, Reason: "broke on purpose"}
	}},
}

// TestRequestsOfAbandonedCalls: an upstream goes on with an abandoned call and
// sends a request for it. No other client receives it, whether that client has a
// call in flight or is the only one connected. Once the upstream has answered the
// abandoned call, requests are certain again.
func TestRequestsOfAbandonedCalls(t *testing.T) {
	for _, how := range abandonments {
		for _, method := range []string{"sampling/createMessage", "elicitation/create", "roots/list"} {
			t.Run(how.name+" "+method, func(t *testing.T) {
				replies := make(chan string, 10)
				f := silentFake(replies)
				inTime(t, f, func(t *testing.T, r *Registry) {
					a, b := newRecorder("A"), newRecorder("B")
					r.Attach(a)
					ask := func() string {
						f.say(`{"jsonrpc":"2.0","id":"q","method":%q,"params":{}}`, method)
						return <-replies
					}
					id, cancel := begin(t, f, r, a)
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
					_, cancel = begin(t, f, r, b)
					refused("B has a call in flight")
					f.say(`{"jsonrpc":"2.0","id":%d,"result":{}}`, id)
					if got := ask(); strings.Contains(got, "isolation") || len(b.asked) != 1 {
						t.Errorf("after the answer: the upstream got %s, B was asked %q", got, b.asked)
					}
					_ = cancel()
				})
			})
		}
	}
}

// TestTooManyAbandonedCalls: if more calls were abandoned than are remembered, a
// request is refused where another client may be its owner, and only there.
func TestTooManyAbandonedCalls(t *testing.T) {
	replies := make(chan string, 10)
	f := silentFake(replies)
	inTime(t, f, func(t *testing.T, r *Registry) {
		a, b := newRecorder("A"), newRecorder("B")
		r.Attach(a)
		var abandoned []int64
		for range rpc.MaxAbandoned + 1 {
			id, cancel := begin(t, f, r, a)
			_ = cancel()
			abandoned = append(abandoned, id)
		}
		ask := func(c *recorder) string {
			_, cancel := begin(t, f, r, c)
			f.say(`{"jsonrpc":"2.0","id":"q","method":"roots/list","params":{}}`)
			_ = cancel()
			return <-replies
		}
		if got := ask(a); strings.Contains(got, "isolation") {
			t.Errorf("A is the only client, but got %s", got)
		}
		for _, id := range abandoned {
			f.say(`{"jsonrpc":"2.0","id":%d,"result":{}}`, id)
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

// TestASlowClientSuspendsTheIdleLimit: the idle limit of a call rests while the
// upstream waits for the client.
func TestASlowClientSuspendsTheIdleLimit(t *testing.T) {
	const takes = 59 * time.Second // the upstream, once it has its answer; an idle call has a minute
	for _, thinks := range []time.Duration{time.Second, 59 * time.Second, time.Minute, 10 * time.Minute} {
		f := &fake{asks: true, takes: takes}
		inTime(t, f, func(t *testing.T, r *Registry) {
			c := newRecorder("one")
			c.hold = make(chan struct{})
			time.AfterFunc(thinks, func() { close(c.hold) })
			begin := time.Now()
			got, err := call(t.Context(), r, c)
			if err != nil || string(got) != `{"from":"one"}` || time.Since(begin) != thinks+takes {
				t.Errorf("thinks for %s: got %s, %v, after %s", thinks, got, err, time.Since(begin))
			}
		})
	}
}

// TestARequestWhoseCallHasEnded: a request of the upstream whose client has no call
// any more goes to the client that had a call in flight when it came. The idle limit
// of that call rests. A later client never gets it.
func TestARequestWhoseCallHasEnded(t *testing.T) {
	const question = `{"jsonrpc":"2.0","id":%q,"method":"roots/list"}`
	for _, comesLater := range []bool{false, true} {
		replies := make(chan string, 10)
		f := silentFake(replies)
		inTime(t, f, func(t *testing.T, r *Registry) {
			thinking, over, last := newRecorder("thinking"), overClient{newRecorder("over"), make(chan struct{})}, newRecorder("last")
			thinking.owner, thinking.hold = "a sender without a session", make(chan struct{})
			if !comesLater {
				_, cancel := begin(t, f, r, thinking)
				defer func() { _ = cancel() }()
				f.say(question, "q1") // it is thinking about this when the next question comes
			}
			id, _ := begin(t, f, r, over)
			f.say(question, "q2")
			if comesLater {
				_, cancel := begin(t, f, r, last)
				defer func() { _ = cancel() }()
			}
			f.say(`{"jsonrpc":"2.0","id":%d,"result":{}}`, id)
			close(over.over)
			synctest.Wait()
			if comesLater {
				if got := <-replies; !strings.Contains(got, "the call is over") || len(last.asked) > 0 {
					t.Errorf("the upstream got %s, the client that came later was asked %q", got, last.asked)
				}
				return
			}
			after(3 * time.Minute) // longer than an idle call may take
			close(thinking.hold)
			for range 2 {
				if got := <-replies; !strings.Contains(got, `{"from":"thinking"}`) {
					t.Errorf("the upstream got %s", got)
				}
			}
		})
	}
}

// overClient reports that its call is over.
type overClient struct {
	*recorder
	over chan struct{}
}

func (c overClient) Request(context.Context, string, []byte) ([]byte, error) {
	<-c.over
	return nil, upstream.ErrCallOver
}

// TestARequestEndsWithItsCalls: an upstream's request ends when all calls that it may
// belong to were given up, or when the upstream cancels it.
func TestARequestEndsWithItsCalls(t *testing.T) {
	f := &fake{asks: true}
	inTime(t, f, func(t *testing.T, r *Registry) {
		c := newRecorder("one")
		c.hold = make(chan struct{})
		var cancels []func() error
		var last int64
		for range 3 {
			id, cancel := begin(t, f, r, c)
			last, cancels = id, append(cancels, cancel)
		}
		waiting := func(when string, want int) {
			t.Helper()
			synctest.Wait()
			if got := int(c.waiting.Load()); got != want {
				t.Errorf("%s: %d questions wait, want %d", when, got, want)
			}
		}
		waiting("three calls", 3)
		f.set(func(f *fake) { // a reply to its question is not the client's answer
			f.script = func(_ *fakeLink, method, _ string, _ []byte) (bool, error) { return method == "", nil }
		})
		f.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"%d"}}`, last)
		waiting("withdrawn", 2)
		for i, cancel := range cancels { // the second question may be of either of two calls
			if err := cancel(); !errors.Is(err, errEnough) {
				t.Errorf("the call ends with %v", err)
			}
			waiting(fmt.Sprint(i+1, " calls given up"), max(1-i, 0))
		}
	})
}

// TestElicitationCompleteReachesItsClient: the notification goes to the client that
// was sent to the URL, whichever client uses the session then.
func TestElicitationCompleteReachesItsClient(t *testing.T) {
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
	complete(one, "unknown") // goes to the client of the running call
	one.wait(t, `notifications/elicitation/complete {"elicitationId":"first"}`, `notifications/elicitation/complete {"elicitationId":"unknown"}`)
	two.wait(t, `notifications/elicitation/complete {"elicitationId":"second"}`)
	if a, b := one.heard("notifications/elicitation/complete"), two.heard("notifications/elicitation/complete"); len(a) != 2 || len(b) != 1 {
		t.Errorf("one heard %q, two heard %q", a, b)
	}
	for i := range 256 { // as many as are remembered
		visit(two, "url", fmt.Sprint("more ", i))
	}
	complete(two, "first")
	two.wait(t, `notifications/elicitation/complete {"elicitationId":"first"}`) // the oldest elicitation is forgotten when there are too many
}

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
	"mcpx/internal/rawjson"
)

// silentFake is an upstream that never answers a call. Each reply to one of its
// requests goes into replies.
func silentFake(replies chan<- string) *fake {
	return &fake{script: func(_ *fakeLink, method, _ string, message []byte) (bool, error) {
		if method == "" {
			replies <- string(message)
		}
		return method == "" || method == "tools/call", nil
	}}
}

// lastCall returns the ID of the newest call to the upstream a.
func lastCall(r *Registry) int64 {
	calls := r.Catalog().Upstream("a").session.conn.Snapshot().Calls
	return calls[len(calls)-1].ID
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
		for id := range conn.Snapshot().Abandoned {
			f.current.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, id))
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

// TestLogMessagesOfSharedSessions: a log message that may belong to one of several
// calls goes to the clients of those calls, and to no idle client.
func TestLogMessagesOfSharedSessions(t *testing.T) {
	f := silentFake(nil)
	inTime(t, f, func(t *testing.T, r *Registry) {
		a, b, idle := newRecorder("A"), newRecorder("B"), newRecorder("idle")
		ctx, cancel := context.WithCancel(t.Context())
		var calls sync.WaitGroup
		for _, c := range []*recorder{a, b, idle} {
			r.Attach(c)
			if c != idle {
				calls.Go(func() {
					_, _ = r.Call(ctx, "a", Request{Method: "tools/call", Meta: []byte("{}"), Client: c})
				})
			}
		}
		synctest.Wait()
		say := func(text string) {
			f.current.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":%q}}`, text))
			synctest.Wait()
		}
		say("during the calls")
		cancel()
		calls.Wait()
		say("after them")
		for c, want := range map[*recorder]int{a: 1, b: 1, idle: 0} {
			if got := c.heard("notifications/message"); len(got) != want {
				t.Errorf("%s received %q, want %d messages", c.id, got, want)
			}
		}
	})
}

// TestSubscriptionsAreNoCalls: a subscription that is given up makes nothing
// uncertain: the upstream asks nothing for it.
func TestSubscriptionsAreNoCalls(t *testing.T) {
	replies := make(chan string, 10)
	f := silentFake(replies)
	quiet := f.script
	f.script = func(l *fakeLink, method, id string, message []byte) (bool, error) {
		if method == "resources/subscribe" {
			return true, nil
		}
		return quiet(l, method, id, message)
	}
	inTime(t, f, func(t *testing.T, r *Registry) {
		listener, client := newRecorder("listener"), newRecorder("client")
		r.Attach(listener)
		r.Attach(client)
		ctx, cancel := context.WithCancel(t.Context())
		var calls sync.WaitGroup
		calls.Go(func() { _ = r.Subscribe(ctx, listener, "a", "test://one", "test://one") })
		synctest.Wait()
		cancel()
		calls.Wait()
		ctx, cancel = context.WithCancel(t.Context())
		calls.Go(func() {
			_, _ = r.Call(ctx, "a", Request{Method: "tools/call", Meta: []byte("{}"), Client: client})
		})
		synctest.Wait()
		f.current.say(`{"jsonrpc":"2.0","id":"q","method":"roots/list"}`)
		if got := <-replies; !strings.Contains(got, `{"from":"client"}`) {
			t.Errorf("the upstream got %s", got)
		}
		cancel()
		calls.Wait()
	})
}

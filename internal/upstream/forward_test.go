package upstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/link"
	"mcpx/internal/rpc"
)

// TestRequestsOfUpstreams: a request of the upstream goes to the client of the call, and
// the client's own result or error comes back.
func TestRequestsOfUpstreams(t *testing.T) {
	rejects := func(context.Context) ([]byte, error) {
		return nil, &rpc.Error{Code: -1, Message: "User rejected", Data: []byte(`{"a":1}`)}
	}
	for _, c := range []struct {
		method string
		reply  func(ctx context.Context) ([]byte, error)
		want   string
		asked  bool
	}{
		{"sampling/createMessage", nil, `{"from":"one"}`, true},
		{"elicitation/create", rejects, `{"code":-1,"message":"User rejected","data":{"a":1}}`, true},
		{"roots/list", nil, `{"from":"one"}`, true},
		{"tasks/list", nil, `{"code":-32601,"message":"Method 'tasks/list' not found"}`, false},
		{"ping", nil, `{}`, false},
	} {
		t.Run(c.method, func(t *testing.T) {
			inTime(t, func(t *testing.T, f fixture) {
				one := &client{id: "one", reply: c.reply}
				_, cancel := f.begin(t, one)
				const params = `{"temperature":0,"maxTokens":9007199254740993}`
				if got := f.peer.request("q", c.method, params); got != c.want {
					t.Errorf("the upstream got %s, want %s", got, c.want)
				}
				if c.asked != slices.Equal(one.asked, []string{c.method + " " + params}) {
					t.Errorf("the client got %q", one.asked)
				}
				_ = cancel()
			})
		})
	}
}

// TestForwardedRequestsAreBounded: no more than maxForwarded requests wait for clients.
func TestForwardedRequestsAreBounded(t *testing.T) {
	inTime(t, func(t *testing.T, f fixture) {
		one := &client{id: "one"}
		one.hold()
		_, cancel := f.begin(t, one)
		for i := range maxForwarded {
			if got := f.peer.request(fmt.Sprint(i), "roots/list", "{}"); got != "" {
				t.Fatalf("request %d got %s", i, got)
			}
		}
		if got := f.peer.request("last", "roots/list", "{}"); !strings.Contains(got, "100 requests to clients are waiting already") {
			t.Errorf("one more got %s", got)
		}
		_ = cancel()
	})
}

// TestUncertainRequestsAreRefused: if several clients have calls in flight, a request
// of the upstream goes to none of them. A client without a session that is preparing
// its response does not count: others get their requests meanwhile.
func TestUncertainRequestsAreRefused(t *testing.T) {
	for owner, want := range map[string]string{
		"":       `{"code":-32600,"message":"roots/list was refused: several clients have calls in flight on the shared session of server \"a\"; set \"isolation\": \"client\" for it"}`,
		"sender": `{"from":"two"}`,
	} {
		inTime(t, func(t *testing.T, f fixture) {
			one, two := &client{id: "one", owner: owner}, &client{id: "two", owner: owner}
			release := one.hold()
			_, first := f.begin(t, one)
			f.peer.request("q1", "roots/list", "{}")
			_, second := f.begin(t, two)
			if got := f.peer.request("q2", "roots/list", "{}"); got != want {
				t.Errorf("owner %q: the upstream got %s, want %s", owner, got, want)
			}
			if (len(two.asked) > 0) != (owner != "") {
				t.Errorf("owner %q: the second client got %q", owner, two.asked)
			}
			release()
			synctest.Wait()
			if got, want := f.peer.response("q1"), `{"from":"one"}`; got != want {
				t.Errorf("owner %q: the upstream got %s, want %s", owner, got, want)
			}
			_, _ = first(), second()
		})
	}
}

// TestStreamsNameTheirCall: a request on the stream of a call goes to the client of that
// call, whoever else has calls, and to nobody after the call.
func TestStreamsNameTheirCall(t *testing.T) {
	inTime(t, func(t *testing.T, f fixture) {
		id, cancel := f.begin(t, &client{id: "one"})
		_, other := f.begin(t, &client{id: "two"})
		request := func() string {
			f.peer.arrivals <- arrival{message: []byte(`{"jsonrpc":"2.0","id":"q","method":"roots/list"}`), callID: id}
			synctest.Wait()
			return f.peer.response("q")
		}
		if got := request(); got != `{"from":"one"}` {
			t.Errorf("during the call: %s", got)
		}
		_ = cancel()
		if got := request(); !strings.Contains(got, "the call that it belongs to is over") {
			t.Errorf("after the call: %s", got)
		}
		_ = other()
	})
}

// TestSubscriptionsAreNoCalls: a subscription that was cancelled makes no request
// uncertain.
func TestSubscriptionsAreNoCalls(t *testing.T) {
	inTime(t, func(t *testing.T, f fixture) {
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if _, err := f.Call(ctx, Request{Method: "resources/subscribe", Client: &client{id: "subscriber"}}, Limits{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the subscription ends with %v", err)
		}
		_, cancel := f.begin(t, &client{id: "one"})
		if got := f.peer.request("q", "roots/list", "{}"); got != `{"from":"one"}` {
			t.Errorf("the upstream got %s", got)
		}
		_ = cancel()
	})
}

// isRefused reports whether a request of the upstream was refused because it is uncertain.
func isRefused(response string) bool { return strings.Contains(response, `\"isolation\"`) }

// TestRequestsOfAbandonedCalls: an upstream goes on with an abandoned call and
// sends a request for it. No other client receives it, whether that client has a
// call in flight or is the only one connected. Once the upstream has responded to the
// abandoned call, requests are certain again.
func TestRequestsOfAbandonedCalls(t *testing.T) {
	abandonments := map[string]func(f fixture, id []byte, cancel func() error){
		"cancelled": func(_ fixture, _ []byte, cancel func() error) { _ = cancel() },
		"timed out": func(fixture, []byte, func() error) { after(time.Minute) },
		"connection broke": func(f fixture, id []byte, _ func() error) {
			f.peer.arrivals <- arrival{err: &link.CallEnd{ID: id, Outcome: link.CutOff, Reason: "broke on purpose"}}
		},
	}
	for how, abandon := range abandonments {
		for method := range forClients {
			t.Run(how+" "+method, func(t *testing.T) {
				inTime(t, func(t *testing.T, f fixture) {
					a, b := &client{id: "A"}, &client{id: "B"}
					f.host.only = a
					id, cancel := f.begin(t, a)
					abandon(f, id, cancel)
					synctest.Wait()
					if got := f.peer.request("q", method, "{}"); got != `{"from":"A"}` {
						t.Errorf("the only client was not asked: %s", got)
					}
					f.host.only = b
					if got := f.peer.request("q", method, "{}"); !isRefused(got) {
						t.Errorf("B is idle: %s", got)
					}
					_, cancel = f.begin(t, b)
					if got := f.peer.request("q", method, "{}"); !isRefused(got) {
						t.Errorf("B has a call in flight: %s", got)
					}
					f.peer.respond(id, done)
					if got := f.peer.request("q", method, "{}"); got != `{"from":"B"}` {
						t.Errorf("after the response: %s", got)
					}
					if len(b.asked) != 1 {
						t.Errorf("B got %q", b.asked)
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
	inTime(t, func(t *testing.T, f fixture) {
		a, b := &client{id: "A"}, &client{id: "B"}
		var abandoned [][]byte
		for range rpc.MaxAbandoned + 1 {
			id, cancel := f.begin(t, a)
			_ = cancel()
			abandoned = append(abandoned, id)
		}
		request := func(c *client) string {
			_, cancel := f.begin(t, c)
			defer func() { _ = cancel() }()
			return f.peer.request("q", "roots/list", "{}")
		}
		if got := request(a); isRefused(got) {
			t.Errorf("A is the only client, but got %s", got)
		}
		for _, id := range abandoned {
			f.peer.respond(id, done)
		}
		for _, c := range []*client{b, a} {
			if got := request(c); !isRefused(got) {
				t.Errorf("%s: calls that were not remembered are forgotten: %s", c.id, got)
			}
		}
	})
}

// TestSlowClientSuspendsTheIdleLimit: the idle limit of a call rests while the upstream
// waits for the client.
func TestSlowClientSuspendsTheIdleLimit(t *testing.T) {
	const takes = 59 * time.Second // the upstream, once it has its answer; an idle call has a minute
	for _, thinks := range []time.Duration{time.Second, 59 * time.Second, time.Minute, 10 * time.Minute} {
		inTime(t, func(t *testing.T, f fixture) {
			c := &client{id: "one"}
			time.AfterFunc(thinks, c.hold())
			f.peer.on("tools/call", func(m rpc.Message) {
				f.peer.send(`{"jsonrpc":"2.0","id":"q","method":"roots/list"}`)
				f.peer.on("", func(rpc.Message) { time.AfterFunc(takes, func() { f.peer.respond(m.ID, done) }) })
			})
			begin := time.Now()
			if _, err := f.call(t.Context(), c); err != nil || time.Since(begin) != thinks+takes {
				t.Errorf("thinks for %s: %v, after %s", thinks, err, time.Since(begin))
			}
		})
	}
}

// TestRequestWhoseCallHasEnded: a request of the upstream whose client has no call
// any more goes to the client that had a call in flight when it came. The idle limit
// of that call rests. A later client never gets it.
func TestRequestWhoseCallHasEnded(t *testing.T) {
	for _, comesLater := range []bool{false, true} {
		inTime(t, func(t *testing.T, f fixture) {
			thinking, over, last := &client{id: "thinking", owner: "a sender without a session"}, &client{id: "over"}, &client{id: "last"}
			release := thinking.hold()
			ended := make(chan struct{})
			over.reply = func(context.Context) ([]byte, error) {
				<-ended
				return nil, ErrCallOver
			}
			if !comesLater {
				_, cancel := f.begin(t, thinking)
				defer func() { _ = cancel() }()
				f.peer.request("q1", "roots/list", "{}") // it is thinking about this when the next request comes
			}
			id, _ := f.begin(t, over)
			f.peer.request("q2", "roots/list", "{}")
			if comesLater {
				_, cancel := f.begin(t, last)
				defer func() { _ = cancel() }()
			}
			f.peer.respond(id, done)
			synctest.Wait()
			close(ended)
			after(3 * time.Minute) // longer than an idle call may take
			release()
			synctest.Wait()
			if comesLater {
				if got := f.peer.response("q2"); !strings.Contains(got, "the call is over") || len(last.asked) > 0 {
					t.Errorf("the upstream got %s, the client that came later got %q", got, last.asked)
				}
				return
			}
			for _, id := range []string{"q1", "q2"} {
				if got := f.peer.response(id); got != `{"from":"thinking"}` {
					t.Errorf("the upstream got %s", got)
				}
			}
		})
	}
}

// TestRequestEndsWithItsCalls: an upstream's request ends when all calls that it may
// belong to were abandoned, or when the upstream cancels it.
func TestRequestEndsWithItsCalls(t *testing.T) {
	inTime(t, func(t *testing.T, f fixture) {
		c := &client{id: "one"}
		c.hold()
		var cancels []func() error
		for i := range 3 {
			_, cancel := f.begin(t, c)
			f.peer.request(fmt.Sprint(i), "roots/list", "{}")
			cancels = append(cancels, cancel)
		}
		waiting := func(when string, want int) {
			t.Helper()
			synctest.Wait()
			if got := int(c.waiting.Load()); got != want {
				t.Errorf("%s: %d requests wait, want %d", when, got, want)
			}
		}
		waiting("three calls", 3)
		f.peer.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"2","reason":"no sesame"}}`)
		waiting("cancelled", 2)
		if got := f.peer.response("2"); !strings.Contains(got, "no ***") {
			t.Errorf("the cancelled request got %s", got)
		}
		for i, cancel := range cancels { // the second request may be for either of two calls
			if err := cancel(); !errors.Is(err, errEnough) {
				t.Errorf("the call ends with %v", err)
			}
			waiting(fmt.Sprint(i+1, " calls abandoned"), max(1-i, 0))
		}
		if n := len(f.peer.got("notifications/cancelled")); n != 3 {
			t.Errorf("%d of 3 calls were cancelled at the upstream", n)
		}
	})
}

// TestLogMessages: a log message that may belong to one of several calls goes to the
// clients of those calls, and to no idle client.
func TestLogMessages(t *testing.T) {
	inTime(t, func(t *testing.T, f fixture) {
		f.host.only = &client{id: "idle"}
		parked := &client{id: "parked", owner: "sender"}
		parked.hold()
		var cancels []func() error
		log := func() string {
			f.peer.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{}}`)
			return strings.Join(f.host.heard(), ", ")
		}
		for _, step := range []struct {
			client *client
			want   string
		}{
			{parked, "notifications/message {} parked"},
			{&client{id: "A"}, "notifications/message {} A"}, // the upstream waits for the response of parked
			{&client{id: "B"}, "notifications/message {} A B parked"},
		} {
			_, cancel := f.begin(t, step.client)
			if step.client == parked {
				f.peer.request("q", "roots/list", "{}")
			}
			if got := log(); got != step.want {
				t.Errorf("got %q, want %q", got, step.want)
			}
			cancels = append(cancels, cancel)
		}
		for _, cancel := range cancels {
			_ = cancel()
		}
		if got := log(); got != "notifications/message {}" {
			t.Errorf("after the calls: %q", got)
		}
	})
}

// TestElicitationCompleteReachesItsClient: the notification goes to the client that
// was sent to the URL, whichever client uses the session then.
func TestElicitationCompleteReachesItsClient(t *testing.T) {
	inTime(t, func(t *testing.T, f fixture) {
		one, two := &client{id: "one"}, &client{id: "two"}
		visit := func(c *client, id string) {
			t.Helper()
			callID, _ := f.begin(t, c)
			if got := f.peer.request("q", "elicitation/create", fmt.Sprintf(`{"mode":"url","elicitationId":%q}`, id)); got != string(c.from()) {
				t.Fatalf("the upstream got %s", got)
			}
			f.peer.respond(callID, done)
			synctest.Wait()
		}
		complete := func(id, want string) {
			t.Helper()
			f.peer.say(`{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":%q}}`, id)
			if got := f.host.heard(); !slices.Equal(got, []string{strings.TrimSpace(fmt.Sprintf(`notifications/elicitation/complete {"elicitationId":%q} %s`, id, want))}) {
				t.Errorf("%s: got %q, want it for %q", id, got, want)
			}
		}
		visit(one, "first")
		visit(two, "second")
		complete("second", "two")
		complete("first", "one")
		complete("first", "one")
		_, cancel := f.begin(t, two)
		complete("first", "one")
		complete("unknown", "two") // the client of the running call
		_ = cancel()
		for i := range maxElicited {
			visit(two, fmt.Sprint("more ", i))
		}
		complete("first", "") // the oldest is forgotten
	})
}

// TestURLsInErrorsAreRemembered: the error of a call may send a client to a URL, too.
func TestURLsInErrorsAreRemembered(t *testing.T) {
	s := &Session{}
	c := &client{id: "one"}
	s.rememberURLs(&rpc.Error{Code: -32042, Data: []byte(`{"elicitations":[{"mode":"url","elicitationId":"x","url":"https://example.com"},{"mode":"form","elicitationId":"y"}]}`)}, c)
	s.rememberURLs(&rpc.Error{Code: -32603, Data: []byte(`{"elicitations":[{"mode":"url","elicitationId":"z"}]}`)}, c)
	for id, want := range map[string]Client{"x": c, "y": nil, "z": nil} {
		if got := s.visitor(fmt.Appendf(nil, `{"elicitationId":%q}`, id)); got != want {
			t.Errorf("%s: %v, want %v", id, got, want)
		}
	}
}

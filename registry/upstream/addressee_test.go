package upstream

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/rpc"
	"mcpx/registry/link"
)

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
			f.peer.arrivals <- link.Delivery{Line: rpc.Line{Text: []byte(`{"jsonrpc":"2.0","id":"q","method":"roots/list"}`)}, CallID: id}
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

// TestSubscriptionsAreNoCalls: a subscription that was canceled makes no request
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

// TestRequestsOfPastCalls: an upstream sends a request for a call that has its response or was
// abandoned. No other client receives it, whether that client has a pending call or is the only
// one connected. After a minute without a message of that call, other clients receive requests
// again.
func TestRequestsOfPastCalls(t *testing.T) {
	ends := map[string]func(f fixture, id []byte, cancel func() error){
		"answered":  func(f fixture, id []byte, _ func() error) { f.peer.respond(id, done) },
		"failed":    func(f fixture, id []byte, _ func() error) { f.peer.respond(id, `"error":{"code":1,"message":"no"}`) },
		"malformed": func(f fixture, id []byte, _ func() error) { f.peer.respond(id, `"result":{},"error":{}`) },
		"canceled":  func(_ fixture, _ []byte, cancel func() error) { _ = cancel() },
		"canceled, then answered": func(f fixture, id []byte, cancel func() error) {
			_ = cancel()
			f.peer.respond(id, done)
		},
		"canceled, then progress": func(f fixture, id []byte, cancel func() error) {
			_ = cancel()
			after(50 * time.Second)
			f.peer.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, id)
		},
		"timed out": func(fixture, []byte, func() error) { after(time.Minute) },
		"connection broke": func(f fixture, id []byte, _ func() error) {
			f.peer.arrivals <- link.Delivery{Err: &link.CallEnd{ID: id, Outcome: link.CutOff, Reason: "broke on purpose"}}
		},
	}
	for how, end := range ends {
		for method := range forClients {
			t.Run(how+" "+method, func(t *testing.T) {
				inTime(t, func(t *testing.T, f fixture) {
					a, b := &client{id: "A"}, &client{id: "B"}
					f.host.only = a
					id, cancel := f.begin(t, a)
					end(f, id, cancel)
					synctest.Wait()
					if method != "roots/list" { // outside of calls, roots are for all
						if got := f.peer.request("q", method, "{}"); got != `{"from":"A"}` {
							t.Errorf("the only client did not get the request: %s", got)
						}
						f.host.only = b
						if got := f.peer.request("q", method, "{}"); !isRefused(got) {
							t.Errorf("B is idle: %s", got)
						}
					}
					_, first := f.begin(t, b)
					after(59 * time.Second)
					if got := f.peer.request("q", method, "{}"); !isRefused(got) {
						t.Errorf("B has a call in flight: %s", got)
					}
					_, second := f.begin(t, b)
					after(time.Second)
					if got := f.peer.request("q", method, "{}"); got != `{"from":"B"}` {
						t.Errorf("after a minute: %s", got)
					}
					if len(b.asked) != 1 {
						t.Errorf("B got %q", b.asked)
					}
					_, _ = first(), second()
				})
			})
		}
	}
}

// TestCertainRequests: calls that are over do not count if there is only one client, or if the
// stream of a call carries the request.
func TestCertainRequests(t *testing.T) {
	answer := func(t *testing.T, f fixture, c *client) {
		id, cancel := f.begin(t, c)
		f.peer.respond(id, done)
		synctest.Wait()
		_ = cancel()
	}
	for name, test := range map[string]struct {
		before, now *client
		hasStream   bool
	}{
		"one client":              {&client{id: "A"}, &client{id: "A"}, false},
		"one without a session":   {&client{id: "1", owner: "sender"}, &client{id: "2", owner: "sender"}, false},
		"another, with a stream":  {&client{id: "A"}, &client{id: "B"}, true},
		"others without sessions": {&client{id: "1", owner: "sender"}, &client{id: "2", owner: "another"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(t *testing.T, f fixture) {
				for range 3 {
					answer(t, f, test.before)
				}
				id, cancel := f.begin(t, test.now)
				if !test.hasStream {
					id = nil
				}
				f.peer.arrivals <- link.Delivery{Line: rpc.Line{Text: []byte(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create"}`)}, CallID: id}
				synctest.Wait()
				if got := f.peer.response("q"); got != string(test.now.from()) {
					t.Errorf("the upstream got %s", got)
				}
				_ = cancel()
			})
		})
	}
}

// TestTooManyAbandonedCalls: if more calls were abandoned than are remembered, a request is
// refused for a minute where another client may be its owner, and only there.
func TestTooManyAbandonedCalls(t *testing.T) {
	inTime(t, func(t *testing.T, f fixture) {
		a, b := &client{id: "A"}, &client{id: "B"}
		for range rpc.MaxPast + 1 {
			_, cancel := f.begin(t, a)
			_ = cancel()
		}
		request := func(c *client) string {
			id, cancel := f.begin(t, c)
			defer func() { _ = cancel() }()
			defer f.peer.respond(id, done)
			return f.peer.request("q", "roots/list", "{}")
		}
		if got := request(a); isRefused(got) {
			t.Errorf("A is the only client, but got %s", got)
		}
		for _, c := range []*client{b, a} {
			if got := request(c); !isRefused(got) {
				t.Errorf("%s: calls that were not remembered are forgotten: %s", c.id, got)
			}
		}
		after(time.Minute)
		if got := request(b); isRefused(got) {
			t.Errorf("after a minute: %s", got)
		}
	})
}

// TestNotificationsOfACall: a notification goes to the only client with a pending call, also
// if another client had a call just before.
func TestNotificationsOfACall(t *testing.T) {
	inTime(t, func(t *testing.T, f fixture) {
		id, first := f.begin(t, &client{id: "A"})
		f.peer.respond(id, done)
		_, second := f.begin(t, &client{id: "B"})
		f.peer.say(`{"jsonrpc":"2.0","method":"notifications/own","params":{}}`)
		if got := strings.Join(f.host.heard(), ", "); got != "notifications/own {} B" {
			t.Errorf("got %q", got)
		}
		_, _ = first(), second()
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

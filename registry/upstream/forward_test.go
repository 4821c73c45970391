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

// TestRequestWhoseCallHasEnded: a request of the upstream whose client has no call any more
// goes to another call of the same sender that was pending when it came. The idle limit of that
// call pauses. Neither another client nor a later one gets it.
func TestRequestWhoseCallHasEnded(t *testing.T) {
	const sender = "a sender without a session"
	for _, test := range []struct {
		name, owner string // of the call that ends
		comesLater  bool   // the other call
		want        string
	}{
		{"the same sender", sender, false, `{"from":"thinking"}`},
		{"another client", "", false, "another client had a call in the last minute"},
		{"a later client", "", true, "another client had a call in the last minute"},
	} {
		inTime(t, func(t *testing.T, f fixture) {
			comesLater := test.comesLater
			thinking, over, last := &client{id: "thinking", owner: sender}, &client{id: "over", owner: test.owner}, &client{id: "last"}
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
			f.peer.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q1"}}`)
			after(3 * time.Minute) // longer than an idle call may take
			release()
			synctest.Wait()
			if got := f.peer.response("q2"); !strings.Contains(got, test.want) || len(last.asked) > 0 {
				t.Errorf("%s: the upstream got %s, the client that came later got %q", test.name, got, last.asked)
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
			t.Errorf("the canceled request got %s", got)
		}
		for i, cancel := range cancels { // the second request may be for either of two calls
			if err := cancel(); !errors.Is(err, errEnough) {
				t.Errorf("the call ends with %v", err)
			}
			waiting(fmt.Sprint(i+1, " calls abandoned"), max(1-i, 0))
		}
		if n := len(f.peer.got("notifications/cancelled")); n != 3 {
			t.Errorf("%d of 3 calls were canceled at the upstream", n)
		}
	})
}

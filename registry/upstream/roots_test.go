package upstream

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/rpc"
)

// keepRoots makes the peer request roots now and after each change. It keeps them, and
// responds to calls with them.
func keepRoots(p *peer) {
	kept := "null"
	request := func(rpc.Message) { p.send(`{"jsonrpc":"2.0","id":"roots","method":"roots/list"}`) }
	p.on("notifications/roots/list_changed", request)
	p.on("", func(m rpc.Message) {
		if m.Error == nil {
			kept = string(m.Result)
		}
	})
	p.on("tools/call", func(m rpc.Message) { p.respond(m.ID, `"result":{"kept":`+kept+`}`) })
	request(rpc.Message{})
	synctest.Wait()
}

// TestKeptRoots: a server that keeps the roots of its client has those of the caller at
// every call, whoever called before.
func TestKeptRoots(t *testing.T) {
	inTime(t, func(t *testing.T, f fixture) {
		keepRoots(f.peer)
		if !f.KeepsRoots() {
			t.Error("it is not known to keep roots")
		}
		a, b := &client{id: "A"}, &client{id: "B"}
		none := inputClient{&client{id: "none", reply: func(context.Context) ([]byte, error) {
			return nil, rpc.Errorf(rpc.CodeMethodNotFound, "no roots")
		}}, `{"sampling":{}}`, "2025-11-25"}
		for _, c := range []struct {
			client Client
			want   string
		}{{none, `null`}, {a, `{"from":"A"}`}, {a, `{"from":"A"}`}, {b, `{"from":"B"}`}, {a, `{"from":"A"}`}, {none, `{"roots":[]}`}} {
			if got, err := f.call(t.Context(), c.client); err != nil || string(got) != `{"kept":`+c.want+`}` {
				t.Errorf("%s has the roots %s, %v, want %s", c.client.ID(), got, err, c.want)
			}
		}
		for c, want := range map[*client]int{a: 2, b: 1} {
			if len(c.asked) != want {
				t.Errorf("%s got %q", c.id, c.asked)
			}
		}
	})
}

// TestRootsThatCannotChange: a call that could use the roots of another client is refused.
func TestRootsThatCannotChange(t *testing.T) {
	a, b := &client{id: "A"}, &client{id: "B"}
	for _, c := range []struct {
		name  string
		first *client // makes a call before; may be nil
		spoil func(t *testing.T, f fixture)
		want  string
		takes time.Duration
	}{
		{"a call is running", a, func(t *testing.T, f fixture) {
			f.peer.on("tools/call", nil)
			f.begin(t, a)
		}, `a call of another client is running; try again later, or set "isolation": "client" for it`, rootsWait},
		{"not requested", a, func(_ *testing.T, f fixture) {
			f.peer.on("notifications/roots/list_changed", nil)
		}, "the server does not request new ones", rootsTime},
		{"none were kept", nil, func(_ *testing.T, f fixture) {
			f.peer.on("notifications/roots/list_changed", nil)
		}, "", rootsTime},
		{"upstream dies", a, func(_ *testing.T, f fixture) {
			f.peer.on("notifications/roots/list_changed", func(rpc.Message) { time.AfterFunc(time.Millisecond, f.peer.die) })
		}, rpc.ErrClosed.Error(), time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			inTime(t, func(t *testing.T, f fixture) {
				keepRoots(f.peer)
				if c.first != nil {
					if _, err := f.call(t.Context(), c.first); err != nil {
						t.Fatal(err)
					}
				}
				c.spoil(t, f)
				begin := time.Now()
				_, err := f.call(t.Context(), b)
				if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %v, want %q", err, c.want)
				}
				if took := time.Since(begin); took != c.takes {
					t.Errorf("it took %s, want %s", took, c.takes)
				}
			})
		})
	}
}

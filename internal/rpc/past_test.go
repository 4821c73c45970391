package rpc

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestPast: a call that is over counts until a minute after its last message.
func TestPast(t *testing.T) {
	const answer = `{"jsonrpc":"2.0","id":1,"result":{}}`
	const progress = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`
	abandon := func(p *peer) { p.Abandon([]byte("1"), errors.New("enough")) }
	respond := func(p *peer) { p.say(answer) }
	for _, test := range []struct {
		name  string
		end   func(p *peer)
		later string // a message 59 s after the end
		want  []string
	}{
		{"answered", respond, "", []string{"abandoned 0, ended [owner]", "abandoned 0, ended []", "abandoned 0, ended []"}},
		{"answered twice", respond, answer, []string{"abandoned 0, ended [owner]", "abandoned 0, ended []", "abandoned 0, ended []"}},
		{"abandoned", abandon, "", []string{"abandoned 1, ended []", "abandoned 0, ended []", "abandoned 0, ended []"}},
		{"abandoned, and it goes on", abandon, progress, []string{"abandoned 1, ended []", "abandoned 1, ended []", "abandoned 0, ended []"}},
		{"abandoned, then answered", abandon, answer, []string{"abandoned 0, ended [owner]", "abandoned 0, ended [owner]", "abandoned 0, ended []"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPeer("")
				defer p.Close(errors.New("the end"))
				p.start(t.Context(), t, Request{Method: "m", Remember: Remember{Abandoned: "client", Ended: "owner"}})
				test.end(p)
				<-time.After(59 * time.Second)
				if test.later != "" {
					p.say(test.later)
				}
				for i, wait := range []time.Duration{0, 2 * time.Second, Lingering} {
					<-time.After(wait)
					now := p.Snapshot()
					if got := fmt.Sprintf("abandoned %d, ended %v", len(now.Abandoned), now.Ended); got != test.want[i] {
						t.Errorf("look %d: %s, want %s", i, got, test.want[i])
					}
				}
			})
		})
	}
}

// TestPastIsBounded: the number of remembered calls is bounded. If one could not be recorded,
// Overflow is set for a minute, and again with each message that may belong to that call.
func TestPastIsBounded(t *testing.T) {
	for name, end := range map[string]func(p *peer, id []byte){
		"abandoned": func(p *peer, id []byte) { p.Abandon(id, errors.New("enough")) },
		"answered":  func(p *peer, id []byte) { p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPeer("")
				defer p.Close(errors.New("the end"))
				id := 0
				remembered := func() int { return len(p.inFlight.past.abandoned) + len(p.inFlight.past.ended) }
				add := func() {
					id++
					p.start(t.Context(), t, Request{Method: "m", Remember: Remember{Abandoned: fmt.Sprint(id), Ended: fmt.Sprint(id)}})
					end(p, fmt.Append(nil, id))
				}
				for range MaxPast {
					add()
				}
				if n := remembered(); n != MaxPast || p.Snapshot().Overflow {
					t.Fatalf("%d calls are remembered, overflow %t", n, p.Snapshot().Overflow)
				}
				add()
				if n := remembered(); n != MaxPast || !p.Snapshot().Overflow {
					t.Errorf("one more: %d calls are remembered, overflow %t", n, p.Snapshot().Overflow)
				}
				<-time.After(Lingering - time.Second)
				p.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%d,"progress":1}}`, id))
				<-time.After(Lingering - time.Second)
				if !p.Snapshot().Overflow {
					t.Error("a message of a call that was not recorded does not prolong the overflow")
				}
				<-time.After(time.Second)
				if p.Snapshot().Overflow {
					t.Error("after a minute of silence, the overflow is still set")
				}
				add()
				if n := remembered(); n != 1 || p.Snapshot().Overflow {
					t.Errorf("after a minute: %d calls are remembered, overflow %t", n, p.Snapshot().Overflow)
				}
			})
		})
	}
}

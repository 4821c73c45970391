package httpfront

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"mcpx/server"
)

// oneReplica is a Replicas and a Copy that has no other process. The ID of a session is its key
// with a mark.
type oneReplica struct {
	front   *HTTP
	events  chan Event
	sent    chan string
	forward error
}

func (o *oneReplica) Share(n *Session) (*server.Client, Copy) {
	return n.Server().NewSharedClient("shared", n.Send), o
}

func (o *oneReplica) ID(n *Session) string { return "own-" + n.Key() }

func (o *oneReplica) Find(r *http.Request, s *server.Server, id string) (*Session, func(), error) {
	key, ok := strings.CutPrefix(id, "own-")
	if !ok {
		return nil, nil, ErrNoSession
	}
	if n, done := o.front.FindSession(key, r); n != nil {
		return n, done, nil
	}
	return o.front.ContinueSession(r, s, key, func(n *Session) bool {
		n.Client().Continue("2025-06-18", []byte("{}"), "")
		return key != "ended"
	})
}

func (o *oneReplica) Forward(server.Inbound) error { return o.forward }

func (o *oneReplica) Send(message []byte) error {
	o.sent <- string(message)
	return nil
}

func (o *oneReplica) Notify(_ context.Context, e Event) { o.events <- e }

func replicated(t *testing.T) (*listening, *oneReplica) {
	t.Helper()
	h := &HTTP{}
	o := &oneReplica{front: h, events: make(chan Event, 10), sent: make(chan string, 10)}
	h.Replicas = o
	return listenHTTP(t, h), o
}

// TestReplicasFindSessions: the front asks Replicas which session a request belongs to.
func TestReplicasFindSessions(t *testing.T) {
	s, _ := replicated(t)
	id := s.open(t, "{}")
	none := `404 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"there is no such session; send initialize"}}`
	for _, row := range []struct{ name, id, want string }{
		{"here", id, "200 " + result("{}")},
		{"elsewhere", "own-other", "200 " + result("{}")},
		{"elsewhere, a second time", "own-other", "200 " + result("{}")},
		{"ended elsewhere", "own-ended", none},
		{"invalid", "other", none},
		{"without the mark", strings.TrimPrefix(id, "own-"), none},
	} {
		if got := whole(t, s.do(t, "POST", "/mcp", request("ping", ""), sessionHeader, row.id)); got != row.want {
			t.Errorf("%s: %s", row.name, got)
		}
	}
	if n := s.Open(); n != 2 {
		t.Errorf("%d sessions are open", n)
	}
}

// TestReplicasForward: a message that cannot be forwarded is refused.
func TestReplicasForward(t *testing.T) {
	s, o := replicated(t)
	id := s.open(t, "{}")
	for want, err := range map[string]error{"200 ": nil, "400 ": ErrNotExpected, "503 ": errors.New("the store is down")} {
		o.forward = err
		if got := whole(t, s.do(t, "POST", "/mcp", request("ping", ""), sessionHeader, id)); !strings.HasPrefix(got, want) {
			t.Errorf("%v: %s", err, got)
		}
	}
}

// TestReplicasAreNotified: the copy of a session gets its events, and the messages that have no
// stream here.
func TestReplicasAreNotified(t *testing.T) {
	s, o := replicated(t)
	id := s.open(t, "{}")
	n := s.sessions.all()[0]
	next := func() string {
		select {
		case e := <-o.events:
			return fmt.Sprint(e)
		case message := <-o.sent:
			return message
		}
	}
	expect := func(when string, want any) {
		t.Helper()
		if got := next(); got != fmt.Sprint(want) {
			t.Errorf("%s: got %s, want %v", when, got, want)
		}
	}
	stream := s.do(t, "GET", "/mcp", "", sessionHeader, id)
	expect("a stream", StreamOpened)
	if err := n.Send([]byte(`{"a":1}`)); err != nil || !events(stream).Scan() {
		t.Errorf("a message is not sent on the stream: %v", err)
	}
	_ = stream.Body.Close()
	expect("the end of the stream", Left)
	_ = n.Send([]byte("elsewhere"))
	expect("a message without a stream", "elsewhere")
	s.sessions.drain()
	if got := whole(t, s.do(t, "GET", "/mcp", "", sessionHeader, id)); got != "200 " {
		t.Errorf("a stream while mcpx stops: %s", got)
	}
	whole(t, s.do(t, "DELETE", "/mcp", "", sessionHeader, id))
	expect("the end of the session", Ended)
	if n.Copy() != o || !n.isOver() {
		t.Error("the session has not ended")
	}
}

package jsonrpc

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/rs/zerolog"
)

// plainHandler passes results on.
type plainHandler struct{}

func (plainHandler) Result(_ *Call, m Message) ([]byte, error) { return m.Result, nil }
func (plainHandler) TimedOut(*Call, bool) error                { return context.DeadlineExceeded }
func (plainHandler) Lost(reason error) error                   { return reason }
func (plainHandler) Cancelled(string) error                    { return errCancelled }

var errCancelled = errors.New("cancelled by the peer")

func newTestConn() *Conn {
	return NewConn(ConnOptions{Handler: plainHandler{}, Send: func([]byte) error { return nil }, Log: zerolog.Nop()})
}

// TestAbandonedCallsHoldNothing: an abandoned call is remembered, but not its params,
// its client, or what would report its end. An upstream that obeys MCP never answers
// a cancelled call, so it is remembered until the connection ends.
func TestAbandonedCallsHoldNothing(t *testing.T) {
	c := newTestConn()
	ctx, cancel := context.WithCancelCause(t.Context())
	params := make([]byte, 1<<20)
	tag := new([1 << 10]byte)
	held := map[string]weak.Pointer[byte]{"params": weak.Make(&params[0]), "tag": weak.Make(&tag[0])}
	ended := make(chan struct{})
	if err := c.Go(ctx, Request{Method: "m", Params: params, Tag: tag, Remember: "A"}, func(_, _ []byte, _ error) { close(ended) }); err != nil {
		t.Fatal(err)
	}
	params, tag = nil, nil
	cancel(errCancelled)
	<-ended
	if got := c.Snapshot().Abandoned; len(got) != 1 || got[1] != "A" {
		t.Errorf("remembered: %v", got)
	}
	for name, p := range held {
		for limit := time.Now().Add(5 * time.Second); p.Value() != nil; runtime.GC() {
			if time.Now().After(limit) {
				t.Fatalf("the %s are still held", name)
			}
		}
	}
	runtime.KeepAlive(c)
}

// TestRequestsWithTheSameID: a peer that uses an ID again, before it has the answer,
// harms nobody but itself: each request counts, and each ends with the connection.
func TestRequestsWithTheSameID(t *testing.T) {
	c := newTestConn()
	const limit = 3
	var all []*Incoming
	for range limit {
		in, err := c.Begin(context.Background(), []byte("1"), limit)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, in)
	}
	if _, err := c.Begin(context.Background(), []byte("1"), limit); !errors.Is(err, ErrTooMany) {
		t.Errorf("one too many: %v", err)
	}
	all[1].End()
	all[1].End()
	if n := c.Incoming(); n != 2 {
		t.Errorf("%d requests are left, want 2", n)
	}
	m := Message{Method: "notifications/cancelled", Params: []byte(`{"requestId":1}`)}
	c.Receive(m, nil)
	if !all[2].IsCancelledBy(errCancelled) || all[0].IsCancelledBy(errCancelled) {
		t.Error("a cancellation does not end the newest request")
	}
	all[2].End()
	c.Close(errLost)
	if !all[0].IsCancelledBy(errLost) || !errors.Is(context.Cause(all[0]), errLost) {
		t.Error("the oldest request does not end with the connection")
	}
	all[0].End()
	if n := c.Incoming(); n != 0 {
		t.Errorf("%d requests are left", n)
	}
}

var errLost = errors.New("the connection is lost")

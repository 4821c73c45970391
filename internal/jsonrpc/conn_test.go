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

package rpc

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/rs/zerolog"

	"mcpx/internal/rawjson"
)

// plainHandler passes results on.
type plainHandler struct{}

func (plainHandler) Result(_ *Call, m Message) ([]byte, error) { return m.Result, nil }
func (plainHandler) TimedOut(*Call, Limit) error               { return context.DeadlineExceeded }
func (plainHandler) Lost(reason error) error                   { return reason }
func (plainHandler) Canceled(string) error                     { return errCanceled }

var errCanceled = errors.New("canceled by the peer")

func newTestConn() *Conn {
	return NewConn(ConnOptions{Handler: plainHandler{}, Send: func([]byte) error { return nil }, Log: zerolog.Nop()})
}

// TestAbandonedCallsHoldNothing: an abandoned call is remembered, but not its params,
// its client, or what would report its end.
func TestAbandonedCallsHoldNothing(t *testing.T) {
	c := newTestConn()
	ctx, cancel := context.WithCancelCause(t.Context())
	params := make([]byte, 1<<20)
	tag := new([1 << 10]byte)
	held := map[string]weak.Pointer[byte]{"params": weak.Make(&params[0]), "tag": weak.Make(&tag[0])}
	ended := make(chan struct{})
	if err := c.Go(ctx, Request{Method: "m", Params: params, Tag: tag, Remember: Remember{Abandoned: "A"}}, func(Result, error) { close(ended) }); err != nil {
		t.Fatal(err)
	}
	cancel(errCanceled)
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
	c.Receive(m, Line{})
	if !all[2].IsCanceledBy(errCanceled) || all[0].IsCanceledBy(errCanceled) {
		t.Error("a cancellation does not end the newest request")
	}
	all[2].End()
	c.Close(errLost)
	if !all[0].IsCanceledBy(errLost) || !errors.Is(context.Cause(all[0]), errLost) {
		t.Error("the oldest request does not end with the connection")
	}
	all[0].End()
	if n := c.Incoming(); n != 0 {
		t.Errorf("%d requests are left", n)
	}
}

var errLost = errors.New("the connection is lost")

// TestEveryCallEndsOnce: a call ends once, whether it is answered, canceled, timed
// out, refused or lost, and whichever of these happen at the same time. A
// cancellation never overtakes its call.
func TestEveryCallEndsOnce(t *testing.T) {
	for round := range 50 {
		sent := make(chan []byte, 10_000)
		peer := NewConn(ConnOptions{Handler: plainHandler{}, Send: func([]byte) error { return nil }, Log: zerolog.Nop()})
		c := NewConn(ConnOptions{Handler: plainHandler{}, Send: func(m []byte) error { sent <- m; return nil }, Log: zerolog.Nop()})
		var ends [100]atomic.Int32
		var started, ended, reading sync.WaitGroup
		ended.Add(len(ends))
		reading.Go(func() {
			known := map[string]bool{}
			for line := range sent {
				m, err := Parse(line)
				if err != nil {
					t.Error(err)
				}
				if m.IsNotification() {
					if id := string(rawjson.Get(m.Params, "requestId")); !known[id] {
						t.Errorf("the cancellation of %s has overtaken its call", id)
					}
					continue
				}
				known[string(m.ID)] = true
				answer, _ := Parse(AppendResult(nil, m.ID, []byte("{}")))
				switch number, _ := c.number(m.ID); number % 4 {
				case 0:
					c.Receive(answer, Line{})
					c.Receive(answer, Line{})
				case 1:
					c.Abandon(m.ID, errLost)
				case 2:
					c.Refuse(m.ID, errLost)
				}
			}
		})
		for i := range ends {
			done := func(Result, error) {
				if ends[i].Add(1) == 1 {
					ended.Done()
				}
			}
			started.Go(func() {
				in, _ := peer.Begin(context.Background(), []byte(strconv.Itoa(i)), 0)
				if i%2 == 0 {
					time.AfterFunc(time.Duration(i%10)*10*time.Microsecond, func() { in.Cancel(errCanceled) })
				}
				err := c.Go(in, Request{Method: "m", Timeout: time.Duration(i%7+1) * 10 * time.Microsecond, Remember: Remember{Abandoned: "A", Ended: "A"}}, done)
				if err != nil {
					done(Result{}, err)
				}
			})
		}
		if round%2 == 0 {
			c.Close(errLost)
		}
		started.Wait()
		ended.Wait()
		c.Close(errLost)
		close(sent)
		reading.Wait()
		for i := range ends {
			if n := ends[i].Load(); n != 1 {
				t.Fatalf("call %d ended %d times", i, n)
			}
		}
		if n := c.Len(); n != 0 {
			t.Fatalf("%d calls are left", n)
		}
	}
}

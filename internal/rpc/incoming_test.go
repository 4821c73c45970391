package rpc

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
)

// TestConnIncoming: when the peer cancels a request, or the connection is closed, its
// context ends with the cause. That holds for derived contexts and for calls made
// with it.
func TestConnIncoming(t *testing.T) {
	for want, end := range map[string]func(p *peer){
		"canceled: enough": func(p *peer) {
			p.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"reason":"enough"}}`)
		},
		"over": func(p *peer) { p.Close(errors.New("over")) },
	} {
		synctest.Test(t, func(t *testing.T) {
			p, other := newPeer(""), newPeer("")
			in, _ := p.Begin(context.Background(), []byte("7"), 1)
			if _, err := p.Begin(context.Background(), []byte("8"), 1); !errors.Is(err, ErrTooMany) {
				t.Errorf("beyond the limit: %v", err)
			}
			derived, stop := context.WithCancel(in)
			defer stop()
			first, second := other.start(in, t, Request{Method: "a"}), other.start(derived, t, Request{Method: "b"})
			end(p)
			synctest.Wait()
			for name, ctx := range map[string]context.Context{"request": in, "derived": derived} {
				if got := context.Cause(ctx); got == nil || got.Error() != want || !errors.Is(ctx.Err(), context.Canceled) {
					t.Errorf("%s: cause %v, want %s", name, got, want)
				}
			}
			check(t, "calls", slices.Concat(*first, *second), " "+want, " "+want)
		})
	}
}

// TestConnOrphans: a request of the peer is canceled when every call that it may
// belong to was abandoned, and not when one was answered.
func TestConnOrphans(t *testing.T) {
	p := newPeer("")
	p.start(t.Context(), t, Request{Method: "m"})
	p.start(t.Context(), t, Request{Method: "m"})
	calls := p.Snapshot().Calls
	in, _ := p.Begin(context.Background(), []byte("7"), 0, slices.Clone(calls)...)
	p.Abandon([]byte("1"), errors.New("first"))
	if in.Err() != nil || !in.MayBelongTo(func(c *Call) bool { return c == calls[1] }) {
		t.Errorf("a call is left, but the request ended: %v", context.Cause(in))
	}
	p.Abandon([]byte("2"), errors.New("second"))
	if got := context.Cause(in); got == nil || got.Error() != "second" {
		t.Errorf("cause %v, want that of the last call", got)
	}
}

// TestConnTwoRequestsWithOneID: the end of the first does not make the second one
// unknown.
func TestConnTwoRequestsWithOneID(t *testing.T) {
	p := newPeer("")
	first, _ := p.Begin(context.Background(), []byte("1"), 0)
	second, _ := p.Begin(context.Background(), []byte("1"), 0)
	first.End()
	p.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	if first.Err() == nil || second.Err() == nil || p.Incoming() != 1 {
		t.Errorf("the first has ended with %v, the second with %v; %d are left", first.Err(), second.Err(), p.Incoming())
	}
	if second.End(); p.Incoming() != 0 {
		t.Errorf("%d are left", p.Incoming())
	}
}

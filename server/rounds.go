package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mcpx/internal/jsonrpc"
	"mcpx/internal/rawjson"
	"mcpx/registry"
)

// rounds are the calls of 2026-07-28 that wait for their client. In that revision
// a server asks nothing of its own accord: it answers a call with what it needs
// (input_required), and the client makes the call again with the answers. An
// upstream of the old way asks in the middle of a call, so the call is parked
// here, upstream and all, until its client comes back.
type rounds struct {
	mu     sync.Mutex
	parked map[string]*round // by requestState
}

// asking are the methods whose answer may be that something is needed. Clients do
// not look for it in others.
var asking = map[string]bool{"tools/call": true, "prompts/get": true, "resources/read": true}

// Limits on parked calls.
const (
	parkTime       = 10 * time.Minute // how long a client may think
	maxParked      = 1000             // calls in all
	maxOwnerParked = 100              // calls of one owner
	maxParkedBytes = 64 << 20         // requests in all; a parked call holds its request
	maxOwnerBytes  = 16 << 20         // requests of one owner
)

// round is one call that may take several rounds.
type round struct {
	owner  string // who may come back to it
	method string
	size   int // bytes of its request
	asks   chan ask
	result chan outcome
	over   chan struct{} // closed when the result is there
	cancel context.CancelCauseFunc
	stream atomic.Pointer[roundStream]

	waiting map[string]ask // asked in the last round, by key
	late    *time.Timer    // ends it if the client does not come back
}

// roundStream is where the client hears of a call in one of its rounds.
type roundStream struct {
	send  func(message []byte) error
	token []byte // of progress; null if it wants none
}

// ask is something an upstream wants of the client.
type ask struct {
	method string
	params []byte
	answer chan []byte
}

type outcome struct {
	result []byte
	err    error
}

// run runs a call until it is over or needs something of the client.
func (r *rounds) run(ctx context.Context, c *Client, m jsonrpc.Message, call func(ctx context.Context) ([]byte, error)) ([]byte, error) {
	if !asking[m.Method] {
		c.ask = func(_ context.Context, method string, _ []byte) ([]byte, error) {
			return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "%s: the client cannot be asked during %s", method, m.Method)
		}
		return call(ctx)
	}
	state, _ := rawjson.String(rawjson.Get(m.Params, "requestState"))
	p := r.take(state, c.owner, m.Method)
	switch {
	case p != nil:
		p.stream.Store(streamOf(c, m))
		p.resume(rawjson.Get(m.Params, "inputResponses"))
	case state != "":
		return nil, invalidParams(`"requestState" is unknown, or its call has ended; make the call again without it`)
	default:
		p = newRound(ctx, c, m, call)
	}
	stop := context.AfterFunc(ctx, func() { p.cancel(context.Cause(ctx)) })
	defer stop()
	for {
		select {
		case o := <-p.result:
			return o.result, o.err
		case a := <-p.asks:
			if result := r.park(p, a); result != nil {
				return result, nil
			}
			a.answer <- nil
		}
	}
}

// streamOf returns where notifications of a call go in this round. It copies what it
// needs of the request.
func streamOf(c *Client, m jsonrpc.Message) *roundStream {
	return &roundStream{c.Send, slices.Clone(rawjson.Get(rawjson.Get(m.Params, "_meta"), "progressToken"))}
}

// newRound starts a call. It goes on when the request that started it is answered:
// the client then hears of it by the request with which it came back.
func newRound(ctx context.Context, c *Client, m jsonrpc.Message, call func(ctx context.Context) ([]byte, error)) *round {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	p := &round{owner: c.owner, method: strings.Clone(m.Method), size: len(m.Params), asks: make(chan ask), result: make(chan outcome, 1), over: make(chan struct{}), cancel: cancel}
	p.stream.Store(streamOf(c, m))
	c.Send = func(message []byte) error { return p.stream.Load().send(message) }
	c.progressToken = func() []byte { return p.stream.Load().token }
	c.ask = p.ask
	go func() {
		result, err := call(ctx)
		p.result <- outcome{result, err}
		close(p.over)
		cancel(nil)
	}()
	return p
}

// ask has the client answer something in the next round.
func (p *round) ask(ctx context.Context, method string, params []byte) ([]byte, error) {
	a := ask{method: method, params: params, answer: make(chan []byte, 1)}
	select {
	case p.asks <- a:
	case <-p.over:
		return nil, registry.ErrCallOver
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case answer := <-a.answer:
		if answer == nil {
			return nil, fmt.Errorf("%s: the client did not answer", method)
		}
		return answer, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// park keeps a call until its client comes back, and says what is needed. Asks
// that come meanwhile wait for the round after. It returns nil if too many calls
// are parked.
func (r *rounds) park(p *round, a ask) []byte {
	const key = "input"
	state := rand.Text()
	p.waiting = map[string]ask{key: a}
	if !r.add(state, p) {
		return nil
	}
	request := rawjson.AppendMember(rawjson.AppendString([]byte(`{"method":`), a.method), "params", rawjson.OrObject(a.params)) // go-sdk's client cannot read one without
	requests := rawjson.With([]byte("{}"), key, append(request, '}'))
	result := rawjson.AppendMember([]byte(`{"resultType":"input_required"`), "inputRequests", requests)
	return append(rawjson.AppendMember(result, "requestState", rawjson.AppendString(nil, state)), '}')
}

// add parks a call until its time is up; false if there are too many.
func (r *rounds) add(state string, p *round) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	own, ownBytes, bytes := 0, p.size, p.size
	for _, other := range r.parked {
		bytes += other.size
		if other.owner == p.owner {
			own++
			ownBytes += other.size
		}
	}
	if len(r.parked) >= maxParked || own >= maxOwnerParked || bytes > maxParkedBytes || ownBytes > maxOwnerBytes {
		return false
	}
	r.parked[state] = p
	p.late = time.AfterFunc(parkTime, func() {
		if late := r.take(state, p.owner, p.method); late != nil {
			late.resume(nil)
			late.cancel(fmt.Errorf("the client did not come back within %s", parkTime))
		}
	})
	return true
}

// take takes a parked call of that owner, nil if there is none.
func (r *rounds) take(state, owner, method string) *round {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.parked[state]
	if p == nil || p.owner != owner || p.method != method {
		return nil
	}
	delete(r.parked, state)
	return p
}

// resume hands out the client's answers, nil where there is none.
func (p *round) resume(responses []byte) {
	p.late.Stop()
	for key, a := range p.waiting {
		a.answer <- rawjson.Get(responses, key)
	}
	p.waiting = nil
}

package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/registry/upstream"
)

// multiRoundCalls is the table of calls that wait for input from their client. In
// 2026-07-28 a server sends no requests. Instead it responds to a call with the input
// that it needs (input_required), and the client makes the call again with that input.
// An upstream of an earlier revision sends requests during a call, so the call is parked
// here until its client makes it again. The methods may be called concurrently.
type multiRoundCalls struct {
	sealed *sealedRounds // nil: requestState is not sealed

	mu     sync.Mutex
	parked map[string]*multiRoundCall // by state
}

func newMultiRoundCalls() *multiRoundCalls {
	return &multiRoundCalls{parked: map[string]*multiRoundCall{}}
}

// Limits on parked calls.
const (
	parkTime       = 10 * time.Minute // the client must continue the call within this time
	maxParked      = 1000             // calls in all
	maxOwnerParked = 100              // calls of one owner
	maxParkedBytes = 64 << 20         // requests and results in all; a parked call holds them
	maxOwnerBytes  = 16 << 20         // of one owner
)

// multiRoundCall is one call that may take several rounds, each a request of the client.
type multiRoundCall struct {
	table  *multiRoundCalls
	owner  string // only this owner may continue the call
	method string
	size   int           // bytes of its request and, if it ended between two rounds, of its result
	in     *rpc.Incoming // its first request, whose context is that of the call
	stream atomic.Pointer[roundStream]
	passed *passedRound // the result is a request for input; read it after the result

	mu       sync.Mutex
	done     rpc.Done       // ends the request of this round; nil between two rounds
	isParked bool           // a request for input was sent to the client
	waiting  []inputRequest // came between two rounds
	isOver   bool
	outcome  outcome // if it came between two rounds

	requested inputRequest // sent to the client in the last round
	expiry    *time.Timer  // ends the call if the client does not continue it
}

// roundStream is where notifications of a call go during one round.
type roundStream struct {
	send  func(message []byte) error
	token []byte // progress token of the round; null: the client wants no progress
}

// inputRequest is what an upstream needs from the client to continue the call.
type inputRequest struct {
	inputs    []upstream.Input
	responses chan [][]byte // in the order of inputs, with nil for a response that is missing; nil: the call is over
}

// outcome is the end of a call.
type outcome struct {
	result rpc.Result
	err    error
}

// run runs one round of a call, which start starts. It never waits. done gets the end of the
// call, or the input that it needs. token is the progress token of the round.
func (r *multiRoundCalls) run(in *rpc.Incoming, c *Client, m rpc.Message, token []byte, start func(c *Client, m rpc.Message, done rpc.Done), done rpc.Done) {
	if !Methods[m.Method].MayNeedInput {
		c.method = m.Method
		start(c, m, done)
		return
	}
	p, err := r.parkedCall(c, m)
	switch {
	case err != nil:
		done(rpc.Result{}, err)
	case p != nil:
		p.next(in, newRoundStream(c, token), m, done)
	default:
		p = r.begin(in, c, m, token, done)
		if c.resumed != nil {
			m.Params = withoutRound(m.Params)
		}
		start(c, m, p.end)
	}
}

// parkedCall removes the call that a request continues; nil for a request that begins a call
// here.
func (r *multiRoundCalls) parkedCall(c *Client, m rpc.Message) (*multiRoundCall, error) {
	if !bytes.Contains(m.Params, []byte("requestState")) && !bytes.Contains(m.Params, []byte(`\`)) { // a key may be escaped
		return nil, nil
	}
	requestState, _ := rawjson.String(rawjson.Get(m.Params, "requestState"))
	if requestState == "" {
		return nil, nil
	}
	if r.sealed != nil {
		state, err := r.sealed.open(requestState, c, m)
		if state == "" || err != nil {
			return nil, err
		}
		requestState = state
	}
	if p := r.remove(requestState, c.owner, m.Method); p != nil {
		return p, nil
	}
	return nil, errUnknownState
}

var (
	errUnknownState  = invalidParams(`"requestState" is unknown, or its call has ended; make the call again without it`)
	errResultTooLong = errors.New("the call ended while it waited for input, and its result is too long to be kept; make the call again")
	errOtherReplica  = invalidParams(`the call of this "requestState" waits on another replica of mcpx; make the call again without "requestState", or route each client to one replica`)
)

// newRoundStream returns where notifications of a call go in this round. It copies the
// progress token, so that the memory of the request can be freed.
func newRoundStream(c *Client, token []byte) *roundStream {
	return &roundStream{c.Send, slices.Clone(token)}
}

// begin returns the first round of a call, which may outlast the request that started it.
func (r *multiRoundCalls) begin(in *rpc.Incoming, c *Client, m rpc.Message, token []byte, done rpc.Done) *multiRoundCall {
	p := &multiRoundCall{table: r, owner: c.owner, method: strings.Clone(m.Method), size: len(m.Params), in: in, done: done}
	p.stream.Store(newRoundStream(c, token))
	c.Send = func(message []byte) error { return p.stream.Load().send(message) }
	c.round = p
	return p
}

// next is a further round: a request of the client with the input that was required.
func (p *multiRoundCall) next(in *rpc.Incoming, stream *roundStream, m rpc.Message, done rpc.Done) {
	p.stream.Store(stream)
	unlink := context.AfterFunc(in, func() { p.in.Cancel(context.Cause(in)) })
	p.mu.Lock()
	requested := p.unpark() // before done: from then on another request for input may park the call
	p.done = func(result rpc.Result, err error) {
		unlink()
		done(result, err)
	}
	p.mu.Unlock()
	requested.respond(rawjson.Get(m.Params, "inputResponses"))
	p.mu.Lock()
	isOver, waiting := p.isOver, p.waiting
	p.waiting = nil
	p.mu.Unlock()
	if isOver {
		p.end(p.outcome.result, p.outcome.err)
	}
	for _, request := range waiting {
		if !p.offer(request) {
			request.responses <- nil // the call ended meanwhile
		}
	}
}

// end ends the call: in this round, or in the next one.
func (p *multiRoundCall) end(result rpc.Result, err error) {
	p.mu.Lock()
	done, isParked, waiting := p.done, p.isParked, p.waiting
	p.done, p.isOver, p.waiting = nil, true, nil
	if done == nil {
		p.outcome = outcome{result, err}
		if !p.table.hasRoom(p, len(result.JSON)) {
			p.outcome = outcome{err: errResultTooLong}
		}
	}
	p.mu.Unlock()
	for _, request := range waiting {
		request.responses <- nil
	}
	if isParked {
		p.in.End()
	}
	switch {
	case done == nil:
		result.Free()
	case err == nil && p.passed != nil:
		done(rpc.NewResult(p.table.sealed.inputRequired(result.Take(), p)), nil)
	default:
		done(result, err)
	}
}

// requestInput requests input from the client and waits for it until the next round.
func (p *multiRoundCall) requestInput(ctx context.Context, inputs []upstream.Input) ([][]byte, error) {
	request := inputRequest{inputs: inputs, responses: make(chan [][]byte, 1)}
	if !p.offer(request) {
		return nil, upstream.ErrCallOver
	}
	select {
	case responses := <-request.responses:
		if responses == nil {
			return nil, upstream.ErrCallOver
		}
		for i, input := range inputs {
			if responses[i] == nil {
				return nil, fmt.Errorf("%s: the client did not respond", input.Method)
			}
		}
		return responses, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// offer ends the round with a request for input and parks the call. Between two rounds, the
// request waits for the next one. It is false if the call is over.
func (p *multiRoundCall) offer(request inputRequest) bool {
	p.mu.Lock()
	switch {
	case p.isOver:
		p.mu.Unlock()
		return false
	case p.done == nil:
		p.waiting = append(p.waiting, request)
		p.mu.Unlock()
		return true
	}
	result := p.table.park(p, request)
	if result == nil {
		p.mu.Unlock()
		request.respond(nil)
		return true
	}
	if !p.isParked {
		p.isParked = true
		p.in.Outlive()
	}
	done := p.done
	p.done = nil
	p.mu.Unlock()
	done(rpc.NewResult(result), nil)
	return true
}

// park parks a call until its client continues it, and returns the result that requests
// the input; nil if too many calls are parked. Further input requests wait for the next
// round.
func (r *multiRoundCalls) park(p *multiRoundCall, request inputRequest) []byte {
	state := rand.Text()
	p.requested = request
	if !r.add(state, p) {
		return nil
	}
	if r.sealed != nil {
		state = r.sealed.sealParts(p, stateParked, r.sealed.replica, state)
	}
	return inputRequired(request.inputs, state)
}

// inputRequired returns the result that requests input of a client.
func inputRequired(inputs []upstream.Input, state string) []byte {
	requests := []byte("{")
	for _, input := range inputs {
		one := rawjson.AppendMember(rawjson.AppendString([]byte(`{"method":`), input.Method), "params", rawjson.OrObject(input.Params)) // go-sdk's client requires params
		requests = rawjson.AppendMember(requests, input.Key, append(one, '}'))
	}
	result := rawjson.AppendMember([]byte(`{"resultType":"input_required"`), "inputRequests", append(requests, '}'))
	return append(rawjson.AppendMember(result, "requestState", rawjson.AppendString(nil, state)), '}')
}

// add parks a call for parkTime; false if there are too many.
func (r *multiRoundCalls) add(state string, p *multiRoundCall) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	own, ownBytes, bytes := r.parkedOf(p.owner)
	if len(r.parked) >= maxParked || own >= maxOwnerParked || bytes+p.size > maxParkedBytes || ownBytes+p.size > maxOwnerBytes {
		return false
	}
	r.parked[state] = p
	p.expiry = time.AfterFunc(parkTime, func() {
		if expired := r.remove(state, p.owner, p.method); expired != nil {
			expired.mu.Lock()
			requested := expired.unpark()
			expired.mu.Unlock()
			requested.respond(nil)
			expired.in.Cancel(fmt.Errorf("the client did not continue the call within %s", parkTime))
		}
	})
	return true
}

// hasRoom reports whether a parked call may also keep n bytes of its result.
func (r *multiRoundCalls) hasRoom(p *multiRoundCall, n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ownBytes, bytes := r.parkedOf(p.owner)
	if bytes+n > maxParkedBytes || ownBytes+n > maxOwnerBytes {
		return false
	}
	p.size += n
	return true
}

// parkedOf returns the number of parked calls of an owner, their bytes, and the bytes of all
// owners. The caller holds r.mu.
func (r *multiRoundCalls) parkedOf(owner string) (calls, ownBytes, bytes int) {
	for _, p := range r.parked {
		bytes += p.size
		if p.owner == owner {
			calls++
			ownBytes += p.size
		}
	}
	return calls, ownBytes, bytes
}

// remove removes a parked call of that owner and method, nil if there is none.
func (r *multiRoundCalls) remove(state, owner, method string) *multiRoundCall {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.parked[state]
	if p == nil || p.owner != owner || p.method != method {
		return nil
	}
	delete(r.parked, state)
	return p
}

// unpark returns the request for input that parked the call. The caller holds p.mu.
func (p *multiRoundCall) unpark() inputRequest {
	requested := p.requested
	p.requested = inputRequest{}
	p.expiry.Stop()
	return requested
}

// respond passes the members of an object to the one who waits for them, and nil for each
// member that is missing.
func (r inputRequest) respond(object []byte) {
	responses := make([][]byte, len(r.inputs))
	for i, input := range r.inputs {
		responses[i] = rawjson.Get(object, input.Key)
	}
	r.responses <- responses
}

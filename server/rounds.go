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

	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/internal/upstream"
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

// mayRequireInput are the methods whose result may be input_required. Clients do not
// expect it from others.
var mayRequireInput = map[string]bool{"tools/call": true, "prompts/get": true, "resources/read": true}

// Limits on parked calls.
const (
	parkTime       = 10 * time.Minute // the client must continue the call within this time
	maxParked      = 1000             // calls in all
	maxOwnerParked = 100              // calls of one owner
	maxParkedBytes = 64 << 20         // requests in all; a parked call holds its request
	maxOwnerBytes  = 16 << 20         // requests of one owner
)

// multiRoundCall is one call that may take several rounds, each a request of the client.
type multiRoundCall struct {
	owner  string // only this owner may continue the call
	method string
	size   int // bytes of its request
	inputs chan inputRequest
	result chan outcome
	done   chan struct{} // closed when the result is available
	cancel context.CancelCauseFunc
	stream atomic.Pointer[roundStream]
	passed *passedRound // the result is a request for input; read it after the result

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
	responses chan [][]byte // in the order of inputs; nil for a response that is missing
}

// outcome is the end of a call.
type outcome struct {
	result []byte
	err    error
}

// run runs one round of a call. It returns when the call is over or needs input.
func (r *multiRoundCalls) run(ctx context.Context, c *Client, m rpc.Message, call func(ctx context.Context) ([]byte, error)) ([]byte, error) {
	if !mayRequireInput[m.Method] {
		c.requestInput = func(_ context.Context, inputs []upstream.Input) ([][]byte, error) {
			return nil, rpc.Errorf(rpc.CodeMethodNotFound, "%s: the client accepts no requests during %s", inputs[0].Method, m.Method)
		}
		return call(ctx)
	}
	p, err := r.parkedCall(c, m)
	switch {
	case err != nil:
		return nil, err
	case p != nil:
		p.stream.Store(newRoundStream(c, m))
		p.resume(rawjson.Get(m.Params, "inputResponses"))
	default:
		p = r.begin(ctx, c, m, call)
	}
	stop := context.AfterFunc(ctx, func() { p.cancel(context.Cause(ctx)) })
	defer stop()
	for {
		select {
		case o := <-p.result:
			if p.passed != nil && o.err == nil {
				return r.sealed.inputRequired(o.result, p), nil
			}
			return o.result, o.err
		case request := <-p.inputs:
			if result := r.park(p, request); result != nil {
				return result, nil
			}
			request.respond(nil)
		}
	}
}

// parkedCall removes the call that a request continues; nil for a request that begins a call
// here.
func (r *multiRoundCalls) parkedCall(c *Client, m rpc.Message) (*multiRoundCall, error) {
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
	errUnknownState = invalidParams(`"requestState" is unknown, or its call has ended; make the call again without it`)
	errOtherReplica = invalidParams(`the call of this "requestState" waits on another replica of mcpx; make the call again without "requestState", or route each client to one replica`)
)

// newRoundStream returns where notifications of a call go in this round. It copies the
// progress token, so that the memory of the request can be freed.
func newRoundStream(c *Client, m rpc.Message) *roundStream {
	return &roundStream{c.Send, slices.Clone(rawjson.Get(rawjson.Get(m.Params, "_meta"), "progressToken"))}
}

// begin starts a call, which may outlast the request that started it.
func (r *multiRoundCalls) begin(ctx context.Context, c *Client, m rpc.Message, call func(ctx context.Context) ([]byte, error)) *multiRoundCall {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	p := &multiRoundCall{owner: c.owner, method: strings.Clone(m.Method), size: len(m.Params), inputs: make(chan inputRequest), result: make(chan outcome, 1), done: make(chan struct{}), cancel: cancel}
	p.stream.Store(newRoundStream(c, m))
	c.Send = func(message []byte) error { return p.stream.Load().send(message) }
	c.progressToken = func() []byte { return p.stream.Load().token }
	c.requestInput = p.requestInput
	if r.sealed != nil {
		c.call = p
	}
	go func() {
		result, err := call(ctx)
		p.result <- outcome{result, err}
		close(p.done)
		cancel(nil)
	}()
	return p
}

// requestInput requests input from the client and waits for it until the next round.
func (p *multiRoundCall) requestInput(ctx context.Context, inputs []upstream.Input) ([][]byte, error) {
	request := inputRequest{inputs: inputs, responses: make(chan [][]byte, 1)}
	select {
	case p.inputs <- request:
	case <-p.done:
		return nil, upstream.ErrCallOver
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case responses := <-request.responses:
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
	p.expiry = time.AfterFunc(parkTime, func() {
		if expired := r.remove(state, p.owner, p.method); expired != nil {
			expired.resume(nil)
			expired.cancel(fmt.Errorf("the client did not continue the call within %s", parkTime))
		}
	})
	return true
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

// resume passes the client's responses to the input requests. It passes nil if a response
// is missing.
func (p *multiRoundCall) resume(responses []byte) {
	p.expiry.Stop()
	p.requested.respond(responses)
	p.requested = inputRequest{}
}

// respond passes the members of an object to the one who waits for them.
func (r inputRequest) respond(object []byte) {
	responses := make([][]byte, len(r.inputs))
	for i, input := range r.inputs {
		responses[i] = rawjson.Get(object, input.Key)
	}
	r.responses <- responses
}

package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/config"
	"mcpx/internal/logging"
	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
)

// Since revision 2026-07-28 MCP has no initialize. Every request names its revision
// and capabilities. A server that needs input from its client responds to the call with
// input_required. Changes are reported in one long response to subscriptions/listen.
// Which revision an upstream speaks is decided in revision.go.

// state2026 is the additional state of a session that speaks 2026-07-28.
type state2026 struct {
	meta []byte // members of every request's _meta
	filterState
}

// coreKeys are the keys of _meta that 2026-07-28 itself defines. They are between a client and
// mcpx, or between mcpx and an upstream. Keys of extensions have the same prefix, and pass.
var coreKeys = []string{
	mcp.MetaKeyProtocolVersion, mcp.MetaKeyClientInfo, mcp.MetaKeyClientCapabilities,
	mcp.MetaKeyLogLevel, mcp.MetaKeyServerInfo, mcp.MetaKeySubscriptionID,
}

// corePrefix begins each of coreKeys.
const corePrefix = "io.modelcontextprotocol/"

// maxRounds bounds how often one call may require input of its client.
const maxRounds = 10

func meta2026(version string) []byte {
	handshake := initializeParams(version)
	meta := rawjson.AppendString([]byte(`{"`+mcp.MetaKeyProtocolVersion+`":`), mcp.ProtocolVersion20260728)
	meta = rawjson.AppendMember(meta, mcp.MetaKeyClientInfo, rawjson.Get(handshake, "clientInfo"))
	return append(rawjson.AppendMember(meta, mcp.MetaKeyClientCapabilities, rawjson.Get(handshake, "capabilities")), '}')
}

// withoutCoreKeys returns the _meta of a client's request without coreKeys.
func withoutCoreKeys(meta []byte) []byte {
	if !bytes.Contains(meta, []byte(corePrefix)) && !bytes.Contains(meta, []byte(`\`)) { // a key may be escaped
		return meta
	}
	others := []byte("{")
	for key, value := range rawjson.RawMembers(meta) {
		if name, _ := rawjson.View(key); !slices.Contains(coreKeys, name) {
			others = rawjson.AppendRawMember(others, key, value)
		}
	}
	return append(others, '}')
}

// requestMeta returns the _meta of a request: the client's own keys, and those of
// 2026-07-28 as mcpx sets them. The capabilities are those of the client, so that the upstream
// requires no others. For its own requests mcpx declares all capabilities.
func (s *Session) requestMeta(own []byte, client Client) []byte {
	meta := s.state2026().meta
	for key, value := range rawjson.Members(withoutCoreKeys(own)) {
		meta = rawjson.With(meta, key, value)
	}
	if c, ok := client.(InputClient); ok {
		meta = rawjson.With(meta, mcp.MetaKeyClientCapabilities, forwardable(c.Capabilities()))
	}
	if level := s.Host.LogLevel(); level != "" {
		meta = rawjson.With(meta, mcp.MetaKeyLogLevel, rawjson.AppendString(nil, level))
	}
	return meta
}

// forwardable returns the capabilities of a client that upstreams learn. mcpx forwards no
// other requests to clients.
func forwardable(capabilities []byte) []byte {
	b := []byte("{")
	for _, name := range []string{"roots", "sampling", "elicitation"} {
		if declared := rawjson.Get(capabilities, name); rawjson.Kind(declared) == '{' {
			b = rawjson.AppendMember(b, name, declared)
		}
	}
	return append(b, '}')
}

// goInRounds makes a call to an upstream of 2026-07-28. Each time the upstream requires input,
// a goroutine gets the input from the client and makes the call again.
func (s *Session) goInRounds(ctx context.Context, r Request, l Limits, done rpc.Done) error {
	empty := rpc.NewResult([]byte("{}"))
	switch r.Method {
	case "resources/subscribe": // the filter of listen has all URIs
		generation := s.state2026().request()
		go func() {
			defer s.conn.Recover()
			done(empty, s.waitListening(ctx, generation))
		}()
		return nil
	case "resources/unsubscribe":
		s.state2026().request()
		done(empty, nil)
		return nil
	case "logging/setLevel":
		done(empty, nil)
		return nil
	}
	r.Meta = s.requestMeta(r.Meta, r.Client)
	if c, ok := r.Client.(RoundClient); ok {
		if responses, state, ok := c.Resumed(s.Config.Name); ok {
			r.Params = nextRound(r.Params, responses, state)
		}
	}
	begun := time.Now()
	s.rounds.Add(1)
	end := func(result rpc.Result, err error) {
		s.rounds.Add(-1)
		done(result, err)
	}
	err := s.goOnce(ctx, r, l, func(result rpc.Result, err error) {
		if err != nil || !requiresInput(result) {
			end(result, err)
			return
		}
		go func() {
			defer s.conn.Recover()
			end(s.moreRounds(ctx, r, l, begun, result))
		}()
	})
	if err != nil {
		s.rounds.Add(-1)
	}
	return err
}

// requiresInput reports whether a result is a request for input.
func requiresInput(r rpc.Result) bool {
	return string(rawjson.Get(r.JSON, "resultType")) == `"input_required"`
}

// moreRounds makes the rounds after the first one, which has ended with that result. A panic
// ends only this call.
func (s *Session) moreRounds(ctx context.Context, r Request, l Limits, begun time.Time, result rpc.Result) (_ rpc.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			logging.Panic(s.Log.Error(), p).Msg("panic between the rounds of a call")
			err = fmt.Errorf("internal error in a call to %s", s.Config.Name)
		}
	}()
	if l.Total > 0 { // for all rounds, and the client's time between them
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, begun.Add(l.Total), &Timeout{Server: s.Config.Name, Key: "max_timeout", Limit: l.Total})
		defer cancel()
		l.Total = 0
	}
	for range maxRounds - 1 {
		result.Free() // a request for input is short, and the client may take long
		if r.Client == nil {
			return rpc.Result{}, errors.New("the upstream requires input of a client, but mcpx made the call")
		}
		if hasPassed, err := s.pass(r, result.JSON); hasPassed || err != nil {
			return result, err
		}
		if r.Params, err = s.collectInput(ctx, r, result.JSON); err != nil {
			return rpc.Result{}, err
		}
		result, err = wait(func(done rpc.Done) error { return s.goOnce(ctx, r, l, done) })
		if errors.Is(err, rpc.ErrClosed) { // this round was not sent, but the first was
			<-s.Done()
			return rpc.Result{}, s.Lost(s.conn.Err())
		}
		if err != nil || !requiresInput(result) {
			return result, err
		}
	}
	result.Free()
	return rpc.Result{}, fmt.Errorf("the upstream required input more than %d times", maxRounds)
}

// collectInput sends the upstream's requests to the client and returns the params of
// the next round, with the responses.
func (s *Session) collectInput(ctx context.Context, r Request, result []byte) ([]byte, error) {
	requestCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.conn.Context(), cancel)() // nothing waits for the response then
	inputs, err := s.inputs(r, result)
	if err != nil {
		return nil, err
	}
	responses, err := requestAll(requestCtx, r.Client, inputs)
	switch {
	case s.IsOver():
		return nil, s.Lost(s.conn.Err())
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	}
	byKey := []byte("{")
	for i, input := range inputs {
		byKey = rawjson.AppendMember(byKey, input.Key, responses[i])
	}
	return nextRound(r.Params, append(byKey, '}'), rawjson.Get(result, "requestState")), nil
}

// nextRound returns the params of a call with the input and the state of the next round.
func nextRound(params, responses, state []byte) []byte {
	return rawjson.With(rawjson.With(rawjson.OrObject(params), "inputResponses", responses), "requestState", state)
}

// maxPassed bounds the state of an upstream that a client keeps for it.
const maxPassed = 64 << 10

// pass reports whether the client continues the call by itself. The next round may then use
// another session, so the upstream must not have one per client.
func (s *Session) pass(r Request, result []byte) (bool, error) {
	c, ok := r.Client.(RoundClient)
	if !ok || s.Config.Isolation == config.PerClient || len(rawjson.Get(result, "requestState")) > maxPassed {
		return false, nil
	}
	inputs, err := s.inputs(r, result)
	if err != nil {
		return false, err
	}
	return c.Pass(s.Config.Name, inputs)
}

// requestAll sends the requests of one round to a client.
func requestAll(ctx context.Context, c Client, inputs []Input) (responses [][]byte, err error) {
	if c, ok := c.(InputClient); ok {
		return c.RequestAll(ctx, inputs)
	}
	return RequestEach(ctx, c, inputs)
}

// maxInputs bounds the requests of one round.
const maxInputs = 100

// inputs returns the requests to the client in a result.
func (s *Session) inputs(r Request, result []byte) (inputs []Input, err error) {
	for key, request := range rawjson.Members(rawjson.Get(result, "inputRequests")) {
		method, _ := rawjson.String(rawjson.Get(request, "method"))
		if !forClients[method] {
			return nil, fmt.Errorf("the upstream requests %q, which clients do not know", method)
		}
		if len(inputs) == maxInputs {
			return nil, fmt.Errorf("the upstream requires more than %d inputs at once", maxInputs)
		}
		params := rawjson.Get(request, "params")
		if method == "elicitation/create" {
			s.rememberURL(params, r.Client)
		}
		inputs = append(inputs, Input{key, method, params})
	}
	return inputs, nil
}

package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/config"
	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
)

// Since revision 2026-07-28 MCP has no initialize. Every request names its revision
// and capabilities. A server that needs input from its client responds to the call with
// input_required. Changes are reported in one long response to subscriptions/listen.
// Which revision an upstream speaks is decided in revision.go.

// modern is the additional state of a session that speaks 2026-07-28.
type modern struct {
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

func modernMeta(version string) []byte {
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
	meta := s.modern().meta
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

// callInRounds makes a call. Each time the upstream requires input, it gets the input
// from the client and makes the call again.
func (s *Session) callInRounds(ctx context.Context, r Request, l Limits) ([]byte, error) {
	switch r.Method {
	case "resources/subscribe": // the filter of listen has all URIs
		return []byte("{}"), s.waitListening(ctx, s.modern().request())
	case "resources/unsubscribe":
		s.modern().request()
		return []byte("{}"), nil
	case "logging/setLevel":
		return []byte("{}"), nil
	}
	s.rounds.Add(1)
	defer s.rounds.Add(-1)
	r.Meta = s.requestMeta(r.Meta, r.Client)
	if l.Total > 0 { // for all rounds, and the client's time between them
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, l.Total, &Timeout{Server: s.Config.Name, Key: "max_timeout", Limit: l.Total})
		defer cancel()
		l.Total = 0
	}
	if c, ok := r.Client.(RoundClient); ok {
		if responses, state, ok := c.Resumed(s.Config.Name); ok {
			r.Params = nextRound(r.Params, responses, state)
		}
	}
	for round := range maxRounds {
		result, err := s.callOnce(ctx, r, l)
		if round > 0 && errors.Is(err, rpc.ErrClosed) { // this round was not sent, but the first was
			<-s.Done()
			return nil, s.Lost(s.conn.Err())
		}
		if err != nil || string(rawjson.Get(result, "resultType")) != `"input_required"` {
			return result, err
		}
		if r.Client == nil {
			return nil, errors.New("the upstream requires input of a client, but mcpx made the call")
		}
		if hasPassed, err := s.pass(r, result); hasPassed || err != nil {
			return result, err
		}
		if r.Params, err = s.collectInput(ctx, r, result); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("the upstream required input more than %d times", maxRounds)
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

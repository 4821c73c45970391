package server

import (
	"crypto/rand"
	"strings"
	"time"

	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/internal/seal"
	"mcpx/registry/upstream"
)

// sealedRounds seals the requestState of calls, so that every replica can read it. If the
// upstream itself speaks 2026-07-28, its own state is inside, and every replica can continue
// the call. Otherwise the call waits on one replica, and the state says on which.
type sealedRounds struct {
	box     *seal.Box
	replica string // this process
	profile string
}

func newSealedRounds(box *seal.Box, profile string) *sealedRounds {
	if box == nil {
		return nil
	}
	return &sealedRounds{box: box, replica: rand.Text(), profile: profile}
}

// A state has three parts, separated by NUL bytes: one of these words, then the replica and
// the state of a parked call, or the upstream and its own state.
const (
	stateParked = "parked"
	statePassed = "passed"
)

// label returns the data that a sealed state is authenticated with: owner, method and profile.
func (s *sealedRounds) label(owner, method string) string {
	return method + " " + s.profile + "\x00" + owner
}

// sealParts returns the requestState of a call.
func (s *sealedRounds) sealParts(p *multiRoundCall, parts ...string) string {
	terms := seal.Terms{Label: s.label(p.owner, p.method), Until: time.Now().Add(parkTime)}
	return s.box.Seal([]byte(strings.Join(parts, "\x00")), terms)
}

// passedRound is a round in which an upstream requires input, and the client continues the
// call with the upstream's own state.
type passedRound struct {
	server string // upstream
	inputs []upstream.Input
}

// inputRequired returns the result for the client. It requests the input that the upstream's
// result requests, and contains the upstream's state, sealed.
func (s *sealedRounds) inputRequired(result []byte, p *multiRoundCall) []byte {
	state := string(rawjson.Get(result, "requestState"))
	return inputRequired(p.passed.inputs, s.sealParts(p, statePassed, p.passed.server, state))
}

// open returns the state of a call that is parked here. For a call that any replica can
// continue, it is empty, and open sets c.resumed.
func (s *sealedRounds) open(requestState string, c *Client, m rpc.Message) (parked string, err error) {
	text, _, err := s.box.Open(requestState, s.label(c.owner, m.Method))
	if err != nil {
		return "", errUnknownState
	}
	parts := strings.SplitN(string(text), "\x00", 3)
	switch {
	case len(parts) != 3:
		return "", errUnknownState
	case parts[0] == statePassed:
		c.resumed = &resumedCall{server: parts[1], state: []byte(parts[2]), responses: rawjson.OrObject(rawjson.Get(m.Params, "inputResponses"))}
		return "", nil
	case parts[1] != s.replica:
		return "", errOtherReplica
	}
	return parts[2], nil
}

// resumedCall has the input and the state with which a client continues a call.
type resumedCall struct {
	server           string // upstream
	responses, state []byte
}

// Resumed implements upstream.RoundClient.
func (c *Client) Resumed(server string) (responses, state []byte, ok bool) {
	r := c.resumed
	if r == nil || r.server != server {
		return nil, nil, false
	}
	if len(r.state) == 0 { // the upstream sent none
		return r.responses, nil, true
	}
	return r.responses, r.state, true
}

// Pass implements upstream.RoundClient.
func (c *Client) Pass(server string, inputs []upstream.Input) (bool, error) {
	if c.round == nil || c.round.table.sealed == nil {
		return false, nil
	}
	for _, input := range inputs {
		if err := c.Supports(input.Method, input.Params); err != nil {
			return false, err
		}
	}
	c.round.passed = &passedRound{server, inputs}
	return true, nil
}

// HasPassed implements upstream.RoundClient.
func (c *Client) HasPassed() bool { return c.round != nil && c.round.passed != nil }

// withoutRound returns the params of a call without requestState and inputResponses, which
// are between the client and mcpx.
func withoutRound(params []byte) []byte {
	return rawjson.With(rawjson.With(params, "requestState", nil), "inputResponses", nil)
}

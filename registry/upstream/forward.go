package upstream

import (
	"errors"
	"fmt"
	"slices"

	"mcpx/internal/rpc"
)

// forClients lists the requests that an upstream may send to a client.
var forClients = map[string]bool{
	"sampling/createMessage": true,
	"elicitation/create":     true,
	"roots/list":             true,
}

// maxForwarded bounds how many requests of one upstream wait for clients.
const maxForwarded = 100

// handleRequest handles a request of the upstream. A request for a client gets a
// goroutine, since a person may have to respond.
func (s *Session) handleRequest(m rpc.Message, callID []byte) {
	switch {
	case m.Method == "ping":
		s.respond(m.ID, []byte("{}"), nil)
		return
	case s.isEcho(m):
		s.conn.Refuse(m.ID, &Unanswered{Server: s.Config.Name, Reason: "it repeats what it reads, so it is not an MCP server; check its command or URL"})
		return
	case !forClients[m.Method]:
		s.respond(m.ID, nil, rpc.Errorf(rpc.CodeMethodNotFound, "Method '%s' not found", m.Method))
		return
	}
	find := s.addressee
	if m.Method == "roots/list" {
		find = s.rootsAddressee
	}
	client, err := find(callID)
	if err != nil {
		s.respond(m.ID, nil, refusal(m.Method, err))
		return
	}
	if m.Method == "elicitation/create" {
		s.rememberURL(m.Params, client)
	}
	causes := slices.DeleteFunc(s.conn.Snapshot().Calls, func(c *rpc.Call) bool { return clientOf(c) == nil })
	incoming, err := s.conn.Begin(s.conn.Context(), m.ID, maxForwarded, causes...)
	if err != nil {
		s.respond(m.ID, nil, fmt.Errorf("refused: %d requests to clients are waiting already", maxForwarded))
		return
	}
	incoming.Hold(callsOf(client))
	s.tasks.Go(func() { s.forward(incoming, m, callID, client) })
}

// refusal returns the error for a request that goes to no client.
func refusal(method string, why error) error {
	return rpc.Errorf(rpc.CodeInvalidRequest, "%s was refused: %v", method, why)
}

// isEcho reports whether the upstream sends back a request that it should respond to, as the
// program cat does.
func (s *Session) isEcho(m rpc.Message) bool {
	call := s.conn.Pending(m.ID)
	return call != nil && call.Method == m.Method
}

// callsOf returns a function that reports whether a call is the client's.
func callsOf(client Client) func(c *rpc.Call) bool {
	return func(c *rpc.Call) bool { return clientOf(c) != nil && clientOf(c).ID() == client.ID() }
}

// forward sends an upstream's request to the client, and the client's response to the
// upstream.
func (s *Session) forward(incoming *rpc.Incoming, m rpc.Message, callID []byte, client Client) {
	defer s.conn.Recover()
	defer incoming.End()
	for {
		result, err := client.Request(incoming, m.Method, m.Params)
		if errors.Is(err, ErrCallOver) { // look for another call that it may belong to
			next, uncertain := s.addressee(callID)
			if uncertain == nil && next != client && incoming.MayBelongTo(callsOf(next)) {
				client = next
				incoming.Hold(callsOf(client))
				continue
			}
			if uncertain != nil {
				err = refusal(m.Method, uncertain)
			}
		}
		if m.Method == "roots/list" {
			s.respondRoots(m.ID, client, result, err)
			return
		}
		s.respond(m.ID, result, err)
		return
	}
}

// respond responds to a request of the upstream.
func (s *Session) respond(id, result []byte, err error) {
	message := rpc.AppendResult(nil, id, result)
	if err != nil {
		e := &rpc.Error{Code: rpc.CodeInternal, Message: err.Error()}
		errors.As(err, &e)
		message = rpc.AppendError(nil, id, e)
	}
	if err := s.Link.Send(message); err != nil {
		s.Log.Debug().Err(err).Msg("could not send a response to the upstream")
	}
}

package upstream

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"mcpx/internal/rawjson"
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
		s.respond(m.ID, nil, rpc.Errorf(rpc.CodeInvalidRequest, "%s was refused: %v", m.Method, err))
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
			var next Client
			if next, err = s.addressee(callID); err == nil && next != client && incoming.MayBelongTo(callsOf(next)) {
				client = next
				incoming.Hold(callsOf(client))
				continue
			}
			err = cmp.Or(err, ErrCallOver)
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

// addressee picks the client that should receive a request or notification of the
// upstream: the client of the call whose stream carried it, the only client with pending
// calls, or the only client. If that is not certain, the error says why.
func (s *Session) addressee(callID []byte) (Client, error) {
	only := s.Host.OnlyClient()
	if callID != nil {
		switch c := s.conn.Pending(callID); {
		case c == nil:
			return nil, errors.New("the call that it belongs to is over")
		case clientOf(c) != nil:
			return clientOf(c), nil
		}
	}
	now := s.conn.Snapshot()
	busy, parked := clientsOf(now)
	if len(busy) == 0 {
		busy = parked
	}
	if len(busy) > 1 {
		return nil, s.uncertain("several clients have calls in flight on")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, client := range busy {
		if s.callers.several && (now.Overflow || s.hasAbandoned(now, client)) {
			return nil, s.uncertain("another client has abandoned a call on")
		}
		return client, nil
	}
	if only != nil && s.callers.isOnly(s.callerID(only)) {
		return only, nil
	}
	return nil, s.uncertain("no client has a call in flight on")
}

// uncertain returns the error for a message that cannot be assigned to one client.
func (s *Session) uncertain(why string) error {
	return fmt.Errorf(`%s the shared session of server %q; set "isolation": "client" for it`, why, s.Config.Name)
}

// hasAbandoned reports whether a client other than this one has abandoned a call.
func (s *Session) hasAbandoned(now rpc.Snapshot, client Client) bool {
	for _, caller := range now.Abandoned {
		if caller != s.callerID(client) {
			return true
		}
	}
	return false
}

// clientsOf returns the clients with pending calls, by ID. A client with several calls is
// reached on the stream of its newest call. parked has the clients without a client
// session whose call waits for their response to an upstream's request. They respond by
// making the call again, perhaps minutes later. Meanwhile the upstream is unlikely to send
// another request.
func clientsOf(now rpc.Snapshot) (busy, parked map[string]Client) {
	busy, parked = map[string]Client{}, map[string]Client{}
	for _, c := range now.Calls {
		client := clientOf(c)
		switch {
		case client == nil:
		case slices.Contains(now.Held, c) && client.Owner() != client.ID():
			parked[client.ID()] = client
		default:
			busy[client.ID()] = client
		}
	}
	return busy, parked
}

// recipients returns the clients that should receive a notification: one if it is
// certain; otherwise, for a log message, every client with a pending call.
func (s *Session) recipients(m rpc.Message, callID []byte) (clients []Client) {
	if m.Method == elicitationComplete {
		if to := s.visitor(m.Params); to != nil {
			return []Client{to}
		}
	}
	client, err := s.addressee(callID)
	if err == nil {
		return []Client{client}
	}
	if m.Method == "notifications/message" {
		busy, parked := clientsOf(s.conn.Snapshot())
		for _, c := range busy {
			clients = append(clients, c)
		}
		for id, c := range parked {
			if busy[id] == nil {
				clients = append(clients, c)
			}
		}
	}
	return clients
}

// callers records which clients have used a session. An upstream may continue an
// abandoned call and send a request for it much later, when the only pending call is of
// another client.
type callers struct {
	first   string // the first client that made a call
	several bool   // more than one client has made calls
}

// add records that a client makes a call.
func (c *callers) add(client string) {
	if c.first == "" {
		c.first = client
	}
	c.several = c.several || c.first != client
}

// isOnly reports whether no other client has made a call.
func (c *callers) isOnly(client string) bool {
	return c.first == "" || c.first == client && !c.several
}

// callerID identifies the client of a call. Requests for one call may reach another call
// of the same caller. On the shared session, clients without a client session may be
// different programs even if they have the same owner, so each is its own caller.
func (s *Session) callerID(c Client) string {
	if s.Owner != nil {
		return c.Owner()
	}
	return c.ID()
}

// maxElicited bounds how many unfinished visits to a URL are remembered.
const maxElicited = 256

// elicited remembers which client was sent to which URL, because the notification
// that the visit is complete carries no call ID.
type elicited struct {
	clients map[string]Client // by elicitationId
	order   []string          // the oldest first
}

const (
	elicitationComplete = "notifications/elicitation/complete"
	codeElicitationURL  = -32042 // error: the call needs a visit to a URL first
)

// rememberURL remembers the client of an elicitation that sends it to a URL.
func (s *Session) rememberURL(params []byte, client Client) {
	id, ok := rawjson.String(rawjson.Get(params, "elicitationId"))
	if mode, _ := rawjson.String(rawjson.Get(params, "mode")); mode != "url" || !ok || client == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := &s.elicited
	if e.clients == nil {
		e.clients = map[string]Client{}
	}
	if _, known := e.clients[id]; !known {
		e.order = append(e.order, id)
	}
	e.clients[id] = client
	if len(e.order) > maxElicited {
		delete(e.clients, e.order[0])
		e.order = e.order[1:]
	}
}

// rememberURLs remembers the client of an error that sends it to URLs.
func (s *Session) rememberURLs(err *rpc.Error, client Client) {
	if err.Code != codeElicitationURL {
		return
	}
	for e := range rawjson.Elements(rawjson.Get(err.Data, "elicitations")) {
		s.rememberURL(e, client)
	}
}

// visitor returns the client whose visit to a URL is complete, nil if it is unknown.
// It stays remembered: an upstream may send the notification twice.
func (s *Session) visitor(params []byte) Client {
	id, _ := rawjson.String(rawjson.Get(params, "elicitationId"))
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.elicited.clients[id]
}

package upstream

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
)

// addressee picks the client that should receive a request of the upstream: the client of the
// call whose stream carried it, the only client with pending calls, or the only client. If
// that is not certain, the error says why. A request that no stream connects with a call may
// belong to a call of any client that is over.
func (s *Session) addressee(callID []byte) (Client, error) {
	if client, err := s.streamClient(callID); client != nil || err != nil {
		return client, err
	}
	client, err := s.busyClient()
	if err != nil {
		return nil, err
	}
	isOther := func(owner string) bool { return owner != client.Owner() }
	if slices.ContainsFunc(s.conn.Snapshot().Ended, isOther) {
		return nil, s.uncertain(usedByOther)
	}
	return client, nil
}

// usedByOther is the reason if a request may belong to a call of another client that is over.
const usedByOther = "another client had a call in the last minute on"

// Left is called when a client has left. A request that the upstream sends from now on is
// unlikely to belong to a call whose response that client got. Calls that it has abandoned still
// count.
func (s *Session) Left(c Client) { s.conn.ForgetEnded(c.Owner()) }

// streamClient returns the client of the call whose stream carried a message; nil if no stream
// names a client's call.
func (s *Session) streamClient(callID []byte) (Client, error) {
	if callID == nil {
		return nil, nil
	}
	call := s.conn.Pending(callID)
	if call == nil {
		s.conn.Touch(callID)
		return nil, errors.New("the call that it belongs to is over")
	}
	return clientOf(call), nil
}

// busyClient returns the only client with pending calls, or the only client if there are
// none. An abandoned call of another client counts.
func (s *Session) busyClient() (Client, error) {
	now := s.conn.Snapshot()
	busy, parked := clientsOf(now)
	if len(busy) == 0 {
		busy = parked
	}
	if len(busy) > 1 {
		return nil, s.uncertain("several clients have calls in flight on")
	}
	only := s.Host.OnlyClient()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, client := range busy {
		if s.callers.several && (now.Overflow || s.hasAbandoned(now, client)) {
			return nil, s.uncertain(usedByOther)
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

// clientOf returns the client of a call, nil for mcpx itself.
func clientOf(c *rpc.Call) Client {
	client, _ := c.Tag.(Client)
	return client
}

// recipients returns the clients that should receive a notification: one if it is
// certain; otherwise, for a log message, every client with a pending call. Nobody responds to
// a notification, so calls that have their response do not count.
func (s *Session) recipients(m rpc.Message, callID []byte) []Client {
	if m.Method == elicitationComplete {
		if to := s.visitor(m.Params); to != nil {
			return []Client{to}
		}
	}
	client, err := s.streamClient(callID)
	if client == nil && err == nil {
		client, err = s.busyClient()
	}
	if err == nil {
		return []Client{client}
	}
	if m.Method != "notifications/message" {
		return nil
	}
	busy, parked := clientsOf(s.conn.Snapshot())
	maps.Copy(parked, busy)
	return slices.Collect(maps.Values(parked))
}

// callers records which clients have used a session. An upstream may continue to
// work on a call that was abandoned or has its response, and send a request for it while the
// only pending call is of another client. rpc.Lingering says how long such calls count.
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

// elicited remembers which client was sent to which URL, because the notification
// that the visit is complete carries no call ID.
type elicited struct {
	clients map[string]Client // by elicitationId
	order   []string          // the oldest first
}

// maxElicited bounds how many visits to a URL are remembered.
const maxElicited = 256

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

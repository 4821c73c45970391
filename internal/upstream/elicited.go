package upstream

import (
	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
)

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

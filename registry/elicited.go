package registry

import (
	"mcpx/internal/jsonrpc"
	"mcpx/internal/rawjson"
)

// maxElicited bounds what is remembered of visits to a url that are not over.
const maxElicited = 256

// elicited remembers which client was sent to which url, since what the upstream
// says of the end of that names no call. It is guarded by the session's mutex.
type elicited struct {
	clients map[string]Client // by elicitationId
	order   []string          // the oldest first
}

const (
	elicitationComplete = "notifications/elicitation/complete"
	codeElicitationURL  = -32042 // the call needs a visit to a url first
)

// elicits notes a request that sends a client to a url.
func (s *Session) elicits(params []byte, client Client) {
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

// elicitsBy notes the urls of an error that asks to visit them first.
func (s *Session) elicitsBy(err *jsonrpc.Error, client Client) {
	if err.Code != codeElicitationURL {
		return
	}
	for e := range rawjson.Elements(rawjson.Get(err.Data, "elicitations")) {
		s.elicits(e, client)
	}
}

// sentTo is the client that was sent to the url whose visit is over, nil if none
// is known. It stays known: an upstream may say so twice.
func (s *Session) sentTo(params []byte) Client {
	id, _ := rawjson.String(rawjson.Get(params, "elicitationId"))
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.elicited.clients[id]
}

package httpfront

import (
	"context"
	"errors"
	"net/http"

	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/server"
	"mcpx/server/access"
)

// sessionHeader is the header with the client session's ID.
const sessionHeader = "Mcp-Session-Id"

// initialize opens a client session.
func (h *HTTP) initialize(w http.ResponseWriter, r *http.Request, s *server.Server, m rpc.Message) {
	n, err := h.sessions.open(s, r, streamableHTTP)
	if err != nil {
		refuseSession(w, err)
		return
	}
	var response []byte
	s.Handle(context.Background(), n.client.As(callerOf(r, n.server)), server.Inbound{Message: m}, func(r []byte) { response = r }) // called before Handle returns
	switch {
	case rawjson.Get(response, "error") != nil:
		h.sessions.end(n)
	case h.Replicas != nil:
		w.Header().Set(sessionHeader, h.Replicas.ID(n))
	default:
		w.Header().Set(sessionHeader, n.id)
	}
	h.times.writeJSON(w, response, http.StatusOK)
}

// refuseSession writes why there is no client session.
func refuseSession(w http.ResponseWriter, err error) {
	if errors.Is(err, errTooManySessions) {
		w.Header().Set("Retry-After", "10")
		access.Refuse(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	access.Refuse(w, http.StatusNotFound, err.Error())
}

// session returns the client session of a request, which counts as used until done is
// called. If there is none, it writes the error response and returns nil.
func (h *HTTP) session(w http.ResponseWriter, r *http.Request, s *server.Server) (n *Session, done func()) {
	if v := r.Header.Get("Mcp-Protocol-Version"); !isKnownVersion(v) {
		access.Refuse(w, http.StatusBadRequest, "Unsupported protocol version: "+v)
		return nil, nil
	}
	id := r.Header.Get(sessionHeader)
	if id == "" {
		access.Refuse(w, http.StatusBadRequest, "the header "+sessionHeader+" is missing; send initialize first")
		return nil, nil
	}
	n, done, err := h.find(r, s, id)
	if err != nil {
		refuseSession(w, err)
		return nil, nil
	}
	return n, done
}

// find returns the client session with that ID, which counts as used until done is called.
func (h *HTTP) find(r *http.Request, s *server.Server, id string) (n *Session, done func(), err error) {
	if h.Replicas != nil {
		n, done, err = h.findShared(r, s, id)
	} else if n, done = h.sessions.find(id, streamableHTTP, r); n == nil {
		err = ErrNoSession
	}
	if err == nil && !n.server.Continues(s) {
		done()
		err = ErrNoSession
	}
	return n, done, err
}

// findShared is find for a session that other processes may have a copy of.
func (h *HTTP) findShared(r *http.Request, s *server.Server, id string) (n *Session, done func(), err error) {
	if n, done, err = h.Replicas.Find(r, s, id); err != nil {
		return nil, nil, err
	}
	n.waitReady()
	if n.isOver() {
		done()
		return nil, nil, ErrNoSession
	}
	return n, done, nil
}

// postInSession handles a message in a client session. A call continues when its
// connection breaks: in MCP, only notifications/cancelled cancels it.
func (h *HTTP) postInSession(w http.ResponseWriter, r *http.Request, s *server.Server, body server.Inbound) {
	n, done := h.session(w, r, s)
	if n == nil {
		return
	}
	if body.IsRequest() {
		if !n.client.Quota.TryAcquire() {
			done()
			refuseTooMany(w)
			return
		}
		defer n.client.Quota.Release()
	}
	if n.copy != nil {
		if err := n.copy.Forward(body); err != nil {
			done()
			refuseForeign(w, err)
			return
		}
	}
	h.respond(w, r, call{ctx: context.Background(), server: n.server, client: n.client.As(callerOf(r, n.server)), body: body, done: done, unread: n.unread})
}

// refuseForeign refuses a message that could not be forwarded to other processes.
func refuseForeign(w http.ResponseWriter, err error) {
	status := http.StatusServiceUnavailable
	if errors.Is(err, ErrNotExpected) {
		status = http.StatusBadRequest
	}
	access.Refuse(w, status, err.Error())
}

// refuseTooMany refuses a call that is over the quota of its client session.
func refuseTooMany(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	access.Refuse(w, http.StatusTooManyRequests, "too many calls are in flight (limits.calls_per_client), or too many answers unread (limits.unread_bytes); read answers, then try again")
}

// get opens the GET stream of a client session, for messages that belong to no call.
func (h *HTTP) get(w http.ResponseWriter, r *http.Request, s *server.Server) {
	if h.refuseStateless(w, http.MethodPost) {
		return
	}
	n, done := h.session(w, r, s)
	if n == nil {
		return
	}
	defer done()
	n.client.As(callerOf(r, n.server))
	h.serveGetStream(w, r, n, nil)
}

// serveGetStream writes the GET stream of a client session, beginning with first.
func (h *HTTP) serveGetStream(w http.ResponseWriter, r *http.Request, n *Session, first []byte) {
	account := n.unread
	if n.transport != legacySSE { // if the client does not read this stream, its responses must still have room
		account = h.sessions.unread.NewAccount(h.Limits.UnreadBytes, nil)
	}
	out := newStream(h.times, account)
	startEvents(w)
	n.setStream(out) // before the write, since the client may post as soon as it reads first
	defer n.removeStream(out)
	if n.copy != nil && !h.sessions.isDraining() { // a stream that ends at once must not end that of another copy
		ctx, stop := context.WithCancel(r.Context())
		defer stop()
		n.copy.Notify(ctx, StreamOpened)
	}
	if h.times.writeEvents(w, first) == nil {
		out.serve(w, r)
	}
}

// delete closes a client session.
func (h *HTTP) delete(w http.ResponseWriter, r *http.Request, s *server.Server) {
	if h.refuseStateless(w, http.MethodPost) {
		return
	}
	n, done := h.session(w, r, s)
	if n == nil {
		return
	}
	done()
	if n.copy != nil {
		n.copy.Notify(context.Background(), Ended)
	}
	h.EndSession(n)
	w.WriteHeader(http.StatusNoContent)
}

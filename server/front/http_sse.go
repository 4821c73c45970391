package front

import (
	"context"
	"io"
	"net/http"

	"mcpx/internal/rawjson"
	"mcpx/server"
	"mcpx/server/access"
)

// sse opens a client session of legacy SSE. The first event on its stream is the URL to
// which the client posts its messages.
func (h *HTTP) sse(w http.ResponseWriter, r *http.Request, s *server.Server) {
	if h.refuseStateless(w, "") {
		return
	}
	n, err := h.sessions.open(s, r, legacySSE)
	if err != nil {
		refuseSession(w, err)
		return
	}
	defer h.sessions.end(n)
	defer n.use()()
	h.serveGetStream(w, r, n, appendEvent(nil, "endpoint", []byte("/message?sessionId="+n.id)))
}

// message handles a message that a client of legacy SSE posts. The response is sent on
// the GET stream.
func (h *HTTP) message(w http.ResponseWriter, r *http.Request) {
	const noSession = "there is no such session; open one with GET /sse"
	n, done := h.sessions.find(r.URL.Query().Get("sessionId"), legacySSE, r)
	if n != nil && !access.MayUse(r.Context(), n.server.Schema()) { // with a token that it has now
		done()
		n = nil
	}
	if n == nil {
		access.Refuse(w, http.StatusNotFound, noSession)
		return
	}
	body, ok := h.Body(w, r)
	if !ok {
		done()
		return
	}
	message := server.Read(body)
	if message.Err == nil {
		message.Message = withTrace(message.Message, r.Header)
	}
	if message.Err == nil && message.Message.Method == "notifications/cancelled" {
		n.cancelWaiting(rawjson.Get(message.Message.Params, "requestId"))
	}
	release, isCancelled := done, false
	var err error
	if message.IsRequest() {
		if isCancelled, err = n.acquireQuota(r.Context(), message); err == nil {
			release = func() {
				n.client.Quota.Release()
				done()
			}
		}
	}
	if err != nil || !n.begin() {
		release()
		switch {
		case err == nil || n.isOver(): // the session has ended meanwhile
			access.Refuse(w, http.StatusNotFound, noSession)
		case isCancelled:
			h.respondAccepted(w)
		default:
			refuseTooMany(w)
		}
		return
	}
	end := func() {
		n.finish()
		release()
	}
	if !message.IsAnswered() {
		defer end()
	}
	n.server.Handle(context.Background(), n.client.As(callerOf(r, n.server)), message, h.responder(n, end))
	h.respondAccepted(w)
}

// responder returns a function that writes a response to the GET stream of a legacy SSE
// client and then calls end. It does not wait: a goroutine writes, until mcpx stops.
func (h *HTTP) responder(n *session, end func()) func(response []byte) {
	return func(response []byte) {
		write := func() {
			defer end()
			if response != nil {
				n.respond(response)
			}
		}
		if !h.responders.Go(write) { // mcpx stops
			write()
		}
	}
}

// respondAccepted writes that a message was accepted. It sets a new deadline, since the
// quota may have delayed the message.
func (h *HTTP) respondAccepted(w http.ResponseWriter) {
	h.times.setWriteDeadline(w)
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, "Accepted")
}

// acquireQuota waits until the quota of the client session has room for a call. This
// delays the response to the POST, which slows down a client that does not read its
// stream. The wait also ends when the POST or the client session ends, or when the
// client cancels the call.
func (n *session) acquireQuota(ctx context.Context, message server.Inbound) (isCancelled bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(n.client.Conn.Context(), cancel)()
	id := string(message.Message.ID)
	n.mu.Lock()
	if n.waiting == nil {
		n.waiting = map[string]context.CancelFunc{}
	}
	if id != "" {
		n.waiting[id] = func() {
			isCancelled = true
			cancel()
		}
	}
	n.mu.Unlock()
	err = n.client.Quota.Acquire(ctx, len(message.Text))
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.waiting, id)
	return isCancelled && err != nil, err
}

// cancelWaiting cancels a call that waits in acquireQuota.
func (n *session) cancelWaiting(id []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if cancel := n.waiting[string(id)]; cancel != nil {
		cancel()
	}
}

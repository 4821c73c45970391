package httpfront

import (
	"context"
	"io"
	"net/http"

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
	defer n.Use()()
	h.serveGetStream(w, r, n, []byte("event: endpoint\ndata: /message?sessionId="+n.id+eventEnd))
}

// message handles a message that a client of legacy SSE posts. The response is sent on
// the GET stream.
func (h *HTTP) message(w http.ResponseWriter, r *http.Request) {
	const noSession = "there is no such session; open one with GET /sse"
	n, done := h.sessions.find(r.URL.Query().Get("sessionId"), legacySSE, r)
	if n != nil && !access.MayUse(r.Context(), n.server.ProfileName()) { // with a token that it has now
		done()
		n = nil
	}
	if n == nil {
		access.Refuse(w, http.StatusNotFound, noSession)
		return
	}
	message, ok := h.read(w, r)
	if !ok {
		done()
		return
	}
	if !n.begin() { // the session has ended meanwhile
		done()
		access.Refuse(w, http.StatusNotFound, noSession)
		return
	}
	end := func() {
		n.finish()
		done()
	}
	if message.IsAnswered() && !n.client.Quota.Enter(message.Size()) {
		end()
		refuseTooMany(w)
		return
	}
	h.accept(r, n, message, end)
	h.respondAccepted(w)
}

// accept handles a message in a session of legacy SSE, and calls end when the response is
// queued, or at once if there is none. If the message has a response, accept waits until the
// message has started. This delays the response to the POST, which slows down a client that does
// not read its stream.
func (h *HTTP) accept(r *http.Request, n *Session, message server.Inbound, end func()) {
	request, start := n.server.Accept(context.Background(), n.client.As(callerOf(r, n.server)), message)
	if start == nil {
		end()
		return
	}
	started := make(chan struct{})
	startNow := func(respond func(response []byte)) {
		close(started)
		start(respond)
	}
	n.client.Quota.Start(request, message.Size(), startNow, func(response []byte) {
		n.respond(response)
		n.client.Quota.Release()
		end()
	})
	select {
	case <-started:
	case <-r.Context().Done(): // the call continues: in MCP, only notifications/cancelled cancels it
	}
}

// respondAccepted writes that a message was accepted. It sets a new deadline, since the
// quota may have delayed the message.
func (h *HTTP) respondAccepted(w http.ResponseWriter) {
	h.times.setWriteDeadline(w)
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, "Accepted")
}

package server

import (
	"io"
	"net/http"
)

// sse opens a session of the older transport: its one stream says where to post.
func (h *HTTP) sse(w http.ResponseWriter, r *http.Request, s *Server) {
	if h.keepsNone(w, "") {
		return
	}
	n := h.open(w, r, s)
	if n == nil {
		return
	}
	defer h.sessions.end(n)
	defer n.use()()
	n.carryAnswers()
	h.stand(w, r, n, appendEvent(nil, "endpoint", []byte("/message?sessionId="+n.id)))
}

// message takes what a client of the older transport posts; the answer comes on
// its stream.
func (h *HTTP) message(w http.ResponseWriter, r *http.Request) {
	const none = "there is no such session; open one with GET /sse"
	n, done := h.sessions.find(r.URL.Query().Get("sessionId"), true, r)
	if n == nil {
		refuse(w, http.StatusNotFound, none)
		return
	}
	body, ok := h.body(w, r)
	if !ok {
		done()
		return
	}
	if !n.begin() { // it has ended meanwhile, and its stream with it
		done()
		refuse(w, http.StatusNotFound, none)
		return
	}
	answer, _ := n.server.acceptText(n.ctx, n.client, body, nil)
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, "Accepted")
	go func() {
		defer done()
		defer n.finish()
		if answer == nil {
			return
		}
		if message := answer(); message != nil {
			n.reply(message)
		}
	}()
}

package server

import (
	"context"
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
	message := parse(body)
	if message.wantsAnswer() {
		if err := n.room(r.Context(), len(body)); err != nil {
			done()
			tooMany(w)
			return
		}
	}
	leave := func() {
		if message.wantsAnswer() {
			n.quota.leave()
		}
		done()
	}
	if !n.begin() { // it has ended meanwhile, and its stream with it
		leave()
		refuse(w, http.StatusNotFound, none)
		return
	}
	answer, _ := n.server.accept(n.ctx, n.client, message, nil)
	h.times.mayWrite(w) // the wait may have been long
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, "Accepted")
	h.answering.Go(func() {
		defer leave()
		defer n.finish()
		if answer == nil {
			return
		}
		if message := answer(); message != nil {
			n.reply(message)
		}
	})
}

// room waits until another call of the session may begin. Meanwhile the client's
// POST is not answered, so a client that does not read its stream is slowed down.
// The wait ends with the POST or with the session, which ends when the client reads
// nothing for long.
func (n *session) room(ctx context.Context, size int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(n.ctx, cancel)()
	return n.quota.wait(ctx, size)
}

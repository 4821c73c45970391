package front

import (
	"context"
	"io"
	"net/http"

	"mcpx/internal/rawjson"
	"mcpx/server"
)

// sse opens a session of the older transport: its one stream says where to post.
func (h *HTTP) sse(w http.ResponseWriter, r *http.Request, s *server.Server) {
	if h.keepsNone(w, "") {
		return
	}
	n := h.open(w, r, s)
	if n == nil {
		return
	}
	defer h.sessions.end(n)
	defer n.use()()
	n.carryAnswers(h.Calls)
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
	message := server.Read(body)
	if message.Err == nil && message.Message.Method == "notifications/cancelled" {
		n.cancelWaiting(rawjson.Get(message.Message.Params, "requestId"))
	}
	leave := done
	if message.IsRequest() {
		isCancelled, err := n.room(r.Context(), message)
		switch {
		case n.isOver():
			done()
			refuse(w, http.StatusNotFound, none)
			return
		case isCancelled:
			done()
			h.accepted(w)
			return
		case err != nil:
			done()
			tooMany(w)
			return
		}
		leave = func() {
			n.client.Quota.Leave()
			done()
		}
	}
	if !n.begin() { // it has ended meanwhile, and its stream with it
		leave()
		refuse(w, http.StatusNotFound, none)
		return
	}
	end := func() {
		n.finish()
		leave()
	}
	if !message.IsAnswered() {
		defer end()
	}
	n.server.Handle(context.Background(), n.client, message, func(answer []byte) {
		write := func() {
			defer end()
			if answer != nil {
				n.reply(answer) // it waits if the client does not read
			}
		}
		if !h.answering.Go(write) { // mcpx stops, and the call is cancelled
			write()
		}
	})
	h.accepted(w)
}

// accepted says that a message was taken. The wait for that may have been long.
func (h *HTTP) accepted(w http.ResponseWriter) {
	h.times.mayWrite(w)
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, "Accepted")
}

// room waits until another call of the session may begin. Meanwhile the client's
// POST is not answered, so a client that does not read its stream is slowed down.
// The wait ends with the POST, with the session, which ends when the client reads
// nothing for long, or when the client cancels the call.
func (n *session) room(ctx context.Context, message server.Inbound) (isCancelled bool, err error) {
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
	err = n.client.Quota.Wait(ctx, len(message.Text))
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.waiting, id)
	return isCancelled && err != nil, err
}

// cancelWaiting cancels a call that waits for room.
func (n *session) cancelWaiting(id []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if cancel := n.waiting[string(id)]; cancel != nil {
		cancel()
	}
}

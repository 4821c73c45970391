package mcptest

import (
	"fmt"
	"io"
	"net/http"
)

// legacy is the server with the flag -sse: legacy SSE. A GET opens a session, whose
// stream carries every message of the server. The first event names the address for
// POSTs.
type legacy struct{ *web }

func (l legacy) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == FaultPath:
		l.fault(out, r)
	case r.Method == http.MethodGet:
		l.stream(out, r)
	default:
		l.post(out, r)
	}
}

// stream serves a session until its connection ends.
func (l legacy) stream(out http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	id, s := l.open()
	s.server.standing = true
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.sessions, id)
		l.mu.Unlock()
	}()
	out.Header().Set("Content-Type", "text/event-stream")
	_, _ = fmt.Fprintf(out, "event: endpoint\ndata: /message?session=%s\n\n", id)
	l.serveStanding(s, out, r)
}

func (l legacy) post(out http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	l.mu.Lock()
	s := l.sessions[r.URL.Query().Get("session")]
	l.mu.Unlock()
	if s == nil {
		http.Error(out, "no such session", http.StatusNotFound)
		return
	}
	s.server.handle(decode[message](body), body)
	out.WriteHeader(http.StatusAccepted)
}

package mcptest

import (
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
)

// legacy is the server with the flag -sse: legacy SSE. A GET opens a session, whose
// stream carries every message of the server. The first event names the address for
// POSTs.
type legacy struct {
	*web
	streams map[string]*stream // guarded by the mutex of web
}

// stream is a session over legacy SSE.
type stream struct {
	server *server
	lines  chan outgoing
	ended  <-chan struct{}
}

func (l *legacy) ServeHTTP(out http.ResponseWriter, r *http.Request) {
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
func (l *legacy) stream(out http.ResponseWriter, r *http.Request) {
	id := rand.Text()
	s := &stream{server: l.fresh(), lines: make(chan outgoing, 100), ended: r.Context().Done()}
	s.server.sink = s.deliver
	l.mu.Lock()
	l.streams[id] = s
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.streams, id)
		l.mu.Unlock()
	}()
	out.Header().Set("Content-Type", "text/event-stream")
	_, _ = fmt.Fprintf(out, "event: endpoint\ndata: /message?session=%s\n\n", id)
	_ = http.NewResponseController(out).Flush()
	for {
		select {
		case o := <-s.lines:
			l.write(out, r, o)
		case <-s.ended:
			return
		}
	}
}

func (s *stream) deliver(line string, written func()) {
	select {
	case s.lines <- outgoing{line, written}:
	case <-s.ended:
	}
}

func (l *legacy) post(out http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m := decode[message](body)
	l.mu.Lock()
	s := l.streams[r.URL.Query().Get("session")]
	l.mu.Unlock()
	if s == nil {
		http.Error(out, "no such session", http.StatusNotFound)
		return
	}
	s.server.handle(m, body)
	out.WriteHeader(http.StatusAccepted)
}

package mcptest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// web is the server with the flag -http: Streamable HTTP, where each session has
// a server of its own, and every answer is a stream.
type web struct {
	fresh func() *server

	mu       sync.Mutex
	sessions map[string]*webSession
}

// webSession hands what its server writes to the request it belongs to.
type webSession struct {
	server *server

	mu       sync.Mutex
	waiting  map[string]chan string // by the id of the request
	standing chan string            // what belongs to no request
}

// serveHTTP serves until the process is killed.
func serveHTTP(address string, fresh func() *server) int {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	w := &web{fresh: fresh, sessions: map[string]*webSession{}}
	s := &http.Server{Handler: w, ReadHeaderTimeout: 10 * time.Second}
	fmt.Fprintln(os.Stderr, "http://"+l.Addr().String())
	fmt.Fprintln(os.Stderr, s.Serve(l))
	return 1
}

func (w *web) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	const header = "Mcp-Session-Id"
	body, _ := io.ReadAll(r.Body)
	var m message
	_ = json.Unmarshal(body, &m)
	w.mu.Lock()
	session := w.sessions[r.Header.Get(header)]
	if session == nil && m.Method == "initialize" {
		session = &webSession{server: w.fresh(), waiting: map[string]chan string{}, standing: make(chan string, 100)}
		session.server.sink = session.deliver
		id := rand.Text()
		w.sessions[id] = session
		out.Header().Set(header, id)
	}
	if r.Method == http.MethodDelete {
		delete(w.sessions, r.Header.Get(header))
	}
	w.mu.Unlock()
	switch {
	case session == nil:
		http.Error(out, "no such session", http.StatusNotFound)
	case r.Method == http.MethodDelete:
	case r.Method == http.MethodGet && session.server.standing:
		session.stand(out, r)
	case r.Method != http.MethodPost:
		out.WriteHeader(http.StatusMethodNotAllowed)
	case m.ID != nil && m.Method != "":
		session.answer(out, r, m)
	default:
		session.server.take(m, body)
		out.WriteHeader(http.StatusAccepted)
	}
}

// answer streams what belongs to a request, until it is answered.
func (s *webSession) answer(out http.ResponseWriter, r *http.Request, m message) {
	lines := make(chan string, 100)
	s.mu.Lock()
	s.waiting[string(m.ID)] = lines
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.waiting, string(m.ID))
		s.mu.Unlock()
	}()
	out.Header().Set("Content-Type", "text/event-stream")
	s.server.take(m, nil)
	for {
		select {
		case line := <-lines:
			_, _ = fmt.Fprintf(out, "data: %s\n\n", line)
			_ = http.NewResponseController(out).Flush()
			var answer message
			if json.Unmarshal([]byte(line), &answer) == nil && answer.Method == "" {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

// stand streams what belongs to no request.
func (s *webSession) stand(out http.ResponseWriter, r *http.Request) {
	out.Header().Set("Content-Type", "text/event-stream")
	_ = http.NewResponseController(out).Flush()
	for {
		select {
		case line := <-s.standing:
			_, _ = fmt.Fprintf(out, "data: %s\n\n", line)
			_ = http.NewResponseController(out).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

// deliver finds the request that a line belongs to: by its id, or by the token of
// its progress, which mcpx makes the id of the request. All other lines go to the
// standing stream, if the server has one.
func (s *webSession) deliver(line string) {
	var m struct {
		message
		Params struct {
			ProgressToken json.RawMessage `json:"progressToken"`
		} `json:"params"`
	}
	_ = json.Unmarshal([]byte(line), &m)
	id := m.ID
	if m.Params.ProgressToken != nil {
		id = m.Params.ProgressToken
	}
	s.mu.Lock()
	lines := s.waiting[string(id)]
	s.mu.Unlock()
	switch {
	case lines != nil:
		lines <- line
	case s.server.standing:
		s.standing <- line
	}
}

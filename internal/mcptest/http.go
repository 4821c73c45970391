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
	"strconv"
	"sync"
	"time"
)

// web is the server with the flag -http: Streamable HTTP. Each session has its own
// server, and every response is a stream.
type web struct {
	base  *server // with the options of the flags
	fresh func() *server

	mu          sync.Mutex
	sessions    map[string]*webSession
	connections map[net.Conn]http.ConnState
	heldUntil   time.Time // no response is written before
}

func newWeb(base *server, fresh func() *server) *web {
	return &web{base: base, fresh: fresh, sessions: map[string]*webSession{}, connections: map[net.Conn]http.ConnState{}}
}

// webSession passes the lines of its server to the requests they belong to.
type webSession struct {
	server *server

	mu       sync.Mutex
	waiting  map[string]chan outgoing // by the ID of the request
	standing chan outgoing            // lines that belong to no request
}

// outgoing is a line to write, and a function to call once it is flushed.
type outgoing struct {
	line    string
	written func()
}

// webHandler is a server over HTTP whose connections are tracked.
type webHandler interface {
	http.Handler
	track(c net.Conn, state http.ConnState)
}

// serveHTTP serves until the process is killed.
func serveHTTP(address string, h webHandler) int {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ConnState: h.track}
	fmt.Fprintln(os.Stderr, "http://"+l.Addr().String())
	fmt.Fprintln(os.Stderr, s.Serve(l))
	return 1
}

func (w *web) track(c net.Conn, state http.ConnState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.connections[c] = state
	if state == http.StateClosed || state == http.StateHijacked {
		delete(w.connections, c)
	}
}

// FaultPath is the path for faults of a server over HTTP: a POST with the kind, and for
// HoldAnswers the milliseconds.
const FaultPath = "/fault"

// The faults of a server over HTTP.
const (
	CutConnections = "connections cut"
	CloseIdle      = "idle connections closed" // as servers may do at any time
	HoldAnswers    = "answers held"
)

// fault handles a POST to FaultPath. It responds with 204 once the fault is in effect.
func (w *web) fault(out http.ResponseWriter, r *http.Request) {
	kind := r.URL.Query().Get("kind")
	ms, _ := strconv.Atoi(r.URL.Query().Get("ms"))
	until := time.Now().Add(time.Duration(ms) * time.Millisecond)
	w.base.record(Event{Kind: Fault, Subject: kind, Until: until.UnixNano()})
	out.WriteHeader(http.StatusNoContent)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch kind {
	case HoldAnswers:
		w.heldUntil = until
	case CloseIdle:
		for c, state := range w.connections {
			if state == http.StateIdle {
				_ = c.Close()
			}
		}
	case CutConnections:
		for c := range w.connections {
			if c.RemoteAddr().String() == r.RemoteAddr {
				continue
			}
			if tcp, ok := c.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0) // a reset, as from a proxy that died
			}
			_ = c.Close()
		}
	}
}

// write writes one event and flushes it, unless the request ends first. Held responses
// wait here.
func (w *web) write(out http.ResponseWriter, r *http.Request, o outgoing) {
	w.mu.Lock()
	held := time.NewTimer(time.Until(w.heldUntil))
	w.mu.Unlock()
	defer held.Stop()
	select {
	case <-held.C:
	case <-r.Context().Done():
		return
	}
	_, err := fmt.Fprintf(out, "data: %s\n\n", o.line)
	if err == nil && http.NewResponseController(out).Flush() == nil {
		o.written()
	}
}

func (w *web) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	if r.URL.Path == FaultPath {
		w.fault(out, r)
		return
	}
	const header = "Mcp-Session-Id"
	body, _ := io.ReadAll(r.Body)
	m := decode[message](body)
	w.mu.Lock()
	session := w.sessions[r.Header.Get(header)]
	if session == nil && m.Method == "initialize" {
		var id string
		id, session = w.open()
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
		w.serveStanding(session, out, r)
	case r.Method != http.MethodPost:
		out.WriteHeader(http.StatusMethodNotAllowed)
	case m.ID != nil && m.Method != "":
		w.respond(session, out, r, m)
	default:
		session.server.handle(m, body)
		out.WriteHeader(http.StatusAccepted)
	}
}

// open opens a session. The caller holds the mutex.
func (w *web) open() (id string, s *webSession) {
	s = &webSession{server: w.fresh(), waiting: map[string]chan outgoing{}, standing: make(chan outgoing, 100)}
	s.server.sink = s.deliver
	id = rand.Text()
	w.sessions[id] = s
	return id, s
}

// respond streams the lines of a request, up to its response.
func (w *web) respond(s *webSession, out http.ResponseWriter, r *http.Request, m message) {
	lines := make(chan outgoing, 100)
	s.mu.Lock()
	s.waiting[string(m.ID)] = lines
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.waiting, string(m.ID))
		s.mu.Unlock()
	}()
	out.Header().Set("Content-Type", "text/event-stream")
	s.server.handle(m, nil)
	for {
		select {
		case o := <-lines:
			w.write(out, r, o)
			if json.Valid([]byte(o.line)) && decode[message]([]byte(o.line)).Method == "" {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

// serveStanding streams the lines that belong to no request.
func (w *web) serveStanding(s *webSession, out http.ResponseWriter, r *http.Request) {
	out.Header().Set("Content-Type", "text/event-stream")
	_ = http.NewResponseController(out).Flush()
	for {
		select {
		case o := <-s.standing:
			w.write(out, r, o)
		case <-r.Context().Done():
			return
		}
	}
}

// deliver finds the request that a line belongs to: by its ID, or by its progress token,
// which mcpx sets to the ID of the request. All other lines go to the standing stream,
// if the server has one.
func (s *webSession) deliver(line string, written func()) {
	m := decode[message]([]byte(line))
	id := m.ID
	if p := decode[struct{ ProgressToken json.RawMessage }](m.Params); p.ProgressToken != nil {
		id = p.ProgressToken
	}
	s.mu.Lock()
	lines := s.waiting[string(id)]
	s.mu.Unlock()
	switch {
	case lines != nil:
		lines <- outgoing{line, written}
	case s.server.standing:
		s.standing <- outgoing{line, written}
	}
}

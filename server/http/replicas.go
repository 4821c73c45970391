package httpfront

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"

	"mcpx/server"
)

// Replicas lets other processes continue client sessions. Each process that has served a
// request of a session has a copy of it. Its methods may be called concurrently.
//
// There are two hooks, because one is about IDs and the other about one session.
type Replicas interface {
	// Share returns the client of a new session, and the session's copy.
	Share(n *Session) (*server.Client, Copy)
	// ID returns the ID that the client of a session gets. It is called after
	// initialize.
	ID(n *Session) string
	// Find returns the client session of an ID that a client has sent, which counts as used
	// until done is called. It may call FindSession and ContinueSession. The error is
	// ErrNoSession for any ID that is not valid for this server and sender.
	Find(r *http.Request, s *server.Server, id string) (n *Session, done func(), err error)
}

// Copy connects a client session with its copies in other processes. Its methods may be called
// concurrently.
type Copy interface {
	// Forward forwards a message of the client, or the messages of a batch, if they concern
	// other copies. If it fails, the message is refused: with 400 for ErrNotExpected, with 503
	// for any other error.
	Forward(body server.Inbound) error
	// Send sends a message to the client on the GET stream of another copy. It does not wait.
	Send(message []byte) error
	// Notify says that something has happened to the client session here. The context of
	// StreamOpened ends with the stream.
	Notify(ctx context.Context, e Event)
}

// Event is something that happens to a client session.
type Event int

// The events.
const (
	StreamOpened Event = iota // the client has opened a GET stream
	Left                      // the client has closed its GET stream, and has nothing else open
	Ended                     // the client has ended the session
)

// Errors of Replicas and Copy that the client sees with their own status.
var (
	ErrNoSession   = errors.New("there is no such session; send initialize")
	ErrNotExpected = errors.New("this replica of mcpx has sent no request with that ID; route requests to one replica by Mcp-Session-Id (sticky routing), or set server.store")
)

// Session returns the client session with that key, nil if it is not here.
func (h *HTTP) Session(key string) *Session { return h.sessions.get(key) }

// FindSession returns the client session with that key, nil if it is not here or the sender
// of the request may not use it. It counts as used until done is called.
func (h *HTTP) FindSession(key string, r *http.Request) (n *Session, done func()) {
	return h.sessions.find(key, streamableHTTP, r)
}

// ContinueSession adds a client session that another process has opened, and calls begin,
// which sets the state of its client, or returns false if the session has ended. Other
// requests wait until begin returns. If the session is here, ContinueSession returns it.
func (h *HTTP) ContinueSession(r *http.Request, s *server.Server, key string, begin func(n *Session) bool) (n *Session, done func(), err error) {
	own := h.sessions.newSession(key, s, r)
	own.ready = make(chan struct{})
	n, done, err = h.sessions.addOnce(r.Context(), own)
	if n != own || err != nil {
		return n, done, err
	}
	defer close(own.ready)
	if !begin(own) {
		h.sessions.end(own)
		return own, done, nil
	}
	h.sessions.attach(own)
	s.AssumeRead(own.client)
	h.sessions.later(func(context.Context) { s.SendLogLevel(own.client) })
	return own, done, nil
}

// EndSession closes a client session that the client has ended. Nobody can continue it.
func (h *HTTP) EndSession(n *Session) {
	n.waitReady()
	n.server.Remove(n.client)
	h.sessions.end(n)
}

// waitReady waits until a session that is continued can be used.
func (n *Session) waitReady() {
	if n.ready != nil {
		<-n.ready
	}
}

// Key returns the key of the client session in the table. It is a secret: without Replicas,
// it is the ID that the client has.
func (n *Session) Key() string { return n.id }

// Server returns the server that the client session uses.
func (n *Session) Server() *server.Server { return n.server }

// Client returns the client of the session.
func (n *Session) Client() *server.Client { return n.client }

// Copy returns what Replicas.Share has returned, nil for legacy SSE.
func (n *Session) Copy() Copy { return n.copy }

// Sender returns a hash of who may use the client session.
func (n *Session) Sender() [sha256.Size]byte { return n.sender.sum() }

// Sender returns a hash of who has sent a request.
func Sender(r *http.Request) [sha256.Size]byte { return senderOf(r).sum() }

// Stream returns the GET stream, nil if the client has none here.
func (n *Session) Stream() *Stream {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.getStream
}

// EndStream ends a GET stream of the client session.
func (n *Session) EndStream(s *Stream) {
	n.mu.Lock()
	if n.getStream == s {
		n.getStream = nil
	}
	n.mu.Unlock()
	s.end(nil)
}

// IsBusy reports whether the client has an open request or stream here.
func (n *Session) IsBusy() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.busy > 0
}

package front

import (
	"crypto/sha256"
	"net/http"
	"sync"
	"time"

	"mcpx/internal/unread"
	"mcpx/server"
	"mcpx/server/access"
)

// session is one client session.
type session struct {
	id     string
	server *server.Server
	client *server.Client
	sender sender // of the request that opened it; requests of others may not use the session
	unread *unread.Account

	// With a session key. The ID that the client has is sealed.
	replicas *replicas     // nil: no other replica can have a copy
	until    time.Time     // the sealed ID is valid until then
	ready    chan struct{} // closed when the session can be used; nil: at once

	transport transport
	ending    chan struct{} // nil: open; closed when the session has left the table; guarded by sessions.mu

	mu        sync.Mutex // locked after sessions.mu
	used      time.Time
	busy      int        // open requests and streams
	getStream *stream    // carries messages that belong to no call; nil if the client has not opened it
	newest    streamMark // of the newest GET stream that this replica knows
	calls     int        // with legacy SSE: calls whose responses getStream will carry
	draining  bool       // getStream ends when calls is 0

	offered map[string]*time.Timer // requests to the client that were offered to other replicas, by ID
}

// transport is a transport that has client sessions.
type transport int

const (
	streamableHTTP transport = iota
	legacySSE                // the GET stream carries all responses
)

// use counts a request or stream as open until done is called.
func (n *session) use() (done func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.busy++
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.busy--
		n.used = time.Now()
	}
}

// useLegacySSE makes the GET stream carry all responses. It is called before the session is
// in the table.
func (n *session) useLegacySSE() { n.transport, n.replicas = legacySSE, nil }

// isOver reports whether the session is closed.
func (n *session) isOver() bool { return n.client.Conn.Err() != nil }

// idleFor returns how long the session has had no open request or stream.
func (n *session) idleFor() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.busy > 0 {
		return 0
	}
	return time.Since(n.used)
}

// begin counts a call whose response the GET stream will carry; false if the stream has
// ended.
func (n *session) begin() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.isOver() || n.draining && n.calls == 0 {
		return false
	}
	n.calls++
	return true
}

// finish ends a call that begin counted.
func (n *session) finish() {
	n.mu.Lock()
	n.calls--
	last := n.draining && n.calls == 0
	n.mu.Unlock()
	if last {
		n.setStream(nil)
	}
}

// drain ends the client's subscription streams, and the GET stream as soon as it has no
// responses to carry.
func (n *session) drain() {
	n.client.End()
	n.mu.Lock()
	n.draining = true
	last := n.transport != legacySSE || n.calls == 0
	n.mu.Unlock()
	if last {
		n.setStream(nil)
	}
}

// send sends a message on the GET stream, which another replica may have. If there is none,
// the message is lost, which MCP allows: messages of a call are sent on the call's own stream.
func (n *session) send(message []byte) error {
	if s := n.stream(); s != nil {
		return s.Send(message)
	}
	if n.replicas != nil {
		return n.replicas.offer(n, message)
	}
	return errStreamClosed
}

// respond sends a response on the GET stream of a legacy SSE client. It never waits for the
// client. If there is no stream, the client is gone.
func (n *session) respond(response []byte) {
	if s := n.stream(); s != nil {
		s.sendResponse(response)
	}
}

func (n *session) stream() *stream {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.getStream
}

// setStream replaces the GET stream and ends the previous one. s may be nil. If the
// session is closed or draining, the new stream ends at once.
func (n *session) setStream(s *stream) {
	n.mu.Lock()
	previous, late := n.getStream, s != nil && (n.isOver() || n.draining && n.calls == 0)
	n.getStream = s
	switch {
	case late:
		n.getStream = nil
	case s != nil && n.replicas != nil:
		n.newest = streamMark{max(time.Now().UnixMicro(), n.newest.time+1), n.replicas.id}
	}
	n.mu.Unlock()
	if previous != nil {
		previous.end(nil)
	}
	if late {
		s.end(nil)
	}
}

// removeStream removes the GET stream, unless it was replaced.
func (n *session) removeStream(s *stream) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.getStream == s {
		n.getStream = nil
	}
}

// sender identifies the sender of requests: by the caller, who may get a new token, or by a
// hash of the credential if the caller has no name.
type sender struct {
	caller     string // ID
	credential [sha256.Size]byte
}

// senderOf returns the sender of a request.
func senderOf(r *http.Request) sender {
	if caller := access.CallerOf(r.Context()); caller != nil {
		return sender{caller: caller.ID}
	}
	return sender{credential: sha256.Sum256([]byte(r.Header.Get("Authorization")))}
}

// sum returns a hash of the sender.
func (s sender) sum() [sha256.Size]byte {
	return sha256.Sum256(append(s.credential[:], s.caller...))
}

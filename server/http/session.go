package httpfront

import (
	"context"
	"crypto/sha256"
	"net/http"
	"sync"
	"time"

	"mcpx/internal/unread"
	"mcpx/server"
	"mcpx/server/access"
)

// Session is one client session.
type Session struct {
	id     string
	server *server.Server
	client *server.Client
	sender sender // of the request that opened it; requests of others may not use the session
	unread *unread.Account

	copy  Copy          // nil: no other process can have a copy
	ready chan struct{} // closed when the session can be used; nil: at once

	transport transport
	ending    chan struct{} // nil: open; closed when the session has left the table; guarded by sessions.mu

	mu        sync.Mutex // locked after sessions.mu
	used      time.Time
	busy      int     // open requests and streams
	getStream *Stream // carries messages that belong to no call; nil if the client has not opened it
	calls     int     // with legacy SSE: calls whose responses getStream will carry
	draining  bool    // getStream ends when calls is 0
}

// transport is a transport that has client sessions.
type transport int

const (
	streamableHTTP transport = iota
	legacySSE                // the GET stream carries all responses
)

// Use counts a request or stream as open until done is called.
func (n *Session) Use() (done func()) {
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
func (n *Session) useLegacySSE() { n.transport, n.copy = legacySSE, nil }

// isOver reports whether the session is closed.
func (n *Session) isOver() bool { return n.client.Conn.Err() != nil }

// idleFor returns how long the session has had no open request or stream.
func (n *Session) idleFor() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.busy > 0 {
		return 0
	}
	return time.Since(n.used)
}

// begin counts a call whose response the GET stream will carry; false if the stream has
// ended.
func (n *Session) begin() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.isOver() || n.draining && n.calls == 0 {
		return false
	}
	n.calls++
	return true
}

// finish ends a call that begin counted.
func (n *Session) finish() {
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
func (n *Session) drain() {
	n.client.End()
	n.mu.Lock()
	n.draining = true
	last := n.transport != legacySSE || n.calls == 0
	n.mu.Unlock()
	if last {
		n.setStream(nil)
	}
}

// Send sends a message on the GET stream, which another process may have. If there is none,
// the message is lost, which MCP allows: messages of a call are sent on the call's own stream.
func (n *Session) Send(message []byte) error {
	if s := n.Stream(); s != nil {
		return s.Send(message)
	}
	if n.copy != nil {
		return n.copy.Send(message)
	}
	return errStreamClosed
}

// respond sends a response on the GET stream of a legacy SSE client. It never waits for the
// client. If there is no stream, the client is gone.
func (n *Session) respond(response []byte) {
	if s := n.Stream(); s != nil {
		s.sendResponse(response)
	}
}

// setStream replaces the GET stream and ends the previous one. s may be nil. If the
// session is closed or draining, the new stream ends at once.
func (n *Session) setStream(s *Stream) {
	n.mu.Lock()
	previous, late := n.getStream, s != nil && (n.isOver() || n.draining && n.calls == 0)
	n.getStream = s
	if late {
		n.getStream = nil
	}
	n.mu.Unlock()
	if previous != nil {
		previous.end(nil)
	}
	if late {
		s.end(nil)
	}
}

// removeStream removes the GET stream, unless it was replaced. If nothing else of the client is
// open, it has left; it may come back. Most programs do not close their session when they end.
func (n *Session) removeStream(s *Stream) {
	n.mu.Lock()
	isCurrent, isLast := n.getStream == s, n.busy == 1 // 1: the request of the stream itself
	if isCurrent {
		n.getStream = nil
	}
	n.mu.Unlock()
	if isCurrent && isLast {
		n.server.Left(n.client)
		if n.copy != nil {
			n.copy.Notify(context.Background(), Left)
		}
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

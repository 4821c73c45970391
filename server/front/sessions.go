package front

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"mcpx/internal/tasks"
	"mcpx/server"
	"mcpx/server/access"
)

// sessions is the table of client sessions. Its methods may be called concurrently.
type sessions struct {
	limit  int // of open sessions
	idle   time.Duration
	calls  int // limit per session: unfinished calls
	unread int // limit per session: bytes of unread responses
	tasks  tasks.Group
	ctx    context.Context // for the tasks
	cancel context.CancelFunc

	replicas *replicas // nil without a session key

	mu       sync.Mutex
	byID     map[string]*session
	leaving  map[string]chan struct{} // sessions that were removed from byID; closed when upstreams have forgotten them
	draining bool                     // mcpx stops
}

// session is one client session.
type session struct {
	id     string
	server *server.Server
	client *server.Client
	sender sender // of the request that opened it; requests of others may not use the session

	// With a session key. The ID that the client has is sealed.
	replicas *replicas
	until    time.Time     // the sealed ID is valid until then
	ready    chan struct{} // closed when the session can be used; nil: at once

	mu        sync.Mutex // locked after sessions.mu
	transport transport
	used      time.Time
	busy      int     // open requests and streams
	getStream *stream // carries messages that belong to no call; nil if the client has not opened it
	calls     int     // with legacy SSE: calls whose responses getStream will carry
	draining  bool    // getStream ends when calls is 0

	waiting map[string]context.CancelFunc // with legacy SSE: calls that wait for the quota, by request ID
	offered map[string]*time.Timer        // requests to the client that were offered to other replicas, by ID
}

// transport is a transport that has client sessions.
type transport int

const (
	streamableHTTP transport = iota
	legacySSE                // the GET stream carries all responses
)

var (
	errTooManySessions = errors.New("too many sessions are open (limits.sessions); try again later, or end some with DELETE")
	errSessionEnded    = errors.New("the session has ended")
	errNoSession       = errors.New("there is no such session; send initialize")
)

func newSessions(limit int, idle time.Duration) *sessions {
	ctx, cancel := context.WithCancel(context.Background())
	return &sessions{limit: limit, idle: idle, ctx: ctx, cancel: cancel, byID: map[string]*session{}, leaving: map[string]chan struct{}{}}
}

// open opens a session for the sender of a request.
func (s *sessions) open(to *server.Server, r *http.Request) (*session, error) {
	n := s.newSession(rand.Text(), to, r)
	if err := s.add(n); err != nil {
		return nil, err
	}
	s.attach(n)
	return n, nil
}

// newSession returns a session that is not in the table.
func (s *sessions) newSession(id string, to *server.Server, r *http.Request) *session {
	n := &session{id: id, server: to, sender: senderOf(r), used: time.Now(), replicas: s.replicas}
	if s.replicas != nil { // the client's own ID is sealed, so logs may show a part of this one
		n.until = time.Now().Add(sealedTime)
		n.client = to.NewSharedClient("http-"+id[:16], n.send)
	} else {
		n.client = to.NewClient("http-"+rand.Text()[:8], n.send) // logs show this ID; the session's own is a secret
	}
	n.client.Quota = server.NewQuota(s.calls, s.unread)
	n.client.As(callerOf(r, to))
	return n
}

// add adds a session to the table.
func (s *sessions) add(n *session) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byID) >= s.limit {
		return errTooManySessions
	}
	s.byID[n.id] = n
	return nil
}

// attach makes the client of a session known to upstreams.
func (s *sessions) attach(n *session) {
	n.server.Attach(n.client)
	if s.isDraining() {
		n.drain()
	}
}

func (s *sessions) isDraining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draining
}

// find returns the session with that ID and transport, nil if there is none or the
// sender of the request may not use it. The session cannot expire until done is called.
func (s *sessions) find(id string, t transport, r *http.Request) (n *session, done func()) {
	sender := senderOf(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	n = s.byID[id]
	if n == nil || n.sender != sender || !n.has(t) {
		return nil, nil
	}
	return n, n.use() // under s.mu, so that the session cannot expire in between
}

// get returns the session with that ID, nil if there is none.
func (s *sessions) get(id string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[id]
}

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

// has reports whether the session has that transport.
func (n *session) has(t transport) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.transport == t
}

// useLegacySSE makes the GET stream carry all responses. Its limit bounds the unread
// bytes: a response that does not fit waits, and its call stays in the quota.
func (n *session) useLegacySSE(calls int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.transport = legacySSE
	n.client.Quota = server.NewQuota(calls, 0)
}

// end closes a session: it cancels the calls, closes the streams and drops the stored
// results.
func (s *sessions) end(n *session) {
	s.mu.Lock()
	open := s.byID[n.id] == n
	if open {
		s.remove(n)
	}
	s.mu.Unlock()
	if open {
		s.forget(n)
	}
}

// remove removes a session from the table. The caller holds mu, and calls forget next.
func (s *sessions) remove(n *session) {
	delete(s.byID, n.id)
	s.leaving[n.id] = make(chan struct{})
}

// forget closes a session that was removed from the table.
func (s *sessions) forget(n *session) {
	n.client.End()
	n.client.Conn.Close(errSessionEnded)
	n.setStream(nil)
	n.server.Forget(n.client)
	isRunning := s.later(func(ctx context.Context) {
		defer s.left(n)
		n.server.Detach(ctx, n.client)
	})
	if !isRunning { // mcpx stops
		s.left(n)
	}
}

// left lets the session be continued, if it can be.
func (s *sessions) left(n *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.leaving[n.id])
	delete(s.leaving, n.id)
}

// later runs a task in the background. close cancels it. It returns false after close.
func (s *sessions) later(task func(ctx context.Context)) bool {
	return s.tasks.Go(func() { task(s.ctx) })
}

// close cancels the background tasks and waits for them.
func (s *sessions) close() {
	s.cancel()
	s.tasks.Close()
}

// endAll closes every session.
func (s *sessions) endAll() {
	for _, n := range s.all() {
		s.end(n)
	}
}

// cancelAll cancels the calls of every session, and lets no more begin.
func (s *sessions) cancelAll(cause error) {
	for _, n := range s.all() {
		n.client.Conn.Close(cause)
	}
}

func (s *sessions) all() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.byID))
}

// run starts the background tasks of the table. close ends them.
func (s *sessions) run() {
	s.tasks.Go(s.expire)
	if s.replicas != nil {
		s.tasks.Go(func() { s.replicas.run(s.ctx) })
	}
}

// expire closes idle sessions until close is called.
func (s *sessions) expire() {
	tick := time.NewTicker(max(s.idle/10, time.Second))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-s.ctx.Done():
			return
		}
		s.mu.Lock()
		var expired []*session
		for _, n := range s.byID {
			if n.idleFor() > s.idle {
				expired = append(expired, n)
				s.remove(n)
			}
		}
		s.mu.Unlock()
		for _, n := range expired {
			s.forget(n)
		}
	}
}

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

// drain drains all sessions, including those that open later.
func (s *sessions) drain() {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	for _, n := range s.all() {
		n.drain()
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

// send sends a message on the GET stream, which another replica may have. If there is none
// the message is lost, which MCP allows: messages of a call are sent on the call's own stream.
func (n *session) send(message []byte) error {
	if s := n.stream(); s != nil {
		return s.Send(message)
	}
	if n.replicas != nil && n.has(streamableHTTP) {
		return n.replicas.offer(n, message)
	}
	return errStreamClosed
}

// respond sends a response on the GET stream of a legacy SSE client. It waits if the
// client has too much unread. If there is no stream, the client is gone.
func (n *session) respond(response []byte) {
	if s := n.stream(); s != nil {
		defer n.client.Quota.Hold(response)()
		_ = s.Push(response)
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

// sender identifies who sends requests: a caller, who may have a new token, or, for a caller
// without a name, the credential. It has a hash, so that the secret itself is not kept.
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

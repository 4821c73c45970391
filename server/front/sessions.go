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
)

// sessions are the clients of the HTTP front that have said initialize.
type sessions struct {
	most   int
	idle   time.Duration
	calls  int // limit per session: calls in flight
	unread int // limit per session: bytes of unread answers
	tasks  tasks.Group
	ctx    context.Context // context for detaching closed sessions
	cancel context.CancelFunc

	mu      sync.Mutex
	byID    map[string]*session
	leaving bool // the end has begun
}

// session is one of them: a conversation, and the stream on which the client
// hears what belongs to no call.
type session struct {
	id         string
	server     *server.Server
	client     *server.Client
	credential [sha256.Size]byte // of who opened it; nobody else may use it

	mu       sync.Mutex
	used     time.Time
	busy     int     // requests and streams that are open
	standing *stream // nil if the client has none open
	older    bool    // the standing stream carries the answers too
	calls    int     // whose answers will come on it
	leaving  bool    // it ends with the last of them

	waiting map[string]context.CancelFunc // calls of the legacy transport that wait for room, by request ID
}

var (
	errTooManySessions = errors.New("too many sessions are open (limits.sessions); try again later, or end some with DELETE")
	errSessionEnded    = errors.New("the session has ended")
)

func newSessions(most int, idle time.Duration) *sessions {
	ctx, cancel := context.WithCancel(context.Background())
	return &sessions{most: most, idle: idle, ctx: ctx, cancel: cancel, byID: map[string]*session{}}
}

// open starts a session for the sender of a request.
func (s *sessions) open(to *server.Server, r *http.Request) (*session, error) {
	n := &session{id: rand.Text(), server: to, credential: credential(r), used: time.Now()}
	n.client = to.NewClient("http-"+rand.Text()[:8], n.tell) // logs show this ID; the session's own is a secret
	n.client.Quota = server.NewQuota(s.calls, s.unread)
	if err := s.add(n); err != nil {
		return nil, err
	}
	to.Attach(n.client)
	if s.isLeaving() {
		n.leave()
	}
	return n, nil
}

// add makes a session one that requests can name.
func (s *sessions) add(n *session) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byID) >= s.most {
		return errTooManySessions
	}
	s.byID[n.id] = n
	return nil
}

func (s *sessions) isLeaving() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaving
}

// find is the session of a transport that a request names, if its sender may use
// it. The request counts as open until done: from the moment on in which the
// session is found, or it could expire in between.
func (s *sessions) find(id string, older bool, r *http.Request) (n *session, done func()) {
	sender := credential(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	n = s.byID[id]
	if n == nil || n.credential != sender || n.isOlder() != older {
		return nil, nil
	}
	return n, n.use() // a session's mutex is always taken after this one
}

// use counts something of the session as open until done.
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

// isOlder reports whether the session is of the older transport.
func (n *session) isOlder() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.older
}

// carryAnswers notes that answers come on the standing stream too. What is unread
// there is bounded by the stream: an answer that does not fit waits, and no call
// begins meanwhile.
func (n *session) carryAnswers(calls int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.older = true
	n.client.Quota = server.NewQuota(calls, 0)
}

// end ends a session: its calls are cancelled, its streams closed, and what was
// kept for it is dropped.
func (s *sessions) end(n *session) {
	s.mu.Lock()
	_, open := s.byID[n.id]
	delete(s.byID, n.id)
	s.mu.Unlock()
	if open {
		s.forget(n)
	}
}

// forget ends a session that nobody can find any more.
func (s *sessions) forget(n *session) {
	n.client.End()
	n.client.Conn.Close(errSessionEnded)
	n.listen(nil)
	n.server.Forget(n.client)
	s.later(func(ctx context.Context) { n.server.Detach(ctx, n.client) })
}

// later runs a task that close ends.
func (s *sessions) later(task func(ctx context.Context)) {
	s.tasks.Go(func() { task(s.ctx) })
}

// close waits for what still runs for sessions that have ended.
func (s *sessions) close() {
	s.cancel()
	s.tasks.Close()
}

// endAll ends every session.
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

// expire ends the sessions that nobody has used for long, until close.
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
		var old []*session
		for _, n := range s.byID {
			if n.idleFor() > s.idle {
				old = append(old, n)
				delete(s.byID, n.id)
			}
		}
		s.mu.Unlock()
		for _, n := range old {
			s.forget(n)
		}
	}
}

// isOver reports whether the session has ended.
func (n *session) isOver() bool { return n.client.Conn.Err() != nil }

// idleFor is how long nothing of the session was open.
func (n *session) idleFor() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.busy > 0 {
		return 0
	}
	return time.Since(n.used)
}

// begin notes a call whose answer comes on the standing stream; false if that has
// ended.
func (n *session) begin() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.isOver() || n.leaving && n.calls == 0 {
		return false
	}
	n.calls++
	return true
}

// finish notes that it has come.
func (n *session) finish() {
	n.mu.Lock()
	n.calls--
	last := n.leaving && n.calls == 0
	n.mu.Unlock()
	if last {
		n.listen(nil)
	}
}

// leave ends what would never end by itself, of sessions to come, too.
func (s *sessions) leave() {
	s.mu.Lock()
	s.leaving = true
	s.mu.Unlock()
	for _, n := range s.all() {
		n.leave()
	}
}

// leave ends the client's subscriptions, and the standing stream once it carries
// no answers any more.
func (n *session) leave() {
	n.client.End()
	n.mu.Lock()
	n.leaving = true
	last := !n.older || n.calls == 0
	n.mu.Unlock()
	if last {
		n.listen(nil)
	}
}

// tell sends a message on the standing stream. Without one it is lost, as MCP has
// it: what belongs to a call goes on the call's own stream.
func (n *session) tell(message []byte) error {
	if standing := n.stream(); standing != nil {
		return standing.Send(message)
	}
	return errStreamClosed
}

// reply sends an answer on it, and waits if the client has too much to read. Without
// its stream the client has gone.
func (n *session) reply(answer []byte) {
	if standing := n.stream(); standing != nil {
		defer n.client.Quota.Hold(answer)()
		_ = standing.Push(answer)
	}
}

func (n *session) stream() *stream {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.standing
}

// listen makes a stream the standing one, in place of the one before. One that
// comes when the session has ended, or is about to, ends at once.
func (n *session) listen(s *stream) {
	n.mu.Lock()
	before, late := n.standing, s != nil && (n.isOver() || n.leaving && n.calls == 0)
	n.standing = s
	n.mu.Unlock()
	if before != nil {
		before.end(nil)
	}
	if late {
		s.end(nil)
	}
}

// unlisten takes a stream back, if it is still the standing one.
func (n *session) unlisten(s *stream) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.standing == s {
		n.standing = nil
	}
}

// credential tells senders apart without keeping what they sent.
func credential(r *http.Request) [sha256.Size]byte {
	return sha256.Sum256([]byte(r.Header.Get("Authorization")))
}

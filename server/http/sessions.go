package httpfront

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"mcpx/config"
	"mcpx/internal/tasks"
	"mcpx/internal/unread"
	"mcpx/server"
)

// sessions is the table of client sessions. Its methods may be called concurrently.
type sessions struct {
	limits config.Limits
	unread *unread.Budget
	tasks  tasks.Group
	ctx    context.Context // for the tasks
	cancel context.CancelFunc

	replicas Replicas // nil: sessions are in this process alone

	mu       sync.Mutex
	byID     map[string]*Session
	draining bool // mcpx stops
}

var (
	errTooManySessions = errors.New("too many sessions are open (limits.sessions); try again later, or end some with DELETE")
	errSessionEnded    = errors.New("the session has ended")
)

func newSessions(limits config.Limits) *sessions {
	ctx, cancel := context.WithCancel(context.Background())
	return &sessions{
		limits: limits, unread: unread.NewBudget(limits.UnreadBytes),
		ctx: ctx, cancel: cancel, byID: map[string]*Session{},
	}
}

// open opens a session for the sender of a request.
func (s *sessions) open(to *server.Server, r *http.Request, t transport) (*Session, error) {
	n := s.newSession(rand.Text(), to, r)
	if t == legacySSE {
		n.useLegacySSE()
	}
	_, done, err := s.addOnce(r.Context(), n)
	if err != nil {
		return nil, err
	}
	defer done()
	s.attach(n)
	return n, nil
}

// newSession returns a session that is not in the table.
func (s *sessions) newSession(id string, to *server.Server, r *http.Request) *Session {
	n := &Session{id: id, server: to, sender: senderOf(r), used: time.Now()}
	if s.replicas != nil {
		n.client, n.copy = s.replicas.Share(n)
	} else {
		n.client = to.NewClient("http-"+rand.Text()[:8], n.Send) // logs show this ID; the session's own is a secret
	}
	n.client.Quota = server.NewQuota(s.limits.CallsPerClient, s.limits.UnreadBytes)
	n.unread = s.unread.NewAccount(s.limits.UnreadBytes, n.client.Quota.AddUnread)
	n.client.As(callerOf(r, to))
	return n
}

// addOnce adds a session to the table, unless a copy is there already. It returns the one
// that is in the table, which counts as used until done is called.
func (s *sessions) addOnce(ctx context.Context, own *Session) (n *Session, done func(), err error) {
	for {
		s.mu.Lock()
		n = s.byID[own.id]
		if n == nil && len(s.byID) < s.limits.Sessions {
			n = own
			s.byID[own.id] = own
		}
		if n != nil && n.ending == nil {
			done = n.Use()
		}
		s.mu.Unlock()
		switch {
		case n == nil:
			return nil, nil, errTooManySessions
		case done != nil:
			return n, done, nil
		}
		select {
		case <-n.ending:
		case <-ctx.Done():
			return nil, nil, ErrNoSession // nobody waits for the response
		}
	}
}

// attach makes the client of a session known to upstreams.
func (s *sessions) attach(n *Session) {
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
func (s *sessions) find(id string, t transport, r *http.Request) (n *Session, done func()) {
	sender := senderOf(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	n = s.byID[id]
	if n == nil || n.ending != nil || n.sender != sender || n.transport != t {
		return nil, nil
	}
	return n, n.Use() // under s.mu, so that the session cannot expire in between
}

// get returns the session with that ID, nil if there is none.
func (s *sessions) get(id string) *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[id]
}

// end closes a session: it cancels the calls, closes the streams and drops the kept
// results.
func (s *sessions) end(n *Session) {
	s.mu.Lock()
	isOpen := s.byID[n.id] == n && n.ending == nil
	if isOpen {
		n.ending = make(chan struct{})
	}
	s.mu.Unlock()
	if isOpen {
		s.remove(n)
	}
}

// remove closes a session whose ending was set, and removes it from the table.
func (s *sessions) remove(n *Session) {
	n.client.End()
	n.client.Conn.Close(errSessionEnded)
	n.setStream(nil)
	if n.copy == nil { // nobody can continue it
		n.server.Remove(n.client)
	} else {
		n.server.Forget(n.client)
	}
	unsubscribe := n.server.Detach(n.client)
	s.mu.Lock()
	delete(s.byID, n.id)
	close(n.ending) // a session that is continued does not wait for upstreams
	s.mu.Unlock()
	s.later(unsubscribe)
}

// later runs a task in the background. close cancels it. After close, it does nothing.
func (s *sessions) later(task func(ctx context.Context)) {
	s.tasks.Go(func() { task(s.ctx) })
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

func (s *sessions) all() []*Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.byID))
}

// expire closes idle sessions until close is called.
func (s *sessions) expire() {
	tick := time.NewTicker(max(s.limits.SessionIdle/10, time.Second))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-s.ctx.Done():
			return
		}
		s.mu.Lock()
		var expired []*Session
		for _, n := range s.byID {
			if n.ending == nil && n.idleFor() > s.limits.SessionIdle {
				n.ending = make(chan struct{})
				expired = append(expired, n)
			}
		}
		s.mu.Unlock()
		for _, n := range expired {
			s.remove(n)
		}
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

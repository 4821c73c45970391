package registry

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"mcpx/config"
	"mcpx/internal/upstream"
	"mcpx/registry/live"
)

// sessionKey identifies an upstream session: a server's shared session, a client's own, or
// a caller's own.
type sessionKey struct {
	server string
	client string // owner or caller; empty for the shared session
}

// keyOf returns the key of the session for a client's requests. "isolation" in the config
// decides whether that is the shared one. A nil client is mcpx itself.
func keyOf(u *config.Upstream, c upstream.Client) sessionKey {
	switch {
	case c == nil:
	case u.Isolation == config.PerClient:
		return sessionKey{u.Name, c.Owner()}
	case u.Isolation == config.PerUser:
		return sessionKey{u.Name, userKey(u, c)}
	}
	return sessionKey{server: u.Name}
}

// keyOfSession returns the key of a session.
func keyOfSession(s *live.Session) sessionKey {
	if user := s.Supervisor().User(); user != "" {
		return sessionKey{s.Config.Name, user}
	}
	return keyOf(s.Config, s.Owner)
}

// keyFor is keyOf for a server by its name.
func (r *Registry) keyFor(server string, c upstream.Client) sessionKey {
	if u := r.Catalog().Upstream(server); u != nil {
		return keyOf(u.Config, c)
	}
	return sessionKey{server: server}
}

// sessionNow returns the session for a client's request if it can be used without
// waiting; nil otherwise.
func (r *Registry) sessionNow(server string, c upstream.Client) *live.Session {
	u := r.For(c).current(server)
	if u == nil {
		return nil
	}
	if u.Config.Isolation == config.PerClient && c != nil {
		return r.sessions.attached(keyOf(u.Config, c))
	}
	if u.State != live.Ready || !r.For(c).isOwn(u) {
		return nil
	}
	return u.Session
}

// sessionFor waits until the session for a client's request is open and returns it. The
// session is in use until release is called. A per-client session waits for the shared
// one only while the upstream's lists are unknown.
func (r *Registry) sessionFor(ctx context.Context, server string, c upstream.Client) (s *live.Session, release func(), err error) {
	for {
		u := r.Catalog().Upstream(server)
		isOwn := u != nil && u.Config.Isolation == config.PerClient && c != nil
		if !isOwn || !u.IsListed() {
			if u, err = r.For(c).ready(ctx, server); err != nil {
				return nil, nil, err
			}
		}
		if !isOwn {
			return u.Session, func() {}, nil
		}
		s, release, err = r.clientSession(ctx, u.Supervisor, c)
		if !errors.Is(err, live.ErrReplaced) {
			return s, release, err
		}
	}
}

// clientSessions is the table of per-client upstream sessions. Each is opened by the
// client's first call and closed when the client disconnects. A client without a client
// session never disconnects: its upstream session is closed after an idle minute.
type clientSessions struct {
	registry *Registry

	closing sync.WaitGroup

	mu     sync.Mutex
	byKey  map[sessionKey]*clientSession
	closed bool
}

// Limits for clients without a client session.
const (
	sessionlessIdle = time.Minute
	maxSessionless  = 32 // upstream sessions at a time
)

// lifetime decides when a per-client session is closed.
type lifetime int

const (
	untilDetached lifetime = iota // when its client disconnects
	untilIdle                     // for a client without a client session
)

// clientSession is the session of one client, or the attempt to open it.
type clientSession struct {
	supervisor *live.Supervisor
	client     upstream.Client
	idle       *time.Timer   // closes it; nil if Detach does
	using      int           // calls that use it or wait for it; guarded by the mutex of clientSessions
	opened     chan struct{} // closed when session or err is set
	session    *live.Session
	err        error
	failed     time.Time // when it could not be opened
}

// clientSession returns the client's own session to an upstream. If it has ended, a new
// one is opened. The session is in use until release is called.
func (r *Registry) clientSession(ctx context.Context, s *live.Supervisor, c upstream.Client) (_ *live.Session, release func(), err error) {
	l := untilIdle
	if r.clients.has(c) {
		l = untilDetached
	}
	p, err := r.sessions.acquire(ctx, s, c, l)
	if err != nil {
		return nil, nil, err
	}
	select {
	case <-p.opened:
		err = p.err
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		r.sessions.release(p)
		return nil, nil, err
	}
	return p.session, func() { r.sessions.release(p) }, nil
}

// acquire returns the session of a client, or starts to open one with that lifetime. The
// session is in use until release is called.
func (t *clientSessions) acquire(ctx context.Context, s *live.Supervisor, c upstream.Client, l lifetime) (*clientSession, error) {
	key := keyOf(s.Config(), c)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed, t.registry.ctx.Err() != nil:
		return nil, &live.Unavailable{Server: key.server, Reason: "mcpx is stopping"}
	case s.IsRetired():
		return nil, live.ErrReplaced
	case ctx.Err() != nil: // the client may be gone, and then nothing would close the session
		return nil, context.Cause(ctx)
	}
	p := t.byKey[key]
	switch {
	case p != nil && !p.isOver():
		p.using++
		return p, nil
	case p != nil && p.err != nil && time.Since(p.failed) < retryGrace: // calls in a row do not start it over and over
		return nil, p.err
	}
	if l == untilIdle && t.sessionless() >= maxSessionless {
		return nil, &live.Unavailable{Server: key.server, Reason: fmt.Sprintf(`%d clients without a session use it already; open a session (initialize), or set "isolation": "shared"`, maxSessionless)}
	}
	p = &clientSession{supervisor: s, client: c, using: 1, opened: make(chan struct{})}
	if l == untilIdle {
		p.idle = time.AfterFunc(sessionlessIdle, func() { t.expire(key, p) })
	}
	t.byKey[key] = p
	t.closing.Go(func() { p.run(t.registry) })
	return p, nil
}

// release drops one use. When none remain, the idle timer starts.
func (t *clientSessions) release(p *clientSession) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.using--; p.using == 0 && p.idle != nil {
		p.idle.Reset(sessionlessIdle)
	}
}

// attached returns the open session of an attached client; nil if there is none.
func (t *clientSessions) attached(key sessionKey) *live.Session {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.byKey[key]; p != nil && p.idle == nil && p.isOpen() {
		return p.session
	}
	return nil
}

// sessionless counts the upstream sessions of clients without a client session.
func (t *clientSessions) sessionless() (n int) {
	for _, p := range t.byKey {
		if p.idle != nil && !p.isOver() {
			n++
		}
	}
	return n
}

// expire closes a session whose idle timer has fired, unless it is in use again.
func (t *clientSessions) expire(key sessionKey, p *clientSession) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byKey[key] == p && p.using == 0 {
		t.remove(key)
	}
}

// remove forgets a session and closes it.
func (t *clientSessions) remove(key sessionKey) {
	p := t.byKey[key]
	delete(t.byKey, key)
	t.closing.Go(p.close)
}

// removeClient closes the sessions of a client.
func (t *clientSessions) removeClient(client string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key := range t.byKey {
		if key.client == client {
			t.remove(key)
		}
	}
}

// replace forgets the sessions that a supervisor opened, so that the next calls open new
// ones. Calls in flight may finish on the old sessions.
func (t *clientSessions) replace(s *live.Supervisor) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, p := range t.byKey {
		if p.supervisor == s {
			delete(t.byKey, key)
			t.closing.Go(p.drain)
		}
	}
}

// closeAll closes every session and waits for it.
func (t *clientSessions) closeAll() {
	t.mu.Lock()
	t.closed = true
	for key := range t.byKey {
		t.remove(key)
	}
	t.mu.Unlock()
	t.closing.Wait()
}

// has reports whether there is an open session with that key.
func (t *clientSessions) has(key sessionKey) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.byKey[key]
	return p != nil && p.isOpen()
}

// of returns the open sessions to a server.
func (t *clientSessions) of(server string) (sessions []*live.Session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, p := range t.byKey {
		if key.server == server && p.isOpen() {
			sessions = append(sessions, p.session)
		}
	}
	return sessions
}

// isOver reports whether the attempt to open the session failed, or the session has
// ended.
func (p *clientSession) isOver() bool {
	select {
	case <-p.opened:
		return !p.isOpen()
	default:
		return false
	}
}

// isOpen reports whether the session can be used.
func (p *clientSession) isOpen() bool {
	select {
	case <-p.opened:
		return p.err == nil && !p.session.IsOver()
	default:
		return false
	}
}

// run opens the session and waits until it is closed.
func (p *clientSession) run(r *Registry) {
	ready := p.open(r)
	close(p.opened)
	if p.session != nil {
		ready()
		<-p.session.Done()
		p.session.Close()
	}
}

// open opens the session, or sets err. ready must be called once clients can use it.
func (p *clientSession) open(r *Registry) (ready func()) {
	session, capabilities, err := p.supervisor.OpenFor(p.client)
	if err != nil {
		p.err = err
		if !errors.Is(err, live.ErrReplaced) {
			p.failed = time.Now()
		}
		return nil
	}
	p.session = session
	r.setFirstLevel(session, capabilities)
	r.restoreSubscriptions(session)() // before the first call, which may change a resource
	return func() { r.updateLevel(session, capabilities) }
}

// drain closes the session when its calls have ended.
func (p *clientSession) drain() {
	<-p.opened
	if p.session != nil {
		p.session.Drain()
		p.session.Close()
	}
}

// close closes the session once it is open.
func (p *clientSession) close() {
	<-p.opened
	if p.session != nil {
		p.session.Close()
	}
}

package registry

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"mcpx/config"
	"mcpx/internal/rawjson"
)

// isolated are the sessions of clients that do not share one: of upstreams with
// "isolation": "client". Each is opened on its client's first call, and ends
// with the client; that of clients without a session of their own, of whose end
// nobody hears, when it is not used for a while.
type isolated struct {
	closing sync.WaitGroup

	mu       sync.Mutex
	sessions map[owner]*private
	closed   bool
}

// What clients without a session get.
const (
	passingIdle = time.Minute
	maxPassing  = 32 // sessions of theirs at a time
)

type owner struct{ client, server string }

// private is a session of one client, or the attempt to open one.
type private struct {
	supervisor *supervisor
	client     Client
	idle       *time.Timer   // ends it; nil if its client does
	using      int           // calls that have it, or wait for it; guarded by isolated's mutex
	opened     chan struct{} // closed when session or err is there
	session    *Session
	err        error
	failed     time.Time // when it could not be opened
}

// private is the client's own session to an upstream, in use until release. A new
// one takes the place of one that has ended.
func (r *Registry) private(ctx context.Context, s *supervisor, c Client) (_ *Session, release func(), err error) {
	p, err := r.isolated.take(ctx, owner{c.Owner(), s.config.Name}, func() *private {
		return &private{supervisor: s, client: c, opened: make(chan struct{})}
	}, r.clients.has(c))
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
		r.isolated.release(p)
		return nil, nil, err
	}
	return p.session, func() { r.isolated.release(p) }, nil
}

// take is the session of an owner, or the attempt to open one, in use until
// release.
func (i *isolated) take(ctx context.Context, key owner, fresh func() *private, isAttached bool) (*private, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.closed:
		return nil, &Unavailable{Server: key.server, Reason: "mcpx is stopping"}
	case ctx.Err() != nil: // a client that has just left, perhaps: nobody would end it
		return nil, context.Cause(ctx)
	}
	p := i.sessions[key]
	switch {
	case p != nil && !p.over():
		p.using++
		return p, nil
	case p != nil && p.err != nil && time.Since(p.failed) < retryGrace: // calls in a row do not start it over and over
		return nil, p.err
	}
	if !isAttached && i.passing() >= maxPassing {
		return nil, &Unavailable{Server: key.server, Reason: fmt.Sprintf(`%d clients without a session use it already; open a session (initialize), or set "isolation": "shared"`, maxPassing)}
	}
	p = fresh()
	p.using = 1
	if !isAttached {
		p.idle = time.AfterFunc(passingIdle, func() { i.expire(key, p) })
	}
	i.sessions[key] = p
	i.closing.Go(p.open)
	return p, nil
}

// release ends a use. The while of a session that nobody uses begins then.
func (i *isolated) release(p *private) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if p.using--; p.using == 0 && p.idle != nil {
		p.idle.Reset(passingIdle)
	}
}

// passing counts the sessions that end by themselves.
func (i *isolated) passing() (n int) {
	for _, p := range i.sessions {
		if p.idle != nil && !p.over() {
			n++
		}
	}
	return n
}

// expire ends a session that was not used for a while.
func (i *isolated) expire(key owner, p *private) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.sessions[key] == p && p.using == 0 {
		delete(i.sessions, key)
		i.closing.Go(p.close)
	}
}

// over reports whether the session was opened and is of no more use.
func (p *private) over() bool {
	select {
	case <-p.opened:
		return !p.isOpen()
	default:
		return false
	}
}

// isOpen reports whether the session can be used.
func (p *private) isOpen() bool {
	select {
	case <-p.opened:
		return p.err == nil && p.session.ctx.Err() == nil
	default:
		return false
	}
}

// open opens the session and stays until it has ended, so that nothing of it is
// left.
func (p *private) open() {
	capabilities := p.connect()
	close(p.opened)
	if p.session != nil {
		p.supervisor.registry.relevel(p.session, capabilities)
		<-p.session.ctx.Done()
		p.session.Close()
	}
}

// connect opens the session, or says why not. It returns what the upstream can do.
func (p *private) connect() (capabilities []byte) {
	s := p.supervisor
	release, err := s.slot(s.registry.ctx)
	if err != nil {
		p.err = &Unavailable{Server: s.config.Name, Reason: "mcpx is stopping"}
		return nil
	}
	defer release()
	ctx, cancel := startupLimit(s.registry.ctx, s.config)
	defer cancel()
	session, hello, err := open(ctx, s.config, s.options, s.log, p)
	if err != nil {
		u := &Upstream{Name: s.config.Name}
		u.fail(s.config, err)
		p.err, p.failed = u.Unavailable(), time.Now()
		return nil
	}
	p.session = session
	capabilities = rawjson.Get(hello, "capabilities")
	s.registry.tellFirst(session, capabilities)
	s.registry.restore(session, scope(s.config, p.client))()
	return capabilities
}

// close ends the session once it is open.
func (p *private) close() {
	<-p.opened
	if p.session != nil {
		p.session.Close()
	}
}

// drop ends the sessions of a client.
func (i *isolated) drop(client string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for key, p := range i.sessions {
		if key.client == client {
			delete(i.sessions, key)
			i.closing.Go(p.close)
		}
	}
}

// has reports whether a client has an open session to an upstream.
func (i *isolated) has(c Client, server string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	p := i.sessions[owner{c.Owner(), server}]
	return p != nil && p.isOpen()
}

// of are the open sessions to an upstream.
func (i *isolated) of(server string) (sessions []*Session) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for key, p := range i.sessions {
		if key.server == server && p.isOpen() {
			sessions = append(sessions, p.session)
		}
	}
	return sessions
}

// closeAll ends every session and waits for it.
func (i *isolated) closeAll() {
	i.mu.Lock()
	i.closed = true
	for key, p := range i.sessions {
		delete(i.sessions, key)
		i.closing.Go(p.close)
	}
	i.mu.Unlock()
	i.closing.Wait()
}

// scope tells sessions apart for what is remembered of them.
func scope(c *config.Upstream, client Client) string {
	if c.Isolation == config.PerClient {
		return c.Name + "\x00" + client.Owner()
	}
	return c.Name
}

// only implements peer.
func (p *private) only() Client { return p.client }

// subscribed implements peer.
func (p *private) subscribed() []string {
	return p.supervisor.registry.clients.uris(scope(p.supervisor.config, p.client))
}

// level implements peer.
func (p *private) level() string { return p.supervisor.level() }

// caller implements peer. All calls on the session come from one owner.
func (p *private) caller(c Client) string { return c.Owner() }

// notified implements peer. Lists are the business of the shared session. A client
// without a session of its own is another one with each call.
func (p *private) notified(method string, params []byte, to []Client) {
	if len(to) == 0 {
		to = []Client{p.client}
	}
	if !strings.HasSuffix(method, "/list_changed") {
		p.supervisor.pass(method, params, to, scope(p.supervisor.config, p.client))
	}
}

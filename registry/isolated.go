package registry

import (
	"context"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/config"
	"mcpx/internal/rawjson"
)

// isolated are the sessions of clients that do not share one: of upstreams with
// "isolation": "client". Each is opened on its client's first call, and ends
// with the client.
type isolated struct {
	closing sync.WaitGroup

	mu       sync.Mutex
	sessions map[owner]*private
	closed   bool
}

type owner struct{ client, server string }

// private is a session of one client, or the attempt to open one.
type private struct {
	supervisor *supervisor
	client     Client
	opened     chan struct{} // closed when session or err is there
	session    *Session
	err        error
}

// private is the client's own session to an upstream. A new one takes the place
// of one that has ended.
func (r *Registry) private(ctx context.Context, s *supervisor, c Client) (*Session, error) {
	key := owner{c.ID(), s.config.Name}
	r.isolated.mu.Lock()
	if r.isolated.closed {
		r.isolated.mu.Unlock()
		return nil, &Unavailable{Server: key.server, Reason: "mcpx is stopping"}
	}
	p := r.isolated.sessions[key]
	if p == nil || p.over() {
		p = &private{supervisor: s, client: c, opened: make(chan struct{})}
		r.isolated.sessions[key] = p
		r.isolated.closing.Go(p.open)
	}
	r.isolated.mu.Unlock()
	select {
	case <-p.opened:
		return p.session, p.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
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
	p.connect()
	close(p.opened)
	if p.session != nil {
		<-p.session.ctx.Done()
		p.session.Close()
	}
}

func (p *private) connect() {
	s := p.supervisor
	ctx, cancel := startupLimit(s.registry.ctx, s.config)
	defer cancel()
	session, hello, err := open(ctx, s.config, s.options, s.log, p)
	if err != nil {
		u := &Upstream{Name: s.config.Name}
		u.fail(s.config, err)
		p.err = u.Unavailable()
		return
	}
	p.session = session
	s.registry.tellFirst(session, rawjson.Get(hello, "capabilities"))
	s.registry.restore(session, scope(s.config, p.client), rawjson.Get(hello, "capabilities"))
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
			go p.close()
		}
	}
}

// has reports whether a client has an open session to an upstream.
func (i *isolated) has(c Client, server string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	p := i.sessions[owner{c.ID(), server}]
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
		go p.close()
	}
	i.mu.Unlock()
	i.closing.Wait()
}

// scope tells sessions apart for what is remembered of them.
func scope(c *config.Upstream, client Client) string {
	if c.Isolation == config.PerClient {
		return c.Name + "\x00" + client.ID()
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

// notified implements peer. Lists are the business of the shared session.
func (p *private) notified(method string, params []byte, _ Client) {
	if !strings.HasSuffix(method, "/list_changed") && method != mcp.MethodNotificationSubscriptionsAcknowledged {
		p.supervisor.pass(method, params, p.client, scope(p.supervisor.config, p.client))
	}
}

package registry

import (
	"context"

	"mcpx/config"
	"mcpx/internal/upstream"
	"mcpx/registry/live"
)

// sessionKey identifies an upstream session: a server's shared session, a client's own, or
// a caller's own.
type sessionKey struct {
	server string
	owner  string // a client or caller; empty for the shared session
}

// keyOf returns the key of the session for a client's requests. "isolation" in the config
// decides whether that is the shared one. A nil client is mcpx itself.
func keyOf(u *config.Upstream, c upstream.Client) sessionKey {
	switch {
	case c == nil:
	case u.Isolation == config.PerClient:
		return sessionKey{u.Name, c.Owner()}
	case u.Isolation == config.PerUser:
		return sessionKey{u.Name, callerKey(u, c)}
	}
	return sessionKey{server: u.Name}
}

// keyOfSession returns the key of a session.
func keyOfSession(s *live.Session) sessionKey {
	return sessionKey{s.Config.Name, s.Supervisor().Owner()}
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
	v := r.forCalls(c)
	if u := v.current(server); u != nil && u.State == live.Ready && v.serves(u) {
		return u.Session
	}
	return nil
}

// sessionFor waits until the session for a client's request is open and returns it. A
// client's own session waits for the shared one only while the upstream's lists are unknown.
func (r *Registry) sessionFor(ctx context.Context, server string, c upstream.Client) (*live.Session, error) {
	if u := r.Catalog().Upstream(server); u != nil && u.Config.Isolation == config.PerClient && !u.IsListed() {
		if _, err := r.For(c).ready(ctx, server); err != nil {
			return nil, err
		}
	}
	u, err := r.forCalls(c).ready(ctx, server)
	if err != nil {
		return nil, err
	}
	return u.Session, nil
}

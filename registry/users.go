package registry

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"net/textproto"
	"slices"
	"sync"
	"time"

	"mcpx/config"
	"mcpx/internal/upstream"
	"mcpx/registry/live"
)

// users is the table of callers' own upstreams: those with isolation "user". Each is made
// by the caller's first use, with a supervisor and lists of its own. Its session is closed
// when nobody uses it for the idle time.
type users struct {
	mu    sync.Mutex
	byKey map[sessionKey]*userUpstream
}

// userUpstream is the upstream of one caller.
type userUpstream struct {
	supervisor *live.Supervisor
	base       *config.Upstream // without what is the caller's own
	headers    map[string]string
	used       time.Time
}

// Limits of callers' own upstreams.
const (
	maxUsers  = 1000             // upstreams
	usersIdle = 30 * time.Minute // an upstream that is idle for so long is forgotten
)

// userKey identifies the session of a caller: by its ID and the headers of its request that
// the upstream gets, so that nobody uses a session with the credentials of another. It is
// "" for a caller without a name, if there are no such headers.
func userKey(u *config.Upstream, c upstream.Client) string {
	if c == nil || c.Caller() == nil {
		return ""
	}
	caller := c.Caller()
	if len(u.ForwardHeaders) == 0 {
		return caller.ID
	}
	hash := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(u.ForwardHeaders)) {
		fmt.Fprintf(hash, "%q %q\n", name, caller.Headers[textproto.CanonicalMIMEHeaderKey(name)])
	}
	return fmt.Sprintf("%s\x00%x", caller.ID, hash.Sum(nil))
}

// current returns the upstream that serves a client: the one in the catalog, or the
// caller's own, if there is one already. It is nil for an unknown name.
func (v View) current(name string) *live.Upstream {
	u := v.registry.Catalog().Upstream(name)
	if u == nil || u.Config.Isolation != config.PerUser {
		return u
	}
	if own := v.registry.users.find(keyOf(u.Config, v.client)); own != nil {
		return own.Upstream()
	}
	return u
}

// find returns the supervisor of a caller's own upstream; nil if there is none.
func (t *users) find(key sessionKey) *live.Supervisor {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own := t.byKey[key]; own != nil {
		own.used = time.Now()
		return own.supervisor
	}
	return nil
}

// ensureOwn makes the caller's own upstream if a server needs one and there is none.
func (v View) ensureOwn(name string) error {
	r := v.registry
	u := r.Catalog().Upstream(name)
	if u == nil || u.Config.Isolation != config.PerUser {
		return nil
	}
	key := keyOf(u.Config, v.client)
	if key.client == "" && len(u.Config.ForwardHeaders) == 0 || r.users.find(key) != nil {
		return nil
	}
	id, headers := "", map[string]string(nil)
	if v.client != nil && v.client.Caller() != nil {
		id, headers = v.client.Caller().ID, v.client.Caller().Headers
	}
	own, err := u.Config.ForCaller(id, headers)
	if err != nil {
		return &live.Unavailable{Server: name, Reason: err.Error()}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.addOwn(key, own, &userUpstream{base: u.Config, headers: headers, used: time.Now()})
}

// addOwn starts a caller's own upstream, unless there is one. The caller holds r.mu.
func (r *Registry) addOwn(key sessionKey, c *config.Upstream, own *userUpstream) error {
	r.users.mu.Lock()
	defer r.users.mu.Unlock()
	switch {
	case r.users.byKey[key] != nil:
		return nil
	case !r.isRunning || r.ctx.Err() != nil:
		return &live.Unavailable{Server: key.server, Reason: "mcpx is stopping"}
	}
	r.forgetUnused()
	if len(r.users.byKey) >= maxUsers {
		return &live.Unavailable{Server: key.server, Reason: fmt.Sprintf("%d callers use servers of their own already; try again later", maxUsers)}
	}
	if r.users.byKey == nil {
		r.users.byKey = map[sessionKey]*userUpstream{}
	}
	own.supervisor = live.New(r.group, c, key.client)
	r.users.byKey[key] = own
	r.start(own.supervisor)
	return nil
}

// forgetUnused ends the upstreams of callers that are gone. The caller holds both mutexes.
func (r *Registry) forgetUnused() {
	for key, own := range r.users.byKey {
		if state := own.supervisor.Upstream().State; time.Since(own.used) > usersIdle && state != live.Ready && state != live.Starting {
			delete(r.users.byKey, key)
			r.end(own.supervisor)
		}
	}
}

// applyToUsers changes callers' own upstreams after a reload. Those whose session depends on
// what has changed are ended; the next use makes them again. The caller holds r.mu.
func (r *Registry) applyToUsers() {
	r.users.mu.Lock()
	defer r.users.mu.Unlock()
	for key, own := range r.users.byKey {
		base := r.supervisors[key.server]
		if base != nil && base.Config().Isolation == config.PerUser && own.base.KeepsSession(base.Config()) {
			if next, err := base.Config().ForCaller(own.supervisor.Config().Caller, own.headers); err == nil {
				own.base = base.Config()
				r.reconfigure(own.supervisor, next)
				continue
			}
		}
		delete(r.users.byKey, key)
		r.end(own.supervisor)
	}
}

// sessionsOf returns the open sessions of all callers to a server.
func (t *users) sessionsOf(server string) (sessions []*live.Session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, own := range t.byKey {
		if u := own.supervisor.Upstream(); key.server == server && u.State == live.Ready {
			sessions = append(sessions, u.Session)
		}
	}
	return sessions
}

// allSupervisors returns the supervisors of the upstreams in the catalog and of callers.
func (r *Registry) allSupervisors() (all []*live.Supervisor) {
	for _, u := range r.Catalog().Upstreams {
		all = append(all, u.Supervisor)
	}
	r.users.mu.Lock()
	defer r.users.mu.Unlock()
	for _, own := range r.users.byKey {
		all = append(all, own.supervisor)
	}
	return all
}

// isOwn reports whether an upstream may serve the client: with isolation "user" it must be
// the one of its caller.
func (v View) isOwn(u *live.Upstream) bool {
	return u.Config.Isolation != config.PerUser || u.Supervisor.User() == keyOf(u.Config, v.client).client
}

package registry

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"time"

	"mcpx/config"
	"mcpx/internal/link"
	"mcpx/internal/upstream"
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
	supervisor *supervisor
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
func (v View) current(name string) *Upstream {
	u := v.registry.Catalog().Upstream(name)
	if u == nil || u.config.Isolation != config.PerUser {
		return u
	}
	if own := v.registry.users.find(keyOf(u.config, v.client)); own != nil {
		return own.upstream.Load()
	}
	return u
}

// find returns the supervisor of a caller's own upstream; nil if there is none.
func (t *users) find(key sessionKey) *supervisor {
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
	if u == nil || u.config.Isolation != config.PerUser {
		return nil
	}
	key := keyOf(u.config, v.client)
	if key.client == "" && len(u.config.ForwardHeaders) == 0 || r.users.find(key) != nil {
		return nil
	}
	id, headers := "", map[string]string(nil)
	if v.client != nil && v.client.Caller() != nil {
		id, headers = v.client.Caller().ID, v.client.Caller().Headers
	}
	own, err := u.config.ForCaller(id, headers)
	if err != nil {
		return &Unavailable{Server: name, Reason: err.Error()}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := newSupervisor(r, own)
	s.user = key.client
	return r.addOwn(key, &userUpstream{supervisor: s, base: u.config, headers: headers, used: time.Now()})
}

// addOwn starts a caller's own upstream, unless there is one. The caller holds r.mu.
func (r *Registry) addOwn(key sessionKey, own *userUpstream) error {
	r.users.mu.Lock()
	defer r.users.mu.Unlock()
	switch {
	case r.users.byKey[key] != nil:
		return nil
	case !r.isRunning || r.ctx.Err() != nil:
		return &Unavailable{Server: key.server, Reason: "mcpx is stopping"}
	}
	r.forgetUnused()
	if len(r.users.byKey) >= maxUsers {
		return &Unavailable{Server: key.server, Reason: fmt.Sprintf("%d callers use servers of their own already; try again later", maxUsers)}
	}
	if r.users.byKey == nil {
		r.users.byKey = map[sessionKey]*userUpstream{}
	}
	r.users.byKey[key] = own
	r.start(own.supervisor)
	return nil
}

// forgetUnused ends the upstreams of callers that are gone. The caller holds both mutexes.
func (r *Registry) forgetUnused() {
	for key, own := range r.users.byKey {
		if state := own.supervisor.upstream.Load().State; time.Since(own.used) > usersIdle && state != Ready && state != Starting {
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
		if base != nil && base.config().Isolation == config.PerUser && own.base.KeepsSession(base.config()) {
			if next, err := base.config().ForCaller(own.supervisor.config().Caller, own.headers); err == nil {
				own.base = base.config()
				own.supervisor.reconfigure(next)
				continue
			}
		}
		delete(r.users.byKey, key)
		r.end(own.supervisor)
	}
}

// sessionsOf returns the open sessions of all callers to a server.
func (t *users) sessionsOf(server string) (sessions []*Session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, own := range t.byKey {
		if u := own.supervisor.upstream.Load(); key.server == server && u.State == Ready {
			sessions = append(sessions, u.session)
		}
	}
	return sessions
}

// allSupervisors returns the supervisors of the upstreams in the catalog and of callers.
func (r *Registry) allSupervisors() (all []*supervisor) {
	for _, u := range r.Catalog().Upstreams {
		all = append(all, u.supervisor)
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
func (v View) isOwn(u *Upstream) bool {
	return u.config.Isolation != config.PerUser || u.supervisor.user == keyOf(u.config, v.client).client
}

// needsHeaders returns why the upstream in the catalog cannot start if it needs headers of
// a client's request.
func (s *supervisor) needsHeaders() error {
	if s.user != "" || len(s.config().ForwardHeaders) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(s.config().ForwardHeaders))
	return &link.Failure{Reason: "needs headers of a client's request: " + strings.Join(names, ", ")}
}

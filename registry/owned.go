package registry

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/textproto"
	"sync"
	"time"

	"mcpx/config"
	"mcpx/registry/live"
	"mcpx/registry/upstream"
)

// ownedUpstreams is the table of upstreams with one owner. With isolation "client", a client
// has its own session. It uses the lists in the catalog, or its own lists if the views are strict.
// With isolation "user", a caller has its own session and lists. The first use creates an owned
// upstream, which starts like a lazy one.
type ownedUpstreams struct {
	mu    sync.Mutex
	byKey map[sessionKey]*ownedUpstream
}

// ownedUpstream is the upstream of one client or caller.
type ownedUpstream struct {
	supervisor *live.Supervisor
	client     upstream.Client // nil: it is a caller's
	isAttached bool            // the client is attached, so that Remove ends the upstream
	caller     string
	headers    map[string]string // of the caller's request
	used       time.Time
}

// Limits for owners that never disconnect.
const (
	maxCallers      = 1000             // upstreams of callers
	callersIdle     = 30 * time.Minute // an upstream that is stopped and unused for so long is removed
	maxSessionless  = 32               // upstreams of clients without a client session
	sessionlessIdle = time.Minute      // their sessions are closed when they are unused for so long
)

// callerKey identifies the session of a caller: by its ID and the headers of its request that
// the upstream gets, so that nobody uses a session with the credentials of another. It is
// "" for a caller without a name, if there are no such headers.
func callerKey(u *config.Upstream, c upstream.Client) string {
	if c == nil || c.Caller() == nil {
		return ""
	}
	caller := c.Caller()
	if len(u.ForwardHeaders) == 0 {
		return caller.ID
	}
	hash := sha256.New()
	for _, f := range u.ForwardHeaders {
		fmt.Fprintf(hash, "%q %q\n", f.Name, caller.Headers[textproto.CanonicalMIMEHeaderKey(f.Name)])
	}
	return fmt.Sprintf("%s\x00%x", caller.ID, hash.Sum(nil))
}

// owner returns who owns the upstream that serves the client; "" for the one in the catalog.
func (v View) owner(u *live.Upstream) string {
	if u.Config == nil || !u.ListsPerOwner() && !v.isForCalls {
		return ""
	}
	return keyOf(u.Config, v.client).owner
}

// serves reports whether an upstream is the one that serves the client.
func (v View) serves(u *live.Upstream) bool { return u.Supervisor.Owner() == v.owner(u) }

// current returns the upstream that serves the client: the one in the catalog, or its own, if
// there is one already. It is nil for an unknown name.
func (v View) current(name string) *live.Upstream {
	u := v.registry.Catalog().Upstream(name)
	if u == nil || v.owner(u) == "" {
		return u
	}
	if own := v.registry.owned.find(sessionKey{name, v.owner(u)}); own != nil {
		return own.Upstream()
	}
	return u
}

// ensureOwn creates the client's own upstream if it needs one and there is none. If the catalog
// changes meanwhile, the caller must try again.
func (v View) ensureOwn(ctx context.Context, name string) error {
	r := v.registry
	u := r.Catalog().Upstream(name)
	if u == nil {
		return nil
	}
	key := sessionKey{name, v.owner(u)}
	if key.owner == "" && len(u.Config.ForwardHeaders) == 0 || r.owned.find(key) != nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch now := r.Catalog().Upstream(name); {
	case now == nil || now.Supervisor != u.Supervisor || now.Config != u.Config:
		return nil
	case ctx.Err() != nil: // the client may be gone, and then nothing would end its upstream
		return context.Cause(ctx)
	}
	own := &ownedUpstream{used: time.Now()}
	if u.Config.Isolation == config.PerClient {
		own.client, own.isAttached = v.client, r.clients.has(v.client)
	} else {
		caller := upstream.CallerOf(v.client)
		own.caller, own.headers = caller.ID, caller.Headers
	}
	return r.addOwn(key, u.Supervisor, own)
}

// addOwn runs an upstream for its owner, unless there is one. base is the supervisor in the
// catalog. The caller holds r.mu.
func (r *Registry) addOwn(key sessionKey, base *live.Supervisor, own *ownedUpstream) error {
	r.endOwned((*ownedUpstream).isUnused)
	switch reason := r.owned.fullReason(own); {
	case r.owned.find(key) != nil:
		return nil
	case !r.isRunning || r.ctx.Err() != nil:
		return &live.Unavailable{Server: key.server, Reason: "mcpx is stopping"}
	case base.IsHeld():
		return &live.Unavailable{Server: key.server, Reason: live.HeldReason}
	case reason != "":
		return &live.Unavailable{Server: key.server, Reason: reason}
	}
	c, err := own.config(base.Config())
	if err != nil {
		return &live.Unavailable{Server: key.server, Reason: err.Error()}
	}
	own.supervisor = base.For(c, key.owner, own.client)
	if !r.tasks.Go(own.supervisor.Run) {
		return &live.Unavailable{Server: key.server, Reason: "mcpx is stopping"}
	}
	r.owned.mu.Lock()
	r.owned.byKey[key] = own
	r.owned.mu.Unlock()
	return nil
}

// config returns the config of the owner's upstream. base is the one in the file.
func (o *ownedUpstream) config(base *config.Upstream) (*config.Upstream, error) {
	if o.client == nil {
		return base.ForCaller(o.caller, o.headers)
	}
	own := *base
	own.Start, own.IdleStop = config.StartLazy, sessionlessIdle
	if o.isAttached {
		own.IdleStop = 0
	}
	return &own, nil
}

// isUnused reports whether the upstream is down and its owner seems to be gone.
func (o *ownedUpstream) isUnused() bool {
	idle := callersIdle
	if o.client != nil {
		idle = retryGrace
	}
	state := o.supervisor.Upstream().State
	return !o.isAttached && state != live.Ready && state != live.Starting && time.Since(o.used) > idle
}

// fullReason returns why there is no room for an upstream; "" if there is.
func (t *ownedUpstreams) fullReason(candidate *ownedUpstream) string {
	isSameKind := func(o *ownedUpstream) bool { return !o.isAttached && (o.client == nil) == (candidate.client == nil) }
	switch n := len(t.all(isSameKind)); {
	case candidate.isAttached:
	case candidate.client == nil && n >= maxCallers:
		return fmt.Sprintf("%d callers use servers of their own already; try again later", maxCallers)
	case candidate.client != nil && n >= maxSessionless:
		return fmt.Sprintf(`%d clients without a session use it already; open a session (initialize), or set "isolation": "shared"`, maxSessionless)
	}
	return ""
}

// find returns the supervisor of an owner's upstream; nil if there is none.
func (t *ownedUpstreams) find(key sessionKey) *live.Supervisor {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own := t.byKey[key]; own != nil {
		own.used = time.Now()
		return own.supervisor
	}
	return nil
}

// all returns the upstreams for which match returns true.
func (t *ownedUpstreams) all(match func(o *ownedUpstream) bool) (all []*ownedUpstream) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, own := range t.byKey {
		if match(own) {
			all = append(all, own)
		}
	}
	return all
}

// sessionsOf returns the open sessions of all owners to a server.
func (t *ownedUpstreams) sessionsOf(server string) (sessions []*live.Session) {
	for _, own := range t.all(func(o *ownedUpstream) bool { return o.supervisor.Config().Name == server }) {
		if u := own.supervisor.Upstream(); u.State == live.Ready {
			sessions = append(sessions, u.Session)
		}
	}
	return sessions
}

// endOwned ends the upstreams for which match returns true. Their next use creates them again.
// The caller holds r.mu.
func (r *Registry) endOwned(match func(o *ownedUpstream) bool) {
	for _, own := range r.owned.all(match) {
		r.owned.mu.Lock()
		delete(r.owned.byKey, sessionKey{own.supervisor.Config().Name, own.supervisor.Owner()})
		r.owned.mu.Unlock()
		r.end(own.supervisor)
	}
}

// abortOwned is endOwned, but fails the calls in flight.
func (r *Registry) abortOwned(match func(o *ownedUpstream) bool) {
	for _, own := range r.owned.all(match) {
		own.supervisor.Stop()
	}
	r.endOwned(match)
}

// basedOn returns a function that matches the upstreams of owners for one in the catalog.
func basedOn(s *live.Supervisor) func(o *ownedUpstream) bool {
	return func(o *ownedUpstream) bool { return o.supervisor.Base() == s }
}

// endClient ends the upstreams of a client. Its calls in flight fail.
func (r *Registry) endClient(c upstream.Client) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.abortOwned(func(o *ownedUpstream) bool { return o.client != nil && o.client.Owner() == c.ID() })
}

// allSupervisors returns the supervisors of the upstreams in the catalog and of owners.
func (r *Registry) allSupervisors() (all []*live.Supervisor) {
	for _, u := range r.Catalog().Upstreams {
		all = append(all, u.Supervisor)
	}
	for _, own := range r.owned.all(func(*ownedUpstream) bool { return true }) {
		all = append(all, own.supervisor)
	}
	return all
}

package registry

import (
	"errors"
	"time"

	"mcpx/config"
	"mcpx/internal/link"
	"mcpx/internal/upstream"
)

// errReplaced ends a session whose upstream a reload has changed or removed.
var errReplaced = errors.New("the config of the server has changed")

// Limits for calls in flight on a session that was replaced.
const (
	drainTime = time.Minute
	drainTick = 20 * time.Millisecond // between checks whether they have ended
)

// Apply changes the upstreams to those of a profile. An upstream whose description,
// filters or time limits have changed keeps its session. Any other change replaces the
// session: the new one is opened first, and calls in flight may finish on the old one. A
// registry that stops is not changed.
func (r *Registry) Apply(p *config.Profile) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() != nil {
		return
	}
	previous := r.supervisors
	r.supervisors = map[string]*supervisor{}
	for i := range p.Upstreams {
		r.applyUpstream(&p.Upstreams[i], previous[p.Upstreams[i].Name])
	}
	catalog := &Catalog{byName: map[string]*Upstream{}}
	for i := range p.Upstreams {
		u := r.supervisors[p.Upstreams[i].Name].upstream.Load()
		catalog.Upstreams = append(catalog.Upstreams, u)
		catalog.byName[u.Name] = u
	}
	catalog.setPerUser()
	r.catalog.Store(catalog)
	r.applyToUsers()
	for name, s := range previous { // after Store: whoever waited for them looks there
		if r.supervisors[name] != s {
			r.end(s)
		}
		if r.supervisors[name] == nil {
			r.cancelReplacement(name)
		}
	}
	if len(previous) > 0 {
		r.changed.note(upstream.Listable...)
	}
}

// Close removes all upstreams, waits until their calls in flight have ended, and makes Run
// return.
func (r *Registry) Close() {
	r.Apply(&config.Profile{})
	r.tasks.Close()
	r.sessions.closeAll()
	r.stop()
}

// applyUpstream keeps the current supervisor of an upstream, or starts another. current is
// nil for a new upstream. The caller holds r.mu.
func (r *Registry) applyUpstream(c *config.Upstream, current *supervisor) {
	next := r.replacements[c.Name]
	switch {
	case current != nil && current.config().KeepsSession(c):
		r.cancelReplacement(c.Name)
		r.supervisors[c.Name] = current
		current.reconfigure(c)
	case next != nil && next.config().KeepsSession(c):
		r.supervisors[c.Name] = current
		next.reconfigure(c)
	case current != nil && current.upstream.Load().State == Ready:
		r.cancelReplacement(c.Name)
		r.supervisors[c.Name] = current
		r.replacements[c.Name] = newSupervisor(r, c)
		r.start(r.replacements[c.Name])
	default:
		r.cancelReplacement(c.Name)
		r.supervisors[c.Name] = newSupervisor(r, c)
		r.start(r.supervisors[c.Name])
	}
}

// start runs a supervisor, unless Run will do it. The caller holds r.mu.
func (r *Registry) start(s *supervisor) {
	if r.isRunning {
		r.tasks.Go(func() { s.run(s.ctx) })
	}
}

// end ends a supervisor that is not in the catalog any more. Its calls in flight may
// finish. The caller holds r.mu.
func (r *Registry) end(s *supervisor) {
	s.retire()
	r.sessions.replace(s)
	s.publishLocked(func(u *Upstream) { u.State = Stopped }) // wakes whoever waits for it
}

// cancelReplacement ends a replacement that has not started. The caller holds r.mu.
func (r *Registry) cancelReplacement(name string) {
	if next := r.replacements[name]; next != nil {
		delete(r.replacements, name)
		r.end(next)
	}
}

// publish changes the state of the supervisor's upstream and wakes the goroutines that
// wait for it.
func (s *supervisor) publish(change func(u *Upstream)) {
	s.registry.mu.Lock()
	defer s.registry.mu.Unlock()
	s.publishLocked(change)
}

// publishLocked is publish for callers that hold the mutex of the registry. The catalog
// shows a replacement when it has started or failed, or when the supervisor that it
// replaces is not ready any more.
func (s *supervisor) publishLocked(change func(u *Upstream)) {
	r := s.registry
	old := s.upstream.Load()
	u := *old
	u.changed = make(chan struct{})
	change(&u)
	s.upstream.Store(&u)
	current, next := r.supervisors[u.Name], r.replacements[u.Name]
	switch {
	case next == s && u.State != Starting, next != nil && current == s && u.State != Ready:
		delete(r.replacements, u.Name)
		r.supervisors[u.Name] = next
		r.catalog.Store(r.Catalog().with(next.upstream.Load()))
		r.changed.note(upstream.Listable...) // it may lack lists of the old one
		r.end(current)
	case current == s:
		r.catalog.Store(r.Catalog().with(&u))
	}
	close(old.changed)
}

// reconfigure applies changes that need no new session. The caller holds the mutex of the
// registry.
func (s *supervisor) reconfigure(c *config.Upstream) {
	if c.IdleStop != s.config().IdleStop {
		defer s.idleTimeSet.Notify()
	}
	s.publishLocked(func(u *Upstream) {
		c.KeepHiding(u.config)
		u.config, u.Description = c, c.Description
		u.Reconfigure(c)
	})
}

// drain waits until the calls of a session have ended, and closes its connection. Calls
// that take longer than drainTime fail.
func (s *Session) drain() {
	tick, limit := time.NewTicker(drainTick), time.NewTimer(drainTime)
	defer tick.Stop()
	defer limit.Stop()
	for {
		calls, isBusy := s.Activity()
		if !isBusy && s.EndIfUnused(calls, errReplaced) {
			return
		}
		select {
		case <-tick.C:
		case <-s.Done():
			return
		case <-s.supervisor.registry.ctx.Done():
			return
		case <-limit.C:
			s.End(&link.Failure{Reason: "its config has changed, and the call did not end within " + drainTime.String()})
			return
		}
	}
}

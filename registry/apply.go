package registry

import (
	"errors"

	"mcpx/config"
	"mcpx/registry/live"
	"mcpx/registry/upstream"
)

// Apply changes the upstreams to those of a profile. An upstream whose description, filters
// or time limits have changed keeps its session. Any other change replaces the
// session: the new one is opened first, and calls in flight may finish on the old one. A
// registry that stops is not changed.
func (r *Registry) Apply(p *config.Profile) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() != nil {
		return
	}
	previous := r.supervisors
	r.supervisors = map[string]*live.Supervisor{}
	for i := range p.Upstreams {
		r.applyUpstream(&p.Upstreams[i], previous[p.Upstreams[i].Name])
	}
	var upstreams []*live.Upstream
	for i := range p.Upstreams {
		upstreams = append(upstreams, r.supervisors[p.Upstreams[i].Name].Upstream())
	}
	r.catalog.Store(newCatalog(upstreams))
	for name, s := range previous { // after Store: whoever waited for them looks there
		if r.supervisors[name] != s {
			r.end(s)
		}
		if r.supervisors[name] == nil {
			r.cancelReplacement(name)
		}
	}
	if len(previous) > 0 {
		r.changed.Note(upstream.Listable...)
	}
}

// Close removes all upstreams, waits until their calls in flight have ended, and makes Run
// return.
func (r *Registry) Close() {
	r.Apply(&config.Profile{})
	r.tasks.Close()
	r.stop()
}

// applyUpstream keeps the current supervisor of an upstream, or starts another. current is
// nil for a new upstream. The caller holds r.mu.
func (r *Registry) applyUpstream(c *config.Upstream, current *live.Supervisor) {
	next := r.replacements[c.Name]
	switch {
	case current != nil && current.Config().KeepsSession(c):
		r.cancelReplacement(c.Name)
		r.supervisors[c.Name] = current
		r.reconfigure(current, c)
	case next != nil && next.Config().KeepsSession(c):
		r.supervisors[c.Name] = current
		r.reconfigure(next, c)
	case current != nil && current.Upstream().State == live.Ready:
		r.cancelReplacement(c.Name)
		r.supervisors[c.Name] = current
		r.replacements[c.Name] = live.New(r.group, c)
		r.start(r.replacements[c.Name])
	default:
		r.cancelReplacement(c.Name)
		r.supervisors[c.Name] = live.New(r.group, c)
		r.start(r.supervisors[c.Name])
	}
}

// start runs a supervisor, unless Run will do it. The caller holds r.mu.
func (r *Registry) start(s *live.Supervisor) {
	if r.isRunning {
		r.tasks.Go(s.Run)
	}
}

// end ends a supervisor that is not in the catalog any more, and those of owners that depend
// on it. Their calls in flight may finish. The caller holds r.mu.
func (r *Registry) end(s *live.Supervisor) {
	s.Retire()
	r.endOwned(basedOn(s))
	r.publish(s, func(u *live.Upstream) { u.State = live.Stopped }) // wakes whoever waits for it
}

// cancelReplacement ends a replacement that has not started. The caller holds r.mu.
func (r *Registry) cancelReplacement(name string) {
	if next := r.replacements[name]; next != nil {
		delete(r.replacements, name)
		r.end(next)
	}
}

// Publish implements live.Host.
func (r *Registry) Publish(s *live.Supervisor, change func(u *live.Upstream)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.publish(s, change)
}

// publish is Publish for callers that hold r.mu. The catalog shows a replacement when it has
// started or failed, or when the supervisor that it replaces is not ready any more.
func (r *Registry) publish(s *live.Supervisor, change func(u *live.Upstream)) {
	u, wake := s.Change(change)
	defer wake()
	current, next := r.supervisors[u.Name], r.replacements[u.Name]
	switch {
	case next == s && u.State != live.Starting, next != nil && current == s && u.State != live.Ready:
		delete(r.replacements, u.Name)
		r.supervisors[u.Name] = next
		r.catalog.Store(r.Catalog().with(next.Upstream()))
		r.changed.Note(upstream.Listable...) // it may lack lists of the old one
		r.end(current)
	case current == s:
		r.catalog.Store(r.Catalog().with(u))
	}
}

// reconfigure applies changes that need no new session. It changes the upstreams of owners
// first: once the upstream in the catalog has changed, clients may see the owners' lists. The
// caller holds r.mu.
func (r *Registry) reconfigure(s *live.Supervisor, c *config.Upstream) {
	for _, own := range r.owned.all(basedOn(s)) {
		if next, err := own.config(c); err == nil { // the headers that it needs have not changed
			r.reconfigure(own.supervisor, next)
		}
	}
	needsLists := s.NeedsLists(c)
	if needsLists {
		s.Relist()
	}
	r.publish(s, func(u *live.Upstream) {
		if needsLists {
			u.Inherit(s.Base().Upstream())
		}
		u.Apply(c)
	})
}

// ErrUnusable means that an upstream cannot be started or stopped, because its
// configuration cannot work.
var ErrUnusable = errors.New("the server cannot start with this configuration; change the config first")

// ErrUnknown means that there is no such upstream.
var ErrUnknown = errors.New("no such server")

// Restart ends the sessions of an upstream and opens a new one. Calls in flight fail.
func (r *Registry) Restart(name string) error {
	return r.control(name, func(s *live.Supervisor) {
		s.Restart()
		r.abortOwned(basedOn(s))
	})
}

// Stop ends the sessions of an upstream. Nothing starts it again, except Start and
// Restart.
func (r *Registry) Stop(name string) error {
	return r.control(name, func(s *live.Supervisor) {
		s.Stop()
		r.abortOwned(basedOn(s))
	})
}

// Start starts an upstream that was stopped, or that waits for its next start. A ready one
// stays as it is.
func (r *Registry) Start(name string) error { return r.control(name, (*live.Supervisor).Resume) }

// control changes what a supervisor does.
func (r *Registry) control(name string, change func(s *live.Supervisor)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.supervisors[name]
	switch {
	case s == nil:
		return ErrUnknown
	case s.Config().Err != nil:
		return ErrUnusable
	}
	s.Hurry()
	change(s)
	return nil
}

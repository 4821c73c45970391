package registry

import (
	"errors"

	"mcpx/registry/live"
)

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

// Stop ends the sessions of an upstream. Nothing starts it again, except Start and Restart.
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

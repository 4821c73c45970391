package registry

import (
	"context"
	"fmt"

	"mcpx/registry/link"
	"mcpx/registry/live"
)

// Account returns the account that signs in to a server.
func (v View) Account(ctx context.Context, server string) (live.Account, error) {
	server = v.known(server)
	if err := v.ensureOwn(ctx, server); err != nil {
		return nil, err
	}
	u := v.current(server)
	switch {
	case u == nil:
		return nil, &live.Unavailable{Server: server, Reason: "no such server"}
	case !v.serves(u):
		return nil, &live.Unavailable{Server: server, Reason: "its config has just changed; try again"}
	case u.Supervisor.Account() == nil:
		return nil, fmt.Errorf("%s has no sign-in", server)
	}
	return u.Supervisor.Account(), nil
}

// NoteSignIn notes that a person has begun to sign in to a server.
func (v View) NoteSignIn(server string) {
	if u := v.current(v.known(server)); u != nil {
		u.Supervisor.NoteSignIn()
	}
}

// Resume starts the upstreams that waited for a sign-in, which has ended now. is reports whether
// it was the sign-in of an account. When Resume returns, calls to them wait for the start.
func (r *Registry) Resume(ctx context.Context, is func(a live.Account) bool) {
	for _, s := range r.allSupervisors() {
		for u := s.Upstream(); u.NeedsPerson() && is(s.Account()); u = s.Upstream() {
			s.Start()
			if u.Superseded(ctx) != nil {
				return
			}
		}
	}
}

// SignedOut ends the sessions of upstreams whose sign-in was removed. is reports
// whether it was the sign-in of an account.
func (r *Registry) SignedOut(is func(a live.Account) bool) {
	for _, s := range r.allSupervisors() {
		if u := s.Upstream(); u.Session != nil && s.Account() != nil && is(s.Account()) {
			u.Session.End(&link.Failure{Reason: "somebody has signed out"})
		}
	}
}

// Background runs a task, whose context ends when the upstreams stop for good. Run waits for the
// task. If they have stopped, Background waits for it.
func (r *Registry) Background(task func(ctx context.Context)) {
	if !r.tasks.Go(func() { task(r.ctx) }) {
		task(r.ctx)
	}
}

package registry

import (
	"context"
	"fmt"
	"time"

	"mcpx/config"
	"mcpx/internal/auth"
	"mcpx/internal/link"
	"mcpx/registry/live"
)

// BeginSignIn starts to sign in to a server, with these scopes in addition to those that it
// asks for. It returns the address that the person must open. The browser is then sent to
// redirect.
func (v View) BeginSignIn(ctx context.Context, server, redirect string, scopes []string) (address string, err error) {
	account, err := v.account(ctx, server)
	if err != nil {
		return "", err
	}
	if address, err = account.Begin(ctx, redirect, scopes); err == nil {
		v.current(server).Supervisor.NoteSignIn()
	}
	return address, err
}

// BeginLocalSignIn is BeginSignIn for a person on this machine: the browser is sent back to
// a port of its own. The sign-in ends in the background.
func (v View) BeginLocalSignIn(ctx context.Context, server string, scopes []string) (address string, err error) {
	account, err := v.account(ctx, server)
	if err != nil {
		return "", err
	}
	signIn, err := account.BeginLoopback(ctx, server, scopes)
	if err != nil {
		return "", err
	}
	r := v.registry
	wait := func() {
		if err := signIn.Wait(r.ctx); err != nil {
			r.log.Warn().Err(err).Str("server", server).Msg("nobody has signed in")
			return
		}
		r.Resume(r.ctx, account)
	}
	if !r.tasks.Go(wait) {
		wait() // mcpx stops, so that it ends at once
	}
	v.current(server).Supervisor.NoteSignIn()
	return signIn.Address, nil
}

// Resume starts the upstreams that waited for a sign-in, which has ended now. When it
// returns, calls to them wait for the start.
func (r *Registry) Resume(ctx context.Context, account *auth.Account) {
	for _, s := range r.allSupervisors() {
		for u := s.Upstream(); u.NeedsPerson() && s.Account().Is(account); u = s.Upstream() {
			s.Start()
			if u.Superseded(ctx) != nil {
				return
			}
		}
	}
}

// SignOut removes the tokens of a server, and revokes them where that is possible.
func (v View) SignOut(ctx context.Context, server string) error {
	account, err := v.account(ctx, server)
	if err != nil {
		return err
	}
	_, err = account.Logout(ctx)
	for _, s := range v.registry.allSupervisors() {
		if u := s.Upstream(); u.Session != nil && s.Account() != nil && s.Account().Is(account) {
			u.Session.End(&link.Failure{Reason: "somebody has signed out"})
		}
	}
	return err
}

// SignInStatus returns what is known about the sign-in of a server; ok is false if it has
// none.
func (v View) SignInStatus(ctx context.Context, server string) (status auth.Status, ok bool) {
	account, err := v.account(ctx, server)
	if err != nil {
		return status, false
	}
	status, err = account.Status(ctx)
	return status, err == nil
}

// MaySignIn reports whether the client's caller may sign in to a server: for itself, or, if
// it may use everything, for all.
func (v View) MaySignIn(server string) bool {
	u := v.current(v.known(server))
	return v.rules() == nil || u != nil && u.Config.Isolation == config.PerUser
}

// account returns the account that signs in to a server.
func (v View) account(ctx context.Context, server string) (*auth.Account, error) {
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

// SignedIn waits until a person has signed in to a server and granted these scopes, or ctx
// ends.
func (v View) SignedIn(ctx context.Context, server string, scopes []string) error {
	tick := time.NewTicker(signInTick)
	defer tick.Stop()
	for {
		u := v.current(v.known(server))
		if u == nil {
			return &live.Unavailable{Server: server, Reason: "no such server"}
		}
		status, ok := v.SignInStatus(ctx, server)
		if ok && status.Has(scopes) && !u.NeedsPerson() {
			return nil
		}
		select {
		case <-tick.C:
		case <-u.Changed():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// signInTick is how often SignedIn looks for new access.
const signInTick = time.Second

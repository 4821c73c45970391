package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"mcpx/config"
	"mcpx/internal/auth"
	"mcpx/internal/link"
)

// asSignIn returns the Failure for which a person must act: sign in, or grant more access.
// It returns nil for other errors.
func asSignIn(err error) *link.Failure {
	var f *link.Failure
	if errors.As(err, &f) && (f.Cause == link.CauseSignIn || f.Cause == link.CauseAccess) {
		return f
	}
	return nil
}

// explainSignIn returns the reason of a failure with what a person can do.
func (r *Registry) explainSignIn(server string, f *link.Failure) string {
	how := "run mcpx auth login " + server
	if r.options.SignIn != nil {
		how = r.options.SignIn(server, f.Scopes)
	}
	return f.Reason + ": " + how + "; then call again"
}

// signInTime is how long a sign-in in a browser may take.
const signInTime = 10 * time.Minute

// awaitSignIn publishes that a person must act, and waits until somebody has signed in, in
// this process or another one, or until a call tries again.
func (s *supervisor) awaitSignIn(ctx context.Context, f *link.Failure) {
	s.wake.Clear()
	s.signing.Clear() // a sign-in from before has ended
	state := NeedsSignIn
	if f.Cause == link.CauseAccess {
		state = NeedsAccess
	}
	s.fail(state, f, 0)
	signedIn := make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		if s.account.Load().Wait(ctx) == nil {
			close(signedIn)
		}
	})
	s.awaitPerson(ctx, signedIn, func(u *Upstream) { u.State, u.Reason = state, s.registry.explainSignIn(u.Name, f) })
	cancel()
	watch.Wait()
}

// awaitPerson waits until somebody has signed in, or a call tries again, and publishes that
// the upstream starts. While a sign-in is open, it publishes that; giveUp sets the state
// after one that nobody finished.
func (s *supervisor) awaitPerson(ctx context.Context, signedIn <-chan struct{}, giveUp func(u *Upstream)) {
	var expired <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.signing:
			expired = time.After(signInTime)
			s.publish(func(u *Upstream) {
				u.State, u.Reason = SigningIn, "is being signed in: finish that in the browser; then call again"
			})
			continue
		case <-expired:
			expired = nil
			s.publish(giveUp)
			continue
		case <-s.wake:
		case <-signedIn:
		}
		s.publish(func(u *Upstream) { u.State, u.Reason = Starting, "" })
		return
	}
}

// Denied implements upstream.Host.
func (s *Session) Denied(f *link.Failure) error {
	if asSignIn(f) == nil {
		return nil
	}
	return s.supervisor.registry.unavailable(s.Config.Name, f)
}

// unavailable returns the error for a call that needs a person first.
func (r *Registry) unavailable(server string, f *link.Failure) *Unavailable {
	return &Unavailable{Server: server, Reason: r.explainSignIn(server, f), failure: f}
}

// BeginSignIn starts to sign in to a server, with these scopes in addition to those that it
// asks for. It returns the address that the person must open. The browser is then sent to
// redirect.
func (v View) BeginSignIn(ctx context.Context, server, redirect string, scopes []string) (address string, err error) {
	account, err := v.account(server)
	if err != nil {
		return "", err
	}
	if address, err = account.Begin(ctx, redirect, scopes); err == nil {
		v.current(server).supervisor.signing.Notify()
	}
	return address, err
}

// BeginLocalSignIn is BeginSignIn for a person on this machine: the browser is sent back to
// a port of its own. The sign-in ends in the background.
func (v View) BeginLocalSignIn(ctx context.Context, server string, scopes []string) (address string, err error) {
	account, err := v.account(server)
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
	v.current(server).supervisor.signing.Notify()
	return signIn.Address, nil
}

// Resume starts the upstreams that waited for a sign-in, which has ended now. When it
// returns, calls to them wait for the start.
func (r *Registry) Resume(ctx context.Context, account *auth.Account) {
	for _, s := range r.allSupervisors() {
		for u := s.upstream.Load(); u.NeedsPerson() && s.account.Load().Is(account); u = s.upstream.Load() {
			s.wake.Notify()
			if u.superseded(ctx) != nil {
				return
			}
		}
	}
}

// SignOut removes the tokens of a server, and revokes them where that is possible.
func (v View) SignOut(ctx context.Context, server string) error {
	account, err := v.account(server)
	if err != nil {
		return err
	}
	_, err = account.Logout(ctx)
	for _, s := range v.registry.allSupervisors() {
		if u := s.upstream.Load(); u.session != nil && s.account.Load() != nil && s.account.Load().Is(account) {
			u.session.End(&link.Failure{Reason: "somebody has signed out"})
		}
	}
	return err
}

// SignInStatus returns what is known about the sign-in of a server; ok is false if it has
// none.
func (v View) SignInStatus(ctx context.Context, server string) (status auth.Status, ok bool) {
	account, err := v.account(server)
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
	return v.rules() == nil || u != nil && u.config.Isolation == config.PerUser
}

// account returns the account that signs in to a server.
func (v View) account(server string) (*auth.Account, error) {
	server = v.known(server)
	if err := v.ensureOwn(server); err != nil {
		return nil, err
	}
	u := v.current(server)
	switch {
	case u == nil:
		return nil, &Unavailable{Server: server, Reason: "no such server"}
	case u.supervisor.account.Load() == nil:
		return nil, fmt.Errorf("%s has no sign-in", server)
	}
	return u.supervisor.account.Load(), nil
}

// SignedIn waits until a person has signed in to a server and granted these scopes, or ctx
// ends.
func (v View) SignedIn(ctx context.Context, server string, scopes []string) error {
	tick := time.NewTicker(signInTick)
	defer tick.Stop()
	for {
		u := v.current(v.known(server))
		if u == nil {
			return &Unavailable{Server: server, Reason: "no such server"}
		}
		status, ok := v.SignInStatus(ctx, server)
		isMissing := func(scope string) bool { return !slices.Contains(status.Scopes, scope) }
		if ok && status.SignedIn && !u.NeedsPerson() && !slices.ContainsFunc(scopes, isMissing) {
			return nil
		}
		select {
		case <-tick.C:
		case <-u.changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// MaxTimeout returns how long a call to a server may take in total.
func (r *Registry) MaxTimeout(server string) time.Duration { return r.limits(server).Total }

// signInTick is how often SignedIn looks for new access.
const signInTick = time.Second

// NeedsPerson reports whether the upstream cannot be used until a person signs in or grants
// more access. That is not a failure.
func (u *Upstream) NeedsPerson() bool { return u.failure != nil && u.State != Starting }

// hasNewSignIn reports whether somebody has signed in since the upstream needed it.
func (u *Upstream) hasNewSignIn(ctx context.Context) bool {
	return u.NeedsPerson() && u.supervisor.account.Load().Changed(ctx)
}

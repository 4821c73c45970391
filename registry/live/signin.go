package live

import (
	"context"
	"errors"
	"sync"
	"time"

	"mcpx/config"
	"mcpx/registry/link"
)

// Account is the sign-in to one upstream. Its methods may be called concurrently.
type Account interface {
	link.Account
	// Wait returns when somebody has signed in or out since the account last read its
	// credentials, in this process or another one. With scopes, it returns when a sign-in that
	// has them is stored.
	Wait(ctx context.Context, scopes []string) error
	// Changed reports whether Wait without scopes would return at once.
	Changed(ctx context.Context) bool
	// Has reports whether the credentials that the account uses have these scopes. It does not
	// wait.
	Has(scopes []string) bool
}

// asSignIn returns the Failure for which a person must act: sign in, or grant more access.
// It returns nil for other errors.
func asSignIn(err error) *link.Failure {
	var f *link.Failure
	if errors.As(err, &f) && (f.Cause == link.CauseSignIn || f.Cause == link.CauseAccess) {
		return f
	}
	return nil
}

// needsPerson reports whether a request was refused because a person must act first.
func needsPerson(err error) bool {
	denied, ok := errors.AsType[*Unavailable](err)
	return ok && denied.failure != nil
}

// explainSignIn returns the reason of a failure with what a person can do.
func (g *Group) explainSignIn(c *config.Upstream, f *link.Failure) string {
	how := "sign in to " + c.Name
	if g.options.SignIn != nil {
		how = g.options.SignIn(c, f.Scopes)
	}
	return f.Reason + ": " + how + "; then call again"
}

// signInTime is how long a sign-in in a browser may take.
const signInTime = 10 * time.Minute

// awaitSignIn publishes that a person must act, and waits until somebody has signed in, in
// this process or another one, or until a call tries again. It publishes that the upstream
// starts then. While a sign-in is open, it publishes that.
func (s *Supervisor) awaitSignIn(ctx context.Context, f *link.Failure) {
	s.wake.Clear()
	s.signing.Clear() // a sign-in from before has ended
	state := NeedsSignIn
	if f.Cause == link.CauseAccess {
		state = NeedsAccess
	}
	s.fail(state, f, 0)
	waiting, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel()
	watch.Go(func() {
		if s.Account().Wait(waiting, nil) == nil {
			s.wake.Notify()
		}
	})
	for expired := (<-chan time.Time)(nil); ; {
		select {
		case <-s.signing:
			expired = time.After(signInTime)
			s.publish(func(u *Upstream) {
				u.State, u.Reason = SigningIn, "is being signed in: finish that in the browser; then call again"
			})
		case <-expired: // nobody has finished it
			expired = nil
			s.publish(func(u *Upstream) { u.State, u.Reason = state, s.group.explainSignIn(u.Config, f) })
		case <-s.wake:
			s.publish(func(u *Upstream) { u.State, u.Reason = Starting, "" })
			return
		case <-ctx.Done():
			return
		}
	}
}

// Denied implements upstream.Host.
func (s *Session) Denied(f *link.Failure) error {
	if asSignIn(f) == nil {
		return nil
	}
	return &Unavailable{Server: s.Config.Name, Reason: s.supervisor.group.explainSignIn(s.Config, f), failure: f}
}

// NeedsPerson reports whether the upstream cannot be used until a person signs in or grants
// more access. That is not a failure.
func (u *Upstream) NeedsPerson() bool { return u.failure != nil && u.State != Starting }

// HasNewSignIn reports whether somebody has signed in since the upstream needed it.
func (u *Upstream) HasNewSignIn(ctx context.Context) bool {
	return u.NeedsPerson() && u.Supervisor.Account().Changed(ctx)
}

package executor

import (
	"context"
	"errors"

	"mcpx/registry/live"
	"mcpx/registry/upstream"
)

// SignIn asks the person who uses a client to do what a server needs first: sign in, or grant
// more access. It waits, and reports whether the call, which was not made, can be made now.
type SignIn func(ctx context.Context, c upstream.Client, needed *live.Unavailable) bool

// needsSignIn reports whether an error means that a person must act first.
func needsSignIn(err error) bool {
	e, ok := errors.AsType[*live.Unavailable](err)
	if ok {
		_, ok = e.NeedsSignIn()
	}
	return ok
}

// askToSignIn reports whether a call, which ended with err, can be made now because a person has
// signed in. A call asks once.
func (e *Executor) askToSignIn(ctx context.Context, c *Call, err error) bool {
	if e.signIn == nil || c.hasAsked || !needsSignIn(err) {
		return false
	}
	c.hasAsked = true
	needed, _ := errors.AsType[*live.Unavailable](err)
	return e.signIn(ctx, c.Client, needed)
}

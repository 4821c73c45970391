package registry

import (
	"fmt"
	"time"

	"mcpx/internal/link"
)

// Unavailable is returned for an upstream that has no session: it cannot be started,
// or waits for its next start.
type Unavailable struct {
	Server  string
	Reason  string
	Stderr  []string
	RetryAt time.Time

	failure *link.Failure // for which a person must act; nil if there is none
}

// NeedsSignIn reports whether a person must act first, and which access is missing; no
// scopes: the person must sign in. The call was not made.
func (e *Unavailable) NeedsSignIn() (scopes []string, ok bool) {
	if e.failure == nil {
		return nil, false
	}
	return e.failure.Scopes, true
}

// Why returns why a person must act, without what to do.
func (e *Unavailable) Why() string { return e.failure.Reason }

func (e *Unavailable) Error() string {
	if e.failure != nil {
		return e.Server + " " + e.Reason
	}
	return fmt.Sprintf("server %q is unavailable: %s", e.Server, e.Reason) + nextTry(e.RetryAt) + link.Tail(e.Stderr)
}

// Trouble returns why the upstream does not run, and when it is started again; empty if
// there is no trouble.
func (u *Upstream) Trouble() string { return u.Reason + nextTry(u.RetryAt) }

// nextTry says when an upstream is started again, to follow a reason.
func nextTry(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return fmt.Sprintf("; next try in %s", max(time.Until(at), 0).Round(time.Second))
}

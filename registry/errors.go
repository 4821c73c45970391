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
	text := fmt.Sprintf("server %q is unavailable: %s", e.Server, e.Reason)
	if !e.RetryAt.IsZero() {
		text += fmt.Sprintf("; next try in %s", max(time.Until(e.RetryAt), 0).Round(time.Second))
	}
	return text + link.Tail(e.Stderr)
}

// Lost is returned for a call whose session ended before the response came.
type Lost struct {
	Server string
	Reason string
	Stderr []string
}

func (e *Lost) Error() string {
	return fmt.Sprintf("server %q stopped during the call: %s%s", e.Server, e.Reason, unknownEffect) + link.Tail(e.Stderr)
}

// Unanswered is returned for a call without a usable response: the transport refused the
// call, or the upstream sent something else.
type Unanswered struct {
	Server  string
	Reason  string
	Unknown bool // the upstream may be working on the call
}

func (e *Unanswered) Error() string {
	text := fmt.Sprintf("the call to server %q failed: %s", e.Server, e.Reason)
	if e.Unknown {
		text += unknownEffect
	}
	return text
}

// unknownEffect is the end of errors for calls that the upstream may have done.
const unknownEffect = "; whether the call took effect is unknown, and mcpx does not repeat it"

// Timeout is returned for a call that reached one of its time limits.
type Timeout struct {
	Server string
	Key    string // the config key of the limit
	Limit  time.Duration
}

func (e *Timeout) Error() string {
	what := "no answer and no progress"
	if e.Key == "max_timeout" {
		what = "no answer"
	}
	return fmt.Sprintf("server %q: timed out: %s within %s (its %q); the call was cancelled", e.Server, what, e.Limit, e.Key)
}

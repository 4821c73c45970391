package registry

import (
	"fmt"
	"strings"
	"time"
)

// Unavailable is returned for an upstream that has no session: it does not
// start, or waits to be started again.
type Unavailable struct {
	Server  string
	Reason  string
	Stderr  []string
	RetryAt time.Time
}

func (e *Unavailable) Error() string {
	text := fmt.Sprintf("server %q is unavailable: %s", e.Server, e.Reason)
	if !e.RetryAt.IsZero() {
		text += fmt.Sprintf("; next try in %s", max(time.Until(e.RetryAt), 0).Round(time.Second))
	}
	return text + tail(e.Stderr)
}

// Lost is returned for a call whose session ended before the answer came.
type Lost struct {
	Server string
	Reason string
	Stderr []string
}

func (e *Lost) Error() string {
	return fmt.Sprintf("server %q stopped during the call: %s%s", e.Server, e.Reason, unknownEffect) + tail(e.Stderr)
}

// Unanswered is returned for a call that got no usable answer: the transport to
// the upstream refused it, or what came back is not an answer.
type Unanswered struct {
	Server  string
	Reason  string
	Unknown bool // the upstream may work on the call
}

func (e *Unanswered) Error() string {
	text := fmt.Sprintf("the call to server %q failed: %s", e.Server, e.Reason)
	if e.Unknown {
		text += unknownEffect
	}
	return text
}

// unknownEffect ends the text of errors after which nobody knows what a call did.
const unknownEffect = "; whether the call took effect is unknown, and mcpx does not repeat it"

// Timeout is returned for a call that ran into one of its limits.
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

// tail shows the last lines of a child's stderr below an error.
func tail(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return "\nlast lines of its stderr:\n  " + strings.Join(lines, "\n  ")
}

// Cause is the kind of failure that keeps an upstream from being ready, for
// those who say what to do about it.
type Cause string

// The causes. What has none of them is told by its reason alone.
const (
	CauseConfig      Cause = "config"      // it cannot be started as it is configured
	CauseCommand     Cause = "command"     // its program is missing or cannot be started
	CauseExit        Cause = "exit"        // its program ended
	CauseTimeout     Cause = "timeout"     // it was not ready in time
	CauseUnreachable Cause = "unreachable" // nobody answers at its url
	CauseAuth        Cause = "auth"        // it does not accept the headers
	CauseSignIn      Cause = "sign-in"     // it wants OAuth
)

// failure is why a link or a session ended, in words for a person.
type failure struct {
	reason string
	stderr []string
	cause  Cause
}

func (e *failure) Error() string { return e.reason + tail(e.stderr) }

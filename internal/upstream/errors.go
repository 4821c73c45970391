package upstream

import (
	"fmt"
	"time"

	"mcpx/internal/link"
)

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

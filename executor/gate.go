package executor

import (
	"context"
	"errors"

	"mcpx/registry/lists"
	"mcpx/registry/upstream"
)

// Gate decides whether a request is sent to its upstream. Every call passes all gates, in the
// order of Options.Gates, after its arguments were checked; so does every other request that is
// forwarded. An error refuses the request, and the client gets its text.
type Gate interface {
	// Check decides at once. If it needs time, it returns ErrMustWait.
	Check(a *Attempt) error
	// Wait decides about a request for which Check returned ErrMustWait. It may wait until the
	// context ends.
	Wait(ctx context.Context, a *Attempt) error
}

// Attempt is a request that is about to be sent.
type Attempt struct {
	Client    upstream.Client // nil for a program
	Server    string
	Method    string
	Name      string      // of the tool or prompt, or the URI of the resource
	Tool      *lists.Tool // nil unless the method is tools/call
	Arguments []byte      // of a call: as they will be sent; of another request: its params
}

// ErrMustWait means that a decision takes time. A call that gets it goes on in a goroutine of
// its own.
var ErrMustWait = errors.New("the call must wait")

// pass asks the gates from number passed on, and returns how many have let the request pass.
func (e *Executor) pass(ctx context.Context, a *Attempt, passed int, mayWait bool) (int, error) {
	for ; passed < len(e.gates); passed++ {
		err := e.gates[passed].Check(a)
		if mayWait && errors.Is(err, ErrMustWait) {
			err = e.gates[passed].Wait(ctx, a)
		}
		if err != nil {
			return passed, err
		}
	}
	return passed, nil
}

package work

import "context"

// Watch lets a loop notice that its context has ended. One goroutine uses it.
type Watch struct {
	ctx   context.Context
	steps int
	err   error
}

// watchSteps is how many steps a loop makes between two checks of the context.
const watchSteps = 512

// NewWatch returns a Watch for a context.
func NewWatch(ctx context.Context) *Watch { return &Watch{ctx: ctx} }

// IsOver counts a step, and reports whether the loop must end.
func (w *Watch) IsOver() bool {
	if w.steps++; w.steps%watchSteps == 0 {
		_ = w.Err()
	}
	return w.err != nil
}

// Err returns why the context has ended, nil if it has not.
func (w *Watch) Err() error {
	if w.err == nil && w.ctx.Err() != nil {
		w.err = context.Cause(w.ctx)
	}
	return w.err
}

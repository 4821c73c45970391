package work

import "context"

// Lease is the right to do a piece of work with its bytes. One goroutine uses it; Release may be called twice.
type Lease struct {
	budget  *Budget
	lane    *lane
	piece   Piece
	value   *value
	granted chan struct{} // closed when the piece may run; nil if it did not wait

	isHeld    bool // its bytes are counted
	isRunning bool // it counts as using a processor
}

// value is a value that pieces with the same key share.
type value struct {
	bytes     int
	waiting   int  // pieces that wait
	users     int  // pieces that run
	isCounted bool // its bytes are in use
	isBuilt   bool
	built     any

	turn chan struct{} // held by the piece that builds the value, or reads built
}

// Value returns the value of the piece's key. The first piece that needs it builds it, and
// others wait for that. If build fails, the next piece tries again. The value is dropped
// when no work with its key runs or waits. A piece without a key builds one for itself.
func (l *Lease) Value(ctx context.Context, build func() (any, error)) (any, error) {
	v := l.value
	if v == nil {
		return build()
	}
	select {
	case v.turn <- struct{}{}:
		defer func() { <-v.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if v.isBuilt {
		return v.built, nil
	}
	built, err := build()
	if err == nil {
		v.built, v.isBuilt = built, true
	}
	return built, err
}

// Idle gives the processor back: from now on, the work only waits or takes little time.
// The memory stays in use until Release.
func (l *Lease) Idle() {
	l.budget.mu.Lock()
	defer l.budget.mu.Unlock()
	l.stop()
	l.budget.grant(l.lane)
}

// stop gives the processor back. The caller holds mu.
func (l *Lease) stop() {
	if l.isRunning {
		l.isRunning = false
		l.lane.running--
	}
}

// Release ends the work, or the waiting for it.
func (l *Lease) Release() {
	l.budget.mu.Lock()
	defer l.budget.mu.Unlock()
	l.stop()
	l.lane.remove(l)
	if l.isHeld {
		l.isHeld = false
		l.lane.free(l)
	}
	l.budget.grant(l.lane)
}

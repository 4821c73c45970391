package tasks

// Signal wakes one goroutine. Any number of notices before it looks become one. It is
// used with a state that the sender changes first and the receiver reads after.
type Signal chan struct{}

// NewSignal returns a Signal.
func NewSignal() Signal { return make(Signal, 1) }

// Notify wakes the receiver. It never waits.
func (s Signal) Notify() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// Clear forgets a notice that nobody has received.
func (s Signal) Clear() {
	select {
	case <-s:
	default:
	}
}

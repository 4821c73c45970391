package live

import (
	"context"
	"errors"

	"mcpx/registry/link"
)

// errInterrupted is the end of a session, or of a start, that a person has asked for.
var errInterrupted = errors.New("interrupted")

// HeldReason is why an upstream that a person has stopped does not start.
const HeldReason = "stopped in the console; start it there"

// IsHeld reports whether a person has stopped the upstream.
func (s *Supervisor) IsHeld() bool { return s.isHeld.Load() }

// Stop ends the upstream session or the start that is under way. Nothing starts the
// upstream again, except Restart and Resume.
func (s *Supervisor) Stop() {
	s.isHeld.Store(true)
	s.interrupt()
}

// Restart ends the upstream session or the start that is under way, and starts the upstream
// again.
func (s *Supervisor) Restart() {
	s.isHeld.Store(false)
	s.interrupt()
}

// Resume starts an upstream that was stopped, or that waits for its next start.
func (s *Supervisor) Resume() {
	s.isHeld.Store(false)
	s.wake.Notify()
}

// interrupt ends the session or the start that is under way, or the wait for the next one.
func (s *Supervisor) interrupt() {
	if end := s.endAttempt.Load(); end != nil {
		(*end)(errInterrupted)
	}
	s.wake.Notify()
}

// attempt returns the context of one start and its session, which interrupt ends.
func (s *Supervisor) attempt(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, end := context.WithCancelCause(ctx)
	s.endAttempt.Store(&end)
	if s.isHeld.Load() { // stopped before interrupt could see the attempt
		end(errInterrupted)
	}
	return ctx, end
}

// isInterrupted reports whether a person has ended the attempt.
func isInterrupted(attempt context.Context) bool {
	return errors.Is(context.Cause(attempt), errInterrupted)
}

// cut closes a session at once. Its calls in flight fail.
func (s *Session) cut() {
	s.End(&link.Failure{Reason: "a person has stopped it"})
}

// publishInterrupted publishes that a person has stopped or restarted the upstream.
func (s *Supervisor) publishInterrupted() {
	s.publish(func(u *Upstream) {
		u.State, u.Session, u.isStale = Starting, nil, true
		u.Reason, u.Cause, u.Stderr = "", "", nil
		if s.isHeld.Load() {
			u.State, u.Reason = Stopped, HeldReason
		}
	})
}

// awaitRelease waits while a person has stopped the upstream.
func (s *Supervisor) awaitRelease(ctx context.Context) {
	if !s.isHeld.Load() {
		return
	}
	s.publishInterrupted()
	for s.isHeld.Load() && ctx.Err() == nil {
		select {
		case <-s.wake:
		case <-ctx.Done():
		}
	}
	s.publish(func(u *Upstream) { u.State, u.Reason = Starting, "" })
}

package registry

import (
	"context"
	"errors"

	"mcpx/internal/link"
)

// errInterrupted is the end of a session, or of a start, that a person has asked for.
var errInterrupted = errors.New("interrupted")

// ErrUnusable means that an upstream cannot be started or stopped, because its
// configuration cannot work.
var ErrUnusable = errors.New("the server cannot start with this configuration; change the config first")

// ErrUnknown means that there is no such upstream.
var ErrUnknown = errors.New("no such server")

// Restart ends the session of an upstream and opens a new one. Calls in flight fail.
func (r *Registry) Restart(name string) error {
	return r.control(name, func(s *supervisor) {
		s.isHeld.Store(false)
		s.interrupt()
	})
}

// Stop ends the session of an upstream. Nothing starts it again, except Start and Restart.
func (r *Registry) Stop(name string) error {
	return r.control(name, func(s *supervisor) {
		s.isHeld.Store(true)
		s.interrupt()
	})
}

// Start starts an upstream that was stopped, or that waits for its next start. A ready one
// stays as it is.
func (r *Registry) Start(name string) error {
	return r.control(name, func(s *supervisor) {
		s.isHeld.Store(false)
		s.wake.Notify()
	})
}

// control changes what a supervisor does.
func (r *Registry) control(name string, change func(s *supervisor)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.supervisors[name]
	switch {
	case s == nil:
		return ErrUnknown
	case s.config().Err != nil:
		return ErrUnusable
	}
	s.hurry.Notify()
	change(s)
	return nil
}

// interrupt ends the session or the start that is under way, or the wait for the next one.
func (s *supervisor) interrupt() {
	if end := s.endAttempt.Load(); end != nil {
		(*end)(errInterrupted)
	}
	s.registry.sessions.replace(s)
	s.wake.Notify()
}

// attempt returns the context of one start and its session, which interrupt ends.
func (s *supervisor) attempt(ctx context.Context) (context.Context, context.CancelCauseFunc) {
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
func (s *supervisor) publishInterrupted() {
	s.publish(func(u *Upstream) {
		u.State, u.session, u.isStale = Starting, nil, true
		u.Reason, u.Cause, u.Stderr = "", "", nil
		if s.isHeld.Load() {
			u.State, u.Reason = Stopped, "stopped in the console; start it there"
		}
	})
}

// awaitRelease waits while a person has stopped the upstream.
func (s *supervisor) awaitRelease(ctx context.Context) {
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

package live

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"time"

	"mcpx/config"
	"mcpx/registry/link"
)

// Run starts the upstream, and starts it again whenever its session ends, until it is
// retired. A lazy upstream, and one that was stopped because nobody used it, starts when a
// request needs it.
func (s *Supervisor) Run() {
	ctx := s.ctx
	if s.Config().Err != nil {
		s.fail(Failed, s.Config().Err, 0)
		<-ctx.Done()
		s.publish(func(u *Upstream) { u.State = Stopped })
		return
	}
	defer s.releaseFill()
	var b backoff
	rests := s.loadCache()
	for ctx.Err() == nil {
		if rests {
			s.rest(ctx)
		}
		s.awaitRelease(ctx)
		healthy, err := s.runSession(ctx)
		replaces := s.replacesForgotten(&b, healthy, err)
		if !replaces {
			s.releaseFill()
		}
		rests = !replaces && (errors.Is(err, errUnused) || s.Config().Start == config.StartLazy)
		switch {
		case ctx.Err() != nil, errors.Is(err, errUnused):
		case replaces:
			s.fail(Starting, err, 0)
		case errors.Is(err, errInterrupted):
			rests, b = false, backoff{}
			s.wake.Clear()
		case asSignIn(err) != nil:
			s.awaitSignIn(ctx, asSignIn(err))
			rests = false
		case rests && healthy == 0: // the start failed
			s.wake.Clear()
			s.fail(Waiting, err, 0)
		case rests:
			s.wake.Clear()
			s.fail(Idle, err, 0)
		default:
			s.backOff(ctx, err, b.next(healthy))
		}
	}
	s.publish(func(u *Upstream) { u.State, u.Reason = Stopped, "mcpx is stopping" })
}

// replacesForgotten reports whether the upstream has forgotten the session and gets a new one at
// once, because it runs. That happens MaxReplacements times in a row. A call that succeeds, or a
// minute of health, starts the count again. A lazy upstream that was ready waits for the next call.
func (s *Supervisor) replacesForgotten(b *backoff, healthy time.Duration, err error) bool {
	if s.hasServed.Swap(false) || healthy >= backoffReset {
		b.replaced = 0
	}
	switch {
	case !errors.Is(err, link.ErrSessionLost), healthy > 0 && s.Config().Start == config.StartLazy:
		return false
	case b.replaced == MaxReplacements:
		b.restarted = true
		return false
	}
	b.replaced++
	return true
}

// MaxReplacements is how many upstream sessions are opened at once, one after the other,
// for an upstream that forgets each of them.
const MaxReplacements = 3

// backOff publishes why the upstream is down, and waits until its next start.
func (s *Supervisor) backOff(ctx context.Context, err error, wait time.Duration) {
	if wait == 0 {
		s.fail(Starting, err, 0)
		return
	}
	s.fail(Waiting, err, wait)
	s.wake.Clear() // a request from before the failure does not count
	select {
	case <-time.After(wait):
	case <-s.wake: // a call needs it
	case <-ctx.Done():
	}
	s.publish(func(u *Upstream) { u.State, u.RetryAt = Starting, time.Time{} })
}

// runSession starts the upstream and waits until its session ends. It returns how long
// the upstream was ready, and why the session ended.
func (s *Supervisor) runSession(ctx context.Context) (healthy time.Duration, err error) {
	ctx, end := s.attempt(ctx)
	defer end(nil)
	session, err := s.start(ctx)
	if err != nil && isInterrupted(ctx) {
		s.publishInterrupted()
		return 0, errInterrupted
	}
	if err != nil {
		return 0, err
	}
	defer session.Close()
	ready := time.Now()
	err = s.serve(ctx, session)
	switch {
	case errors.Is(err, errUnused):
		s.publishIdle() // before Close: a request starts the next session
	case errors.Is(err, errInterrupted):
		s.publishInterrupted()
	}
	return max(time.Since(ready), 1), err
}

// serve keeps the lists of a ready upstream up to date until its session ends, and
// returns why it ended.
func (s *Supervisor) serve(ctx context.Context, session *Session) error {
	session.Background(func() { s.stopUnused(session) })
	var unread map[string]bool // changed lists that could not be read; the upstream reports a change only once
	var retry <-chan time.Time
	for {
		changed, err := s.refresh.Wait(ctx, session.Done(), retry)
		switch {
		case isInterrupted(ctx):
			session.cut()
			return errInterrupted
		case ctx.Err() != nil:
			session.Drain()
			return ctx.Err()
		case err != nil:
			return session.Err()
		}
		maps.Copy(changed, unread)
		unread, retry = s.relist(ctx, session, changed), nil
		if len(unread) > 0 {
			retry = time.After(relistTime)
		}
		select {
		case <-time.After(refreshPause):
		case <-session.Done():
		case <-ctx.Done():
		}
	}
}

// backoff decides how long to wait before an upstream is started again: not at all
// when a healthy one dies, after that 1, 2, 4 … 60 s. A minute of health resets it.
type backoff struct {
	restarted bool // the first restart, without a wait, was used
	failures  int
	replaced  int // forgotten sessions that were replaced without a wait
}

const (
	backoffMax   = time.Minute
	backoffReset = time.Minute
)

// next returns how long to wait after a failure. healthy is how long the upstream was
// ready, 0 if it never was.
func (b *backoff) next(healthy time.Duration) time.Duration {
	if healthy >= backoffReset {
		*b = backoff{}
	}
	if healthy > 0 && !b.restarted {
		b.restarted = true
		return 0
	}
	wait := min(time.Second<<b.failures, backoffMax)
	b.failures = min(b.failures+1, 6)
	return wait - rand.N(wait/5) // so that upstreams do not all start at the same time
}

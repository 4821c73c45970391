package live

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"mcpx/config"
	"mcpx/internal/link"
	"mcpx/internal/lockfile"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
	"mcpx/registry/lists"
)

// refreshPause keeps a flood of list_changed from becoming a flood of lists.
const refreshPause = 500 * time.Millisecond

// relistTime is the time until a list that could not be read is read again.
const relistTime = 30 * time.Second

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
	var b backoff
	rests := s.loadCache()
	for ctx.Err() == nil {
		if rests {
			s.rest(ctx)
		}
		s.awaitRelease(ctx)
		healthy, err := s.runSession(ctx)
		if s.isFill {
			s.endFill()
		}
		rests = errors.Is(err, errUnused) || s.Config().Start == config.StartLazy
		switch {
		case ctx.Err() != nil, errors.Is(err, errUnused):
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

// backOff publishes why the upstream is down, and waits until its next start.
func (s *Supervisor) backOff(ctx context.Context, err error, wait time.Duration) {
	if wait == 0 {
		s.fail(Starting, err, 0)
		return
	}
	s.fail(Waiting, err, wait)
	s.pause(ctx, wait)
	s.publish(func(u *Upstream) { u.State, u.RetryAt = Starting, time.Time{} })
}

// pause waits until the next start is due, or a call needs it.
func (s *Supervisor) pause(ctx context.Context, wait time.Duration) {
	s.wake.Clear() // a request from before the failure does not count
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.wake:
	case <-ctx.Done():
	}
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
	session.Go(func() { s.stopUnused(session) })
	for {
		changed, err := s.refresh.Wait(ctx, session.Done())
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
		s.relist(ctx, session, changed)
		pause := time.NewTimer(refreshPause)
		select {
		case <-pause.C:
		case <-session.Done():
		case <-ctx.Done():
		}
		pause.Stop()
	}
}

// relist reads the lists that have changed again. Calls that wait for them go on.
func (s *Supervisor) relist(ctx context.Context, session *Session, changed map[string]bool) {
	returned := s.refresh.Returned()
	declared := s.Upstream().Capabilities
	for _, k := range lists.Kinds {
		if changed[k.Capability] && !rawjson.IsNull(rawjson.Get(declared, k.Capability)) && !s.list(ctx, session, k) {
			return
		}
	}
	s.listed.Store(returned)
	if s.Upstream().IsBlocking() {
		s.publish(func(*Upstream) {}) // wakes the calls that wait
	}
}

// list reads one kind of list again and reports whether it could. If not, the last good
// list stays and the list is read again later: the upstream reports a change only once.
func (s *Supervisor) list(ctx context.Context, session *Session, k lists.Kind) bool {
	ctx, cancel := context.WithTimeout(ctx, s.Config().StartupTimeout)
	defer cancel()
	items, err := session.list(ctx, k)
	if session.IsOver() || errors.Is(err, context.Canceled) {
		return false // the end of the session is reported elsewhere
	}
	if err != nil {
		s.log.Warn().Str("error", s.Config().Redact(err.Error())).Msg("could not read a changed list; mcpx keeps the last one and tries again later")
		time.AfterFunc(relistTime, func() { s.refresh.Note(k.Capability) })
		return false
	}
	changed, before := false, s.Upstream().Sent(k)
	s.publish(func(u *Upstream) { changed, u.ListedAt = u.Set(k, items), time.Now() })
	s.compile(session)
	s.saveCache(session, nil)
	if changed { // after publish: notified clients list at once
		s.shared.host.ListsChanged(k.Capability)
	}
	s.log.Info().Str("method", k.Method).Int("items", len(items)).Msg("list changed")
	s.logReview()
	if k.Pinned == lockfile.Tools {
		s.noteChanges(before)
	}
	return true
}

// compile prepares the tools that are published, in the background.
func (s *Supervisor) compile(session *Session) {
	tools := s.Upstream().Tools
	if s.shared.options.Compile == nil || len(tools) == 0 {
		return
	}
	session.Go(func() {
		for _, t := range tools {
			if session.IsOver() {
				return
			}
			s.shared.options.Compile(t)
		}
	})
}

// fail publishes why the upstream is down.
func (s *Supervisor) fail(state State, err error, wait time.Duration) {
	s.publish(func(u *Upstream) {
		u.State, u.Session, u.RetryAt = state, nil, time.Time{}
		u.isStale = u.isStale || state == Idle || wait == 0 && state == Waiting
		s.explain(u, err)
		if wait > 0 {
			u.RetryAt = u.FailedAt.Add(wait)
		}
	})
	u := s.Upstream()
	s.log.Warn().Str("state", string(state)).Str("reason", u.Reason).Strs("stderr", u.Stderr).
		Dur("retry_ms", wait.Round(time.Millisecond)).Msg("upstream down")
}

// explain records in u why the upstream failed, redacted.
func (s *Supervisor) explain(u *Upstream, err error) {
	c := s.Config()
	u.Reason, u.Cause, u.Stderr, u.FailedAt = err.Error(), "", nil, time.Now()
	var f *link.Failure
	if errors.As(err, &f) {
		u.Reason, u.Cause, u.Stderr = f.Reason, f.Cause, f.Stderr
	}
	if c.Err != nil {
		u.Cause = link.CauseConfig
	}
	if u.failure = asSignIn(err); u.failure != nil {
		u.Reason = s.shared.explainSignIn(c.Name, u.failure)
	}
	u.Reason = plain.Line(c.Redact(u.Reason))
}

// backoff decides how long to wait before an upstream is started again: not at all
// when a healthy one dies, after that 1, 2, 4 … 60 s. A minute of health resets it.
type backoff struct {
	restarted bool // the first restart, without a wait, was used
	failures  int
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

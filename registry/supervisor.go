package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/rs/zerolog"
	"golang.org/x/sync/semaphore"

	"mcpx/config"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
)

// supervisor starts one upstream, and starts it again when it dies. Its run is
// the only one to say what state the upstream is in.
type supervisor struct {
	config   *config.Upstream
	options  Options
	log      zerolog.Logger
	slots    *semaphore.Weighted // connects at once
	registry *Registry
	wake     chan struct{} // capacity 1: a call asks for a start now
	refresh  changes       // lists that the upstream says have changed

	stderr atomic.Pointer[stderrTail] // of the child of the shared session; nil before its first start, and for a remote upstream
}

// slotTime is how long a start holds its slot: a few upstreams that hang must
// not keep all the others waiting.
const slotTime = 3 * time.Second

// refreshPause keeps a flood of list_changed from becoming a flood of lists.
const refreshPause = time.Second

// relistTime is when a list that could not be read again is tried once more.
const relistTime = 30 * time.Second

func (s *supervisor) run(ctx context.Context) {
	if s.config.Err != nil {
		s.fail(Failed, s.config.Err, 0)
		<-ctx.Done()
		s.publish(func(u *Upstream) { u.State = Stopped })
		return
	}
	var b backoff
	for {
		healthy, err := s.live(ctx)
		if ctx.Err() != nil {
			s.publish(func(u *Upstream) { u.State, u.Reason = Stopped, "mcpx is stopping" })
			return
		}
		wait := b.next(healthy)
		if wait == 0 {
			s.fail(Starting, err, 0)
			continue
		}
		s.fail(Waiting, err, wait)
		s.pause(ctx, wait)
		s.publish(func(u *Upstream) { u.State, u.RetryAt = Starting, time.Time{} })
	}
}

// pause waits for the next start, or until a call asks for it.
func (s *supervisor) pause(ctx context.Context, wait time.Duration) {
	select { // what was asked before the failure does not count
	case <-s.wake:
	default:
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.wake:
	case <-ctx.Done():
	}
}

// live is one life of the upstream, from its start to its end. It returns how
// long it was ready, and why it ended.
func (s *supervisor) live(ctx context.Context) (healthy time.Duration, err error) {
	session, err := s.start(ctx)
	if err != nil {
		return 0, err
	}
	defer session.Close()
	ready := time.Now()
	err = s.serve(ctx, session)
	return max(time.Since(ready), 1), err
}

// start opens a session and publishes it with all that the upstream lists, within
// the upstream's start-up limit.
func (s *supervisor) start(ctx context.Context) (*Session, error) {
	release, err := s.slot(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	begin := time.Now()
	ctx, cancel := startupLimit(ctx, s.config)
	defer cancel()
	options := s.options
	options.stderr = &s.stderr
	session, hello, err := open(ctx, s.config, options, s.log, s)
	if err != nil {
		return nil, err
	}
	if err := s.introduce(ctx, session, hello, begin); err != nil {
		return nil, session.abort(err)
	}
	return session, nil
}

// slot waits until a start may begin.
func (s *supervisor) slot(ctx context.Context) (release func(), err error) {
	if err := s.slots.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	free := sync.OnceFunc(func() { s.slots.Release(1) })
	early := time.AfterFunc(slotTime, free)
	return func() {
		early.Stop()
		free()
	}, nil
}

func startupLimit(ctx context.Context, c *config.Upstream) (context.Context, context.CancelFunc) {
	limit := &failure{cause: CauseTimeout, reason: fmt.Sprintf("not ready within %s (its \"startup_timeout\")", c.StartupTimeout)}
	return context.WithTimeoutCause(ctx, c.StartupTimeout, limit)
}

// open connects and shakes hands. It returns what the upstream answered to
// initialize.
func open(ctx context.Context, c *config.Upstream, o Options, log zerolog.Logger, p peer) (*Session, []byte, error) {
	link, err := dial(ctx, c, o, log)
	if err != nil {
		return nil, nil, err
	}
	session := newSession(c, link, log, p)
	session.tasks.Go(session.run)
	hello, err := session.Call(ctx, Request{Method: "initialize", Params: greeting(o.Version)})
	if wantsModern(err) {
		_ = session.abort(err)
		return openModern(ctx, c, o, log, p)
	}
	if err != nil {
		return nil, nil, session.abort(fmt.Errorf("initialize: %w", err))
	}
	if err := session.Notify("notifications/initialized", nil); err != nil {
		return nil, nil, session.abort(err)
	}
	if needsWatch(c) {
		session.tasks.Go(func() { session.watch(cmp.Or(o.PingEvery, pingEvery)) })
	}
	return session, hello, nil
}

// greeting is what mcpx says of itself. It claims what a client may be able to
// do, since an upstream's tools may depend on it; a client that cannot is
// answered for.
func greeting(version string) []byte {
	b := []byte(`{"protocolVersion":"` + mcp.LATEST_LEGACY_PROTOCOL_VERSION +
		`","capabilities":{"roots":{"listChanged":true},"sampling":{},"elicitation":{"form":{},"url":{}}},"clientInfo":{"name":"mcpx","version":`)
	return append(rawjson.AppendString(b, version), "}}"...)
}

// introduce lists what the upstream offers and publishes it.
func (s *supervisor) introduce(ctx context.Context, session *Session, hello []byte, begin time.Time) error {
	capabilities := rawjson.Get(hello, "capabilities")
	lists := make([][]Item, len(kinds))
	for i, k := range kinds {
		if rawjson.IsNull(rawjson.Get(capabilities, k.capability)) {
			continue
		}
		items, err := session.list(ctx, k)
		if err != nil && (k.capability == "tools" || session.ctx.Err() != nil || ctx.Err() != nil) {
			return err
		}
		if err != nil {
			s.log.Warn().Str("error", s.config.Redact(err.Error())).Msg("a list is left empty")
		}
		lists[i] = items
	}
	s.registry.tellFirst(session, capabilities)
	instructions, _ := rawjson.String(rawjson.Get(hello, "instructions"))
	instructions = s.config.Redact(instructions)
	took := max(time.Since(begin), 1) // 0: it was never ready
	restore := s.registry.restore(session, s.config.Name)
	var changed []string
	s.publish(func(u *Upstream) {
		u.State, u.Reason, u.Cause, u.Stderr, u.RetryAt = Ready, "", "", nil, time.Time{}
		u.StartupTime, u.Instructions, u.Capabilities, u.session = took, instructions, capabilities, session
		for i, k := range kinds {
			if k.set(u, lists[i]) {
				changed = append(changed, k.capability)
			}
		}
	})
	s.registry.changed.note(changed...)
	s.registry.relevel(session, capabilities)
	restore()
	u := s.registry.Catalog().Upstream(s.config.Name)
	s.log.Info().Int("tools", len(u.Tools)).Int("prompts", len(u.Prompts)).Int("resources", len(u.Resources)).
		Dur("ms", took.Round(time.Millisecond)).Msg("upstream ready")
	return nil
}

// abort ends a session that could not be made ready. It prefers what the link
// says of its end to what the call that noticed it says.
func (s *Session) abort(err error) error {
	// One call ended, but without it there is no session.
	var broke *Lost
	var failed *Unanswered
	switch {
	case errors.As(err, &failed):
		err = errors.New(failed.Reason)
	case errors.As(err, &broke) && s.ctx.Err() == nil:
		err = errors.New(broke.Reason)
	}
	s.Close()
	<-s.ctx.Done()
	var limit, end *failure
	var lost *Lost
	switch isEnd := errors.As(s.err, &end); {
	case errors.As(err, &lost), errors.Is(err, errOver):
		return s.err
	case !isEnd:
		return err
	case errors.As(err, &limit):
		return &failure{limit.reason, end.stderr, limit.cause}
	}
	return &failure{err.Error(), end.stderr, end.cause}
}

// serve keeps the lists of a ready upstream up to date until its session ends. It
// returns why it did.
func (s *supervisor) serve(ctx context.Context, session *Session) error {
	for {
		changed, err := s.refresh.wait(ctx, session.ctx.Done())
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return session.err
		}
		declared := s.registry.Catalog().Upstream(s.config.Name).Capabilities
		for _, k := range kinds {
			if changed[k.capability] && !rawjson.IsNull(rawjson.Get(declared, k.capability)) {
				s.list(ctx, session, k)
			}
		}
		pause := time.NewTimer(refreshPause)
		select {
		case <-pause.C:
		case <-session.ctx.Done():
		case <-ctx.Done():
		}
		pause.Stop()
	}
}

// list lists one kind again. If that fails the last good list stays, until a later
// try brings a better one: the upstream need not tell of the change twice.
func (s *supervisor) list(ctx context.Context, session *Session, k kind) {
	ctx, cancel := context.WithTimeout(ctx, s.config.StartupTimeout)
	defer cancel()
	items, err := session.list(ctx, k)
	if session.ctx.Err() != nil || errors.Is(err, context.Canceled) {
		return // the end, which is told elsewhere
	}
	if err != nil {
		s.log.Warn().Str("error", s.config.Redact(err.Error())).Msg("could not list again; the last list stays until a later try")
		time.AfterFunc(relistTime, func() { s.refresh.note(k.capability) })
		return
	}
	changed := false
	s.publish(func(u *Upstream) { changed = k.set(u, items) })
	if changed { // clients are told of what the catalog has: they list at once
		s.registry.changed.note(k.capability)
	}
	s.log.Info().Str("method", k.method).Int("items", len(items)).Msg("list changed")
}

// fail publishes why the upstream is down.
func (s *supervisor) fail(state State, err error, wait time.Duration) {
	s.publish(func(u *Upstream) {
		u.State, u.session, u.RetryAt = state, nil, time.Time{}
		u.fail(s.config, err)
		if state == Waiting {
			u.RetryAt = u.FailedAt.Add(wait)
		}
	})
	u := s.registry.Catalog().Upstream(s.config.Name)
	s.log.Warn().Str("state", string(state)).Str("reason", u.Reason).Strs("stderr", u.Stderr).
		Dur("retry_ms", wait.Round(time.Millisecond)).Msg("upstream down")
}

// fail notes why the upstream failed, in words that hold nothing secret.
func (u *Upstream) fail(c *config.Upstream, err error) {
	u.Reason, u.Cause, u.Stderr, u.FailedAt = err.Error(), "", nil, time.Now()
	var f *failure
	if errors.As(err, &f) {
		u.Reason, u.Cause, u.Stderr = f.reason, f.cause, f.stderr
	}
	if c.Err != nil {
		u.Cause = CauseConfig
	}
	u.Reason = plain.Line(c.Redact(u.Reason))
}

func (s *supervisor) publish(change func(u *Upstream)) { s.registry.publish(s.config.Name, change) }

package registry

import (
	"context"
	"errors"
	"fmt"
	"sync"
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
}

// slotTime is how long a start holds its slot: a few upstreams that hang must
// not keep all the others waiting.
const slotTime = 3 * time.Second

// refreshPause keeps a flood of list_changed from becoming a flood of lists.
const refreshPause = time.Second

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
	refresh := make(chan struct{}, 1)
	session, err := s.start(ctx, refresh)
	if err != nil {
		return 0, err
	}
	defer session.Close()
	ready := time.Now()
	err = s.serve(ctx, session, refresh)
	return max(time.Since(ready), 1), err
}

// start connects, shakes hands and lists, all within the upstream's start-up
// limit, and publishes the session.
func (s *supervisor) start(ctx context.Context, refresh chan struct{}) (*Session, error) {
	if err := s.slots.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	release := sync.OnceFunc(func() { s.slots.Release(1) })
	defer release()
	defer time.AfterFunc(slotTime, release).Stop()

	limit := &failure{reason: fmt.Sprintf("not ready within %s (its \"startup_timeout\")", s.config.StartupTimeout)}
	ctx, cancel := context.WithTimeoutCause(ctx, s.config.StartupTimeout, limit)
	defer cancel()
	begin := time.Now()
	link, err := dial(ctx, s.config, s.options, s.log)
	if err != nil {
		return nil, err
	}
	session := newSession(s.config.Name, link, s.log, func(method string, _ []byte) {
		if method == "notifications/tools/list_changed" {
			select {
			case refresh <- struct{}{}:
			default:
			}
		}
	})
	go session.run()
	if err := s.greet(ctx, session, begin); err != nil {
		session.Close()
		<-session.done
		return nil, explain(err, session)
	}
	return session, nil
}

// explain prefers what the link says of its end to what the call that noticed
// it says.
func explain(err error, s *Session) error {
	var limit, end *failure
	if !errors.As(s.err, &end) {
		return err
	}
	var lost *Lost
	switch {
	case errors.As(err, &lost), errors.Is(err, errOver):
		return end
	case errors.As(err, &limit):
		return &failure{limit.reason, end.stderr}
	}
	return &failure{err.Error(), end.stderr}
}

// greet makes the session ready for calls and publishes it with its tools.
func (s *supervisor) greet(ctx context.Context, session *Session, begin time.Time) error {
	result, err := session.Call(ctx, Request{Method: "initialize", Params: s.hello()})
	if err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	if err := session.Notify("notifications/initialized", nil); err != nil {
		return err
	}
	var tools []*Tool
	if !rawjson.IsNull(rawjson.Get(rawjson.Get(result, "capabilities"), "tools")) {
		if tools, err = session.tools(ctx, s.config.Tools.Allows); err != nil {
			return err
		}
	}
	instructions, _ := rawjson.String(rawjson.Get(result, "instructions"))
	took := time.Since(begin)
	s.publish(func(u *Upstream) {
		u.State, u.Reason, u.Stderr, u.RetryAt = Ready, "", nil, time.Time{}
		u.StartupTime, u.Instructions, u.session = took, instructions, session
		u.setTools(tools)
	})
	s.log.Info().Int("tools", len(tools)).Dur("ms", took.Round(time.Millisecond)).Msg("upstream ready")
	return nil
}

func (s *supervisor) hello() []byte {
	b := []byte(`{"protocolVersion":"` + mcp.LATEST_LEGACY_PROTOCOL_VERSION + `","capabilities":{},"clientInfo":{"name":"mcpx","version":`)
	return append(rawjson.AppendString(b, s.options.Version), "}}"...)
}

// serve keeps the tools of a ready upstream up to date until its session ends.
// It returns why it did.
func (s *supervisor) serve(ctx context.Context, session *Session, refresh <-chan struct{}) error {
	for {
		select {
		case <-refresh:
		case <-session.done:
			return session.err
		case <-ctx.Done():
			return ctx.Err()
		}
		s.refresh(ctx, session)
		pause := time.NewTimer(refreshPause)
		select {
		case <-pause.C:
		case <-session.done:
		case <-ctx.Done():
		}
		pause.Stop()
	}
}

// refresh lists the tools again; the last good list stays if that fails.
func (s *supervisor) refresh(ctx context.Context, session *Session) {
	ctx, cancel := context.WithTimeout(ctx, s.config.StartupTimeout)
	defer cancel()
	tools, err := session.tools(ctx, s.config.Tools.Allows)
	if err != nil {
		s.log.Warn().Err(err).Msg("could not list the tools again; the last list stays")
		return
	}
	s.publish(func(u *Upstream) { u.setTools(tools) })
	s.log.Info().Int("tools", len(tools)).Msg("tools changed")
}

// fail publishes why the upstream is down.
func (s *supervisor) fail(state State, err error, wait time.Duration) {
	reason, stderr := plain.Line(s.config.Redact(err.Error())), []string(nil)
	var f *failure
	if errors.As(err, &f) {
		reason, stderr = plain.Line(s.config.Redact(f.reason)), f.stderr
	}
	now := time.Now()
	s.publish(func(u *Upstream) {
		u.State, u.Reason, u.Stderr, u.FailedAt, u.RetryAt, u.session = state, reason, stderr, now, time.Time{}, nil
		if state == Waiting {
			u.RetryAt = now.Add(wait)
		}
	})
	s.log.Warn().Str("state", string(state)).Str("reason", reason).Strs("stderr", stderr).Dur("retry_ms", wait.Round(time.Millisecond)).Msg("upstream down")
}

func (s *supervisor) publish(change func(u *Upstream)) { s.registry.publish(s.config.Name, change) }

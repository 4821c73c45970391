package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/config"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/registry/link"
	"mcpx/registry/lists"
	"mcpx/registry/upstream"
)

// start opens a session and publishes it, within the start-up limit. It also reads the
// upstream's lists, unless clients see those of the shared session.
func (s *Supervisor) start(ctx context.Context) (*Session, error) {
	if err := cmp.Or(ctx.Err(), s.needsHeaders()); err != nil {
		return nil, err
	}
	release, err := s.turn(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	begin := time.Now()
	ctx, cancel := startupLimit(ctx, s.Config())
	defer cancel()
	session, handshake, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.publishReady(ctx, session, handshake, begin); err != nil {
		return nil, session.abort(err)
	}
	return session, nil
}

// dial opens a link and a session that uses it.
func (s *Supervisor) dial(ctx context.Context) (*Session, error) {
	resolved, err := s.Config().Resolve(ctx)
	if err != nil {
		return nil, &link.Failure{Reason: err.Error(), Cause: link.CauseConfig}
	}
	if resolved != s.Config() { // the client secret may be a stored one
		s.setAccount(resolved)
	}
	o := link.Options{Upstream: resolved, Account: s.Account(), Log: s.log, MessageBytes: s.group.options.MessageBytes, Intake: s.base.intake, Stderr: &s.stderr, Watcher: s.group.options.Watcher, InputSchema: s.inputSchema}
	l, err := link.Dial(ctx, o)
	if err != nil {
		return nil, err
	}
	session := newSession(s, l)
	session.Background(session.Run)
	return session, nil
}

// inputSchema returns the schema of a tool's arguments as the upstream sent it, nil if
// there is no such tool.
func (s *Supervisor) inputSchema(tool string) []byte {
	u := s.Upstream()
	if s.usesSharedLists() {
		u = s.base.Upstream()
	}
	if t := u.Tool(tool); t != nil {
		return t.SentSchema()
	}
	return nil
}

// turn waits until a start may begin. A start that a call waits for leaves the queue and
// begins at once. A start that only fills the cache lets all others go first. For the starts of
// owners, which calls always wait for, each upstream has a queue of its own, which they leave
// after ownerWait.
func (s *Supervisor) turn(ctx context.Context) (release func(), err error) {
	slots, hurry, limit, urgency := s.group.slots, s.hurry, (<-chan time.Time)(nil), normal
	if s.owner != "" {
		slots, hurry, limit = s.base.ownerSlots, nil, time.After(ownerWait)
	}
	if s.endFill != nil {
		urgency = low
	}
	acquired, leave := slots.enter(urgency)
	select {
	case <-acquired:
	case <-hurry:
		s.isAwaited = true
		leave()
		return leave, nil
	case <-limit:
		leave()
		return leave, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
	early := time.AfterFunc(slotTime, leave)
	return func() {
		early.Stop()
		leave()
	}, nil
}

// slotTime is how long a start holds its slot, so that a few upstreams that hang do not
// delay all others.
const slotTime = 3 * time.Second

// ownerWait is how long the start of an owner's upstream waits for a slot.
const ownerWait = 10 * time.Second

func startupLimit(ctx context.Context, c *config.Upstream) (context.Context, context.CancelFunc) {
	limit := &link.Failure{Cause: link.CauseTimeout, Reason: fmt.Sprintf("not ready within %s (its \"startup_timeout\")", c.StartupTimeout)}
	return context.WithTimeoutCause(ctx, c.StartupTimeout, limit)
}

// usesSharedLists reports whether clients see the lists of the shared session instead of those
// of this upstream.
func (s *Supervisor) usesSharedLists() bool { return s.client != nil && !s.Upstream().ListsPerOwner() }

// publishReady publishes the upstream as ready, with all lists of the new session unless it
// uses those of the shared one.
func (s *Supervisor) publishReady(ctx context.Context, session *Session, handshake []byte, begin time.Time) error {
	capabilities := rawjson.Get(handshake, "capabilities")
	instructions, _ := rawjson.String(rawjson.Get(handshake, "instructions"))
	instructions = session.Redact(instructions)
	setReady := func(u *Upstream) {
		u.State, u.Reason, u.Cause, u.Stderr, u.RetryAt, u.failure = Ready, "", "", nil, time.Time{}, nil
		u.Capabilities, u.Session, u.stderr = capabilities, session, s.stderr.Load()
		u.SetInstructions(instructions)
	}
	if s.usesSharedLists() {
		ready := s.group.host.Opened(session, capabilities)
		session.own, _ = session.Activity()
		s.publish(setReady)
		ready()
		return nil
	}
	announced := s.refresh.Noted()
	read, err := s.readLists(ctx, session, capabilities, lists.Kinds)
	if err != nil {
		return err
	}
	s.remember(session, handshake)
	ready := s.group.host.Opened(session, capabilities)
	session.own, _ = session.Activity()
	took := max(time.Since(begin), 1) // 0 would mean that it was never ready
	s.publishLists(session, read, func(u *Upstream) {
		setReady(u)
		u.StartupTime, u.ListedAt, u.isStale, u.announced = took, time.Now(), false, announced
		u.Revision, u.Software = session.Revision(handshake), s.software(softwareInfo(handshake))
	})
	ready()
	u := s.Upstream()
	if u.missing != nil {
		session.Background(func() { s.awaitAccess(session, u.missing) })
	}
	s.log.Info().Int("tools", len(u.Tools)).Int("prompts", len(u.Prompts)).Int("resources", len(u.Resources)).
		Dur("ms", took.Round(time.Millisecond)).Msg("upstream ready")
	return nil
}

// softwareBytes bounds the name and version that an upstream reports about itself.
const softwareBytes = 200

// softwareInfo returns the object in which an upstream describes itself.
func softwareInfo(handshake []byte) []byte {
	if info := rawjson.Get(handshake, "serverInfo"); info != nil {
		return info
	}
	return rawjson.Get(rawjson.Get(handshake, "_meta"), mcp.MetaKeyServerInfo)
}

// software returns the name and version in such an object, redacted.
func (s *Supervisor) software(info []byte) string {
	name, _ := rawjson.String(rawjson.Get(info, "name"))
	version, _ := rawjson.String(rawjson.Get(info, "version"))
	return plain.Cut(plain.Line(s.Config().Redact(strings.TrimSpace(name+" "+version))), softwareBytes)
}

// abort ends a session that could not be made ready, and returns why. If the link
// ended, its reason is better than the error of the call that noticed it.
func (s *Session) abort(err error) error {
	// These errors are about one call. There is no session without that call, so only their
	// reasons are of use.
	var broke *upstream.Lost
	var failed *upstream.Unanswered
	var denied *Unavailable
	switch {
	case errors.As(err, &denied) && denied.failure != nil:
		err = errors.New(denied.failure.Reason)
	case errors.As(err, &failed):
		err = errors.New(failed.Reason)
	case errors.As(err, &broke) && !s.IsOver():
		err = errors.New(broke.Reason)
	}
	s.Close()
	<-s.Done()
	var limit, end *link.Failure
	var lost *upstream.Lost
	switch reason := s.Err(); {
	case errors.As(err, &lost), errors.Is(err, rpc.ErrClosed):
		return reason
	case !errors.As(reason, &end):
		return err
	case errors.As(err, &limit):
		return &link.Failure{Reason: limit.Reason + end.Instead, Stderr: end.Stderr, Cause: limit.Cause}
	}
	return &link.Failure{Reason: err.Error(), Stderr: end.Stderr, Cause: end.Cause, Scopes: end.Scopes}
}

// needsHeaders returns why the upstream in the catalog cannot start if it needs headers of
// a client's request.
func (s *Supervisor) needsHeaders() error {
	if s.owner != "" || len(s.Config().ForwardHeaders) == 0 {
		return nil
	}
	var names []string
	for _, f := range s.Config().ForwardHeaders {
		names = append(names, f.Name)
	}
	return &link.Failure{Reason: "needs headers of a client's request: " + strings.Join(names, ", ")}
}

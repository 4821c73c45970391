package live

import (
	"errors"
	"strings"
	"time"

	"mcpx/registry/link"
	"mcpx/registry/lists"
	"mcpx/registry/upstream"
)

// Session is an upstream session that a Supervisor has opened.
type Session struct {
	*upstream.Session
	supervisor *Supervisor
	own        int64 // requests of mcpx itself before others could use the session

	LevelTurn chan struct{} // for the Host: holds one while a log level is set
}

// Supervisor returns who opened the upstream session.
func (s *Session) Supervisor() *Supervisor { return s.supervisor }

// newSession returns a session that uses a link.
func newSession(s *Supervisor, l link.Link) *Session {
	session := &Session{supervisor: s, LevelTurn: make(chan struct{}, 1)}
	session.Session = upstream.New(upstream.Options{
		Host: session, Owner: s.client, Config: s.Config(), Link: l, Log: s.log,
		Version: s.group.options.Version, PingEvery: s.group.options.PingEvery,
	})
	return session
}

// Redact implements upstream.Host. It hides the secrets of the upstream's entry and the
// tokens of its sign-in.
func (s *Session) Redact(text string) string {
	text = s.Config.Redact(text)
	if a := s.supervisor.Account(); a != nil {
		text = a.Redact(text)
	}
	return text
}

// LogLevel implements upstream.Host.
func (s *Session) LogLevel() string { return s.supervisor.group.host.LogLevel() }

// Subscriptions implements upstream.Host.
func (s *Session) Subscriptions() []string { return s.supervisor.group.host.Subscriptions(s) }

// OnlyClient implements upstream.Host.
func (s *Session) OnlyClient() upstream.Client { return s.supervisor.group.host.OnlyClient(s) }

// Record implements upstream.Host.
func (s *Session) Record(d upstream.Direction, message []byte) {
	s.supervisor.group.host.Record(s, d, message)
}

// Notified implements upstream.Host. Changes of lists count only if clients see the
// lists of this upstream session.
func (s *Session) Notified(method string, params []byte, to []upstream.Client) {
	isList := strings.HasSuffix(method, "/list_changed")
	if isList && s.supervisor.usesSharedLists() {
		return
	}
	for _, k := range lists.Kinds {
		if method == upstream.ListChanged(k.Capability) {
			s.supervisor.refresh.Note(k.Capability)
			return
		}
	}
	s.supervisor.group.host.Notified(s, method, params, to)
}

// MaySpeak2026 implements upstream.Host.
func (s *Session) MaySpeak2026() bool { return !s.supervisor.base.known.Load().isEarlier }

// SpeaksEarlier implements upstream.Host. The cache remembers it too.
func (s *Session) SpeaksEarlier() {
	known := *s.supervisor.base.known.Load()
	known.isEarlier = true
	s.supervisor.base.known.Store(&known)
	s.supervisor.base.saveCache(s)
}

// ErrReplaced ends a session whose upstream a reload has changed or removed.
var ErrReplaced = errors.New("the config of the server has changed")

// Limits for calls in flight on a session that was replaced.
const (
	drainTime = time.Minute
	drainTick = 20 * time.Millisecond // between checks whether they have ended
)

// Drain waits until the calls of an upstream session have ended, and closes its connection.
// Calls that take longer than drainTime fail.
func (s *Session) Drain() {
	tick, limit := time.NewTicker(drainTick), time.After(drainTime)
	defer tick.Stop()
	for {
		calls, isBusy := s.Activity()
		if !isBusy && s.EndIfUnused(calls, ErrReplaced) {
			return
		}
		select {
		case <-tick.C:
		case <-s.Done():
			return
		case <-s.supervisor.group.ctx.Done():
			return
		case <-limit:
			s.End(&link.Failure{Reason: "its config has changed, and the call did not end within " + drainTime.String()})
			return
		}
	}
}

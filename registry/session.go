package registry

import (
	"sync/atomic"

	"mcpx/internal/link"
	"mcpx/internal/upstream"
)

// Session is an upstream session of the registry.
type Session struct {
	*upstream.Session
	supervisor *supervisor

	level   atomic.Pointer[string] // the log level that was set last
	setting chan struct{}          // holds one while a log level is set
}

// newSession returns a session that uses a link. owner is nil for the shared session.
func newSession(s *supervisor, owner upstream.Client, l link.Link) *Session {
	session := &Session{supervisor: s, setting: make(chan struct{}, 1)}
	session.Session = upstream.New(upstream.Options{
		Host: session, Owner: owner, Config: s.config(), Link: l, Log: s.log,
		Version: s.registry.options.Version, PingEvery: s.registry.options.PingEvery,
	})
	return session
}

// Redact implements upstream.Host. It hides the secrets of the upstream's entry and the
// tokens of its sign-in.
func (s *Session) Redact(text string) string {
	return s.supervisor.account.Load().Redact(s.Config.Redact(text))
}

// LogLevel implements upstream.Host.
func (s *Session) LogLevel() string { return s.supervisor.registry.clients.level() }

// Subscriptions implements upstream.Host.
func (s *Session) Subscriptions() []string { return s.supervisor.registry.clients.uris(s.key()) }

// MaySpeakModern implements upstream.Host.
func (s *Session) MaySpeakModern() bool { return !s.supervisor.known.Load().isEarlier }

// SpeaksEarlier implements upstream.Host. The cache remembers it too.
func (s *Session) SpeaksEarlier() {
	known := *s.supervisor.known.Load()
	known.isEarlier = true
	s.supervisor.known.Store(&known)
	s.supervisor.saveCache(s, nil)
}

// KeepsRoots reports whether the upstream requests roots when there is no call, and so
// probably keeps them.
func (u *Upstream) KeepsRoots() bool { return u.session != nil && u.session.KeepsRoots() }

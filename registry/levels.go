package registry

import (
	"context"
	"time"

	"mcpx/internal/rawjson"
	"mcpx/registry/live"
	"mcpx/registry/upstream"
)

// LogLevels are the log levels of MCP, the most verbose first.
var LogLevels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// Limits for requests of mcpx itself.
const (
	sideTime  = 30 * time.Second // for the response
	levelTime = time.Second      // how long a client waits until upstreams have set a log level
)

// SetLevel sets the log level that a client wants. Upstreams with logging are set to
// the most verbose level that any client wants. SetLevel waits until they have responded,
// for levelTime at most, so that the level applies to the client's next call.
func (r *Registry) SetLevel(c upstream.Client, level string) {
	r.clients.mu.Lock()
	if a := r.clients.attached[c.ID()]; a != nil { // a client without a session is gone after this request
		a.level = level
	}
	r.clients.mu.Unlock()
	r.sendLevel(r.loggingSessions(c)...)
}

// loggingSessions returns the open sessions with logging of the upstreams that a client may
// use.
func (r *Registry) loggingSessions(c upstream.Client) (sessions []*live.Session) {
	for _, u := range r.Catalog().Upstreams {
		if u.Has("logging") && r.mayUse(c, u.Name) {
			sessions = append(sessions, r.openSessions(u)...)
		}
	}
	return sessions
}

// LogLevel implements live.Host.
func (r *Registry) LogLevel() string { return r.clients.level() }

// level returns the most verbose level that a client has set, empty if none has.
func (c *clients) level() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, level := range LogLevels {
		for _, client := range c.attached {
			if client.level == level {
				return level
			}
		}
	}
	return ""
}

// sendLevel sends the wanted level to sessions and waits for them, for levelTime at
// most.
func (r *Registry) sendLevel(sessions ...*live.Session) {
	if r.clients.level() == "" {
		return
	}
	done := make(chan struct{}, len(sessions))
	for _, s := range sessions {
		if !s.Background(func() {
			r.sendLevelTo(s)
			done <- struct{}{}
		}) {
			done <- struct{}{} // the session is over
		}
	}
	limit := time.After(levelTime)
	for range sessions {
		select {
		case <-done:
		case <-limit:
			return
		}
	}
}

// sendLevelTo sends the wanted level to one session. Only one goroutine does so at a
// time, so that the newest level is sent last.
func (r *Registry) sendLevelTo(s *live.Session) {
	select {
	case s.LevelTurn <- struct{}{}:
		defer func() { <-s.LevelTurn }()
	case <-time.After(sideTime): // the next sender sends the newest level
		return
	case <-s.Done():
		return
	}
	level := r.clients.level()
	if level == "" {
		return
	}
	_ = r.requestAndLog(s, "logging/setLevel", append(rawjson.AppendString([]byte(`{"level":`), level), '}'))
}

// requestAndLog sends a request of mcpx itself, whose result is empty. It logs and
// returns an error.
func (r *Registry) requestAndLog(s *live.Session, method string, params []byte) error {
	ctx, cancel := context.WithTimeout(s.Context(), sideTime)
	defer cancel()
	_, err := s.Request(ctx, method, params)
	if err != nil {
		r.log.Warn().Str("error", s.Config.Redact(err.Error())).Str("server", s.Config.Name).Str("method", method).Msg("a request to an upstream failed")
	}
	return err
}

package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"mcpx/registry/link"
)

// Is2026 reports whether the upstream session speaks 2026-07-28.
func (s *Session) Is2026() bool { return s.state2026() != nil }

// state2026 returns the state of a session that speaks 2026-07-28, nil for others.
func (s *Session) state2026() *state2026 { return s.spoken.Load() }

// Done is closed when the upstream session has ended.
func (s *Session) Done() <-chan struct{} { return s.conn.Context().Done() }

// Activity returns the number of requests so far, and whether one is unfinished. Pings and
// subscriptions/listen do not count.
func (s *Session) Activity() (requests int64, isBusy bool) {
	requests, isBusy = s.conn.Activity()
	return requests, isBusy || s.rounds.Load() > 0
}

// IsOver reports whether the upstream session has ended.
func (s *Session) IsOver() bool { return s.conn.Context().Err() != nil }

// Background runs a task of the upstream session. Close waits for it. It returns false if
// the session is closed.
func (s *Session) Background(task func()) bool { return s.tasks.Go(task) }

// Notify sends a notification to the upstream.
func (s *Session) Notify(method string, params []byte) error { return s.conn.Notify(method, params) }

// Context ends with the upstream session.
func (s *Session) Context() context.Context { return s.conn.Context() }

// Err returns why the upstream session has ended.
func (s *Session) Err() error { return s.conn.Err() }

// End ends the upstream session. Its calls in flight fail.
func (s *Session) End(reason error) { s.conn.Close(reason) }

// EndIfUnused ends the upstream session if no request was sent since Activity returned that
// number, and none is unfinished. It reports whether it did.
func (s *Session) EndIfUnused(requests int64, reason error) bool {
	return s.conn.CloseIfIdle(requests, reason)
}

// Close ends the upstream session and its link, and waits for the session's goroutines.
func (s *Session) Close() {
	s.Link.Close()
	s.tasks.Close()
}

// pingEvery is how often an idle network session is pinged, and how long the ping
// may take. A ping finds connections that broke silently, for example while a laptop
// slept.
const pingEvery = 30 * time.Second

// keepAlive closes a session that does not respond to a ping. It does not ping during
// calls: they have their own limits, and the upstream may be busy with them.
func (s *Session) keepAlive() {
	every := cmp.Or(s.PingEvery, pingEvery)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-s.Done():
			return
		}
		if s.conn.Len() > 0 {
			continue
		}
		if err := s.ping(every); err != nil && s.conn.Len() == 0 { // a call that came meanwhile may have delayed the ping
			s.Log.Debug().Err(err).Msg("no response to ping")
			s.conn.Close(&link.Failure{Reason: fmt.Sprintf("no response to ping within %s", every)})
			return
		}
	}
}

// ping fails if the upstream does not respond within limit. An error response counts as
// a response. A broken connection is noticed elsewhere.
func (s *Session) ping(limit time.Duration) error {
	ctx, cancel := context.WithTimeout(s.conn.Context(), limit)
	defer cancel()
	_, err := s.Request(ctx, "ping", nil)
	if s.IsOver() || !errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

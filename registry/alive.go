package registry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mcpx/config"
)

// pingEvery is how often an idle session over a network is asked for a sign of
// life, and how long it has to give one. Nothing else tells of a stream that went
// silent without an end, as after a laptop's sleep.
const pingEvery = 30 * time.Second

// watch ends a session that gives no sign of life. While calls are in flight it
// does not ask: they have limits of their own, and an upstream may be busy with
// them.
func (s *Session) watch(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-s.ctx.Done():
			return
		}
		if !s.isIdle() {
			continue
		}
		if err := s.ping(every); err != nil && s.isIdle() { // else a call has come, which may have overtaken the ping
			s.log.Debug().Err(err).Msg("no sign of life")
			s.end(&failure{reason: fmt.Sprintf("it gave no sign of life within %s", every)})
			return
		}
	}
}

// ping asks for a sign of life. Any answer is one, an error too, and so is a
// connection that breaks.
func (s *Session) ping(limit time.Duration) error {
	ctx, cancel := context.WithTimeout(s.ctx, limit)
	defer cancel()
	_, err := s.Call(ctx, Request{Method: "ping"})
	if s.ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

func (s *Session) isIdle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pending) == 0
}

// needsWatch reports whether an upstream can be gone without a word.
func needsWatch(c *config.Upstream) bool { return c.Transport != config.TransportStdio }

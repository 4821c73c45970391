package registry

import "time"

// abandoned is a call that nobody waits for any more. Until the upstream has
// answered it, it may still ask something for its sake.
type abandoned struct {
	client string
	at     time.Time
}

// What is remembered of such calls.
const (
	abandonedTime = 5 * time.Second // it was told, and need not answer
	maxAbandoned  = 1000
)

// remember notes a call that was abandoned.
func (s *Session) remember(c *call) {
	if c.request.Client == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.abandoned) < maxAbandoned {
		s.abandoned[c.id] = abandoned{c.request.Client.ID(), time.Now()}
	}
}

// mayBeOfAnother reports whether what the upstream asks may be for the sake of an
// abandoned call of another client. The mutex is held.
func (s *Session) mayBeOfAnother(client Client) bool {
	for id, a := range s.abandoned {
		switch {
		case time.Since(a.at) > abandonedTime:
			delete(s.abandoned, id)
		case a.client != client.ID():
			return true
		}
	}
	return false
}

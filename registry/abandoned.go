package registry

import "time"

// abandoned is a call that nobody waits for any more. The upstream may not have
// heard of that yet, and ask something for its sake. One that goes on with it all
// the same, and asks much later, is not found out: to refuse all other clients for
// so long would cost more than it saves.
type abandoned struct {
	client string
	at     time.Time
}

// What is remembered of such calls.
const (
	abandonedTime = time.Second // what it was told by then it has heard
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

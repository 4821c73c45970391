package live

import (
	"slices"
	"sync"
)

// slots bounds how many upstreams start at the same time. Its methods may be called
// concurrently.
type slots struct {
	mu      sync.Mutex
	free    int
	waiting [2][]chan struct{} // by priority, in the order in which they came
}

// priority is how urgent a start is.
type priority int

// The priorities. A start with low priority gets a slot only if none with normal priority waits.
const (
	normal priority = iota
	low             // nobody waits for the start
)

func newSlots(n int) *slots { return &slots{free: n} }

// enter joins the queue of a priority. acquired is closed once there is a slot.
// leave frees the slot, or leaves the queue; it is safe to call twice.
func (s *slots) enter(p priority) (acquired <-chan struct{}, leave func()) {
	turn := make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[p] = append(s.waiting[p], turn)
	s.assign()
	return turn, sync.OnceFunc(func() { s.leave(p, turn) })
}

// leave frees the slot of a turn, or removes the turn from its queue.
func (s *slots) leave(p priority, turn chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.waiting[p], turn); i >= 0 {
		s.waiting[p] = slices.Delete(s.waiting[p], i, i+1)
		return
	}
	s.free++
	s.assign()
}

// assign gives free slots to waiting starts. The caller holds the mutex.
func (s *slots) assign() {
	for p := range s.waiting {
		for s.free > 0 && len(s.waiting[p]) > 0 {
			close(s.waiting[p][0])
			s.waiting[p] = s.waiting[p][1:]
			s.free--
		}
	}
}

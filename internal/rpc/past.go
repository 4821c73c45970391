package rpc

import (
	"maps"
	"slices"
	"time"
)

// Lingering is how long a call counts after the last message that belongs to it: the peer may
// still send requests for it, though it was answered or abandoned.
const Lingering = time.Minute

// MaxPast bounds how many abandoned calls are remembered, and how many keys of ended ones.
const MaxPast = 1000

// Remember has the keys under which a call is remembered once it is over. It is not remembered
// under an empty key.
type Remember struct {
	Abandoned string // until the peer responds to it
	Ended     string // if the peer has responded to it
}

// Past has the calls that are over and still count: see Lingering.
type Past struct {
	Abandoned map[int64]string // the keys of abandoned calls without a response, by ID
	Ended     []string         // the keys of the other calls
	Overflow  bool             // some calls were not recorded
}

// past remembers calls that are over. The mutex of the connection guards it.
type past struct {
	abandoned map[int64]abandonedCall
	ended     map[string]time.Time // the time of the last message of the calls with that key
	overflow  time.Time            // the time of the last message that may belong to a call that was not recorded
}

// abandonedCall is the record of an abandoned call. It is small, since many peers never respond
// to such a call.
type abandonedCall struct {
	remember Remember
	last     time.Time // the time of its last message
}

// counts reports whether a call with that last message counts.
func counts(last, now time.Time) bool { return now.Sub(last) < Lingering }

// abandon remembers an abandoned call.
func (p *past) abandon(call *Call, now time.Time) {
	if call.Remember.Abandoned == "" {
		return
	}
	if p.abandoned == nil {
		p.abandoned = map[int64]abandonedCall{}
	}
	if len(p.abandoned) == MaxPast {
		maps.DeleteFunc(p.abandoned, func(_ int64, a abandonedCall) bool { return !counts(a.last, now) })
	}
	if len(p.abandoned) == MaxPast {
		p.overflow = now
		return
	}
	p.abandoned[call.ID] = abandonedCall{call.Remember, now}
}

// end remembers a call that was not abandoned.
func (p *past) end(key string, now time.Time) {
	if key == "" {
		return
	}
	if p.ended == nil {
		p.ended = map[string]time.Time{}
	}
	if _, known := p.ended[key]; !known && len(p.ended) == MaxPast {
		maps.DeleteFunc(p.ended, func(_ string, last time.Time) bool { return !counts(last, now) })
		if len(p.ended) == MaxPast {
			p.overflow = now
			return
		}
	}
	p.ended[key] = now
}

// touch records a message that belongs to a call that is over.
func (p *past) touch(id int64, now time.Time) {
	if a, ok := p.abandoned[id]; ok && counts(a.last, now) {
		p.abandoned[id] = abandonedCall{a.remember, now}
		return
	}
	if counts(p.overflow, now) { // it may belong to a call that was not recorded
		p.overflow = now
	}
}

// answer records that the peer has responded to a call that is over.
func (p *past) answer(id int64, now time.Time) {
	p.touch(id, now)
	if a, ok := p.abandoned[id]; ok && counts(a.last, now) {
		delete(p.abandoned, id)
		p.end(a.remember.Ended, now)
	}
}

// at returns the calls that count.
func (p *past) at(now time.Time) Past {
	s := Past{Abandoned: map[int64]string{}, Overflow: counts(p.overflow, now)}
	for id, a := range p.abandoned {
		if counts(a.last, now) {
			s.Abandoned[id] = a.remember.Abandoned
		}
	}
	for key, last := range p.ended {
		if counts(last, now) {
			s.Ended = append(s.Ended, key)
		}
	}
	slices.Sort(s.Ended)
	return s
}

// answered records a response to a call that is over.
func (c *Conn) answered(id []byte) {
	if number, ok := c.number(id); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.inFlight.past.answer(number, time.Now())
	}
}

// ForgetEnded forgets the calls with that key to which the peer has responded.
func (c *Conn) ForgetEnded(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.inFlight.past.ended, key)
}

// Touch records that a message belongs to the call with that ID, which is over.
func (c *Conn) Touch(id []byte) {
	if number, ok := c.number(id); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.inFlight.past.touch(number, time.Now())
	}
}

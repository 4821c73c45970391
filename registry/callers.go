package registry

// maxAbandoned bounds how many abandoned calls a session remembers.
const maxAbandoned = 1000

// callers records which clients have used a session, and whose calls were
// abandoned: cancelled, timed out, or cut off. An upstream may go on with an
// abandoned call and send a request for it much later, when another client's
// call is the only one in flight. The session's mutex guards it.
type callers struct {
	first     string           // the first client that made a call
	several   bool             // more than one client has made calls
	abandoned map[int64]string // the client of each abandoned call that the upstream has not answered, by call ID
	overflow  bool             // more calls were abandoned than are remembered
}

// add records that a client makes a call.
func (c *callers) add(client string) {
	if c.first == "" {
		c.first = client
	}
	c.several = c.several || c.first != client
}

// abandon records that nobody waits for a call any more, though the upstream may
// still work on it.
func (c *callers) abandon(id int64, client string) {
	if len(c.abandoned) == maxAbandoned {
		c.overflow = true
		return
	}
	if c.abandoned == nil {
		c.abandoned = map[int64]string{}
	}
	c.abandoned[id] = client
}

// answered forgets an abandoned call, because the upstream has answered it.
func (c *callers) answered(id int64) { delete(c.abandoned, id) }

// others reports whether the upstream may still work on an abandoned call of
// another client.
func (c *callers) others(client string) bool {
	if !c.several {
		return false
	}
	for _, owner := range c.abandoned {
		if owner != client {
			return true
		}
	}
	return c.overflow
}

// only reports whether no other client has made a call.
func (c *callers) only(client string) bool {
	return c.first == "" || c.first == client && !c.several
}

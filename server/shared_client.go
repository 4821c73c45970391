package server

import (
	"bytes"
	"crypto/rand"
)

// NewSharedClient returns a Client whose client session other replicas may have too. The
// client can tell their requests apart: no other replica uses the same request IDs.
func (s *Server) NewSharedClient(id string, send func(message []byte) error) *Client {
	return s.newClient(id, requestPrefix+rand.Text()[:8]+"-", send)
}

// IsElsewhere reports whether a response is for a request that another replica has sent.
func (c *Client) IsElsewhere(id []byte) bool {
	return bytes.HasPrefix(id, []byte(`"`+requestPrefix)) && !c.Conn.Sent(id)
}

// Continued is the state of a client session that another replica has opened.
type Continued struct {
	Revision     string
	Capabilities []byte
	Level        string // the least severe level of log messages; empty: not set
}

// Continue makes the client one that has initialized its client session.
func (c *Client) Continue(state Continued) {
	c.SetInitialized(state.Revision, state.Capabilities)
	if c.logLevel() == "" { // the client may have set it meanwhile
		c.setLevel(state.Level)
	}
	c.markReachable()
}

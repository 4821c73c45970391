package server

import (
	"bytes"
	"crypto/rand"
)

// NewSharedClient returns a Client whose client session may have copies on other replicas. No
// two of them use the same request IDs, so a response belongs to one of them.
func (s *Server) NewSharedClient(id string, send func(message []byte) error) *Client {
	c := s.newClient(id, requestPrefix+rand.Text()[:8]+"-", send)
	c.lists.assumed = &assumedLists{server: s, client: c}
	return c
}

// IsElsewhere reports whether a response is for a request that another replica has sent.
func (c *Client) IsElsewhere(id []byte) bool {
	return bytes.HasPrefix(id, []byte(`"`+requestPrefix)) && !c.Conn.Sent(id)
}

// Continue sets the state of a client session that another replica has opened. The level of
// log messages is empty if the client has not set one.
func (c *Client) Continue(revision string, capabilities []byte, level string) {
	c.SetInitialized(revision, capabilities)
	if c.logLevel() == "" { // the client may have set it meanwhile
		c.setLevel(level)
	}
	c.markReachable()
}

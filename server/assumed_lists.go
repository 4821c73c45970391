package server

import (
	"slices"
	"sync"
)

// assumedLists has the lists of a client session that another replica has opened, as they
// were when the session was continued here, or when a change was last announced. The client
// may have read them on that replica, so it is notified when one changes. A list that it reads
// here is in readLists. The methods may be called concurrently.
type assumedLists struct {
	server   *Server
	client   *Client
	byMethod sync.Map // of *assumedList; empty if the session was opened here
}

// assumedList is one of them. It is immutable.
type assumedList struct {
	hash     uint64
	unlisted []string // servers that were not listed here yet. The hash is without them: the client may know their items
}

// AssumeRead records the lists as they are now, for a client that may have read them on
// another replica. The client is attached, and no request of it was handled here yet.
func (s *Server) AssumeRead(c *Client) {
	for {
		catalog := s.registry.For(c).Catalog()
		for method := range lists {
			if method == "tools/list" && s.lazy {
				continue // inspect and exec never change
			}
			unlisted := s.unlisted(c)
			c.lists.assumed.byMethod.Store(method, &assumedList{s.listHash(c, method, unlisted...), unlisted})
		}
		if s.registry.For(c).Catalog() == catalog { // else the announcement may have come before Store
			return
		}
	}
}

// unlisted returns the servers that a client may use and that have had no time to be listed.
func (s *Server) unlisted(c *Client) (names []string) {
	for _, u := range s.registry.For(c).Catalog().Upstreams {
		if u.ListedAt.IsZero() && u.FailedAt.IsZero() {
			names = append(names, u.Name)
		}
	}
	return names
}

// change reports whether a list has changed since it was recorded, and records it again. The
// first list of a server is no change.
func (a *assumedLists) change(method string) bool {
	for {
		found, ok := a.byMethod.Load(method)
		if !ok {
			return false
		}
		before := found.(*assumedList)
		now := a.server.unlisted(a.client)
		unlisted := slices.DeleteFunc(slices.Clone(before.unlisted), func(name string) bool { return !slices.Contains(now, name) })
		next := &assumedList{a.server.listHash(a.client, method, unlisted...), unlisted}
		hash := next.hash
		if len(unlisted) < len(before.unlisted) {
			hash = a.server.listHash(a.client, method, before.unlisted...)
		}
		if a.byMethod.CompareAndSwap(method, before, next) {
			return hash != before.hash
		}
	}
}

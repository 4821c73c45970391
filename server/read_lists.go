package server

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync"

	"mcpx/executor/listing"
)

// readLists remembers what a client has read of each list, so that it is notified only of
// changes that it does not know yet. Some clients fail on notifications that they do not
// expect, and all others would read the list again for nothing. The methods may be called
// concurrently.
type readLists struct {
	current func(method string) uint64 // the hash of a list as the client would get it now
	assumed *assumedLists              // nil if no other replica can have sent lists to the client

	mu        sync.Mutex
	read      map[string]uint64 // the last answer to each method of lists
	announced map[string]uint64 // what a list was when its last change was announced
}

// remember records the answer to a method of lists.
func (r *readLists) remember(method string, hash uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.read == nil {
		r.read, r.announced = map[string]uint64{}, map[string]uint64{}
	}
	r.read[method] = hash
	delete(r.announced, method)
}

// rememberAll records the lists of a capability as they are now.
func (r *readLists) rememberAll(capability string) {
	for method := range lists {
		if strings.HasPrefix(method, capability+"/") {
			r.remember(method, r.current(method))
		}
	}
}

// isNews reports whether to send a notification. A list_changed is sent only if the client
// has read one of its lists, here or on another replica, and the list has changed since.
func (r *readLists) isNews(notification string) bool {
	capability, isList := strings.CutSuffix(strings.TrimPrefix(notification, "notifications/"), "/list_changed")
	if !isList {
		return true
	}
	isNews := false
	for method := range lists {
		if strings.HasPrefix(method, capability+"/") && r.change(method) {
			isNews = true
		}
	}
	return isNews
}

// change reports whether a list has changed since the client read it, and since the last
// announcement.
func (r *readLists) change(method string) bool {
	switch {
	case r.current == nil: // a client for one request gets no announcements
		return false
	case !r.has(method):
		return r.assumed != nil && r.assumed.change(method)
	}
	now := r.current(method)
	r.mu.Lock()
	defer r.mu.Unlock()
	if announced, ok := r.announced[method]; now == r.read[method] || ok && now == announced {
		return false
	}
	r.announced[method] = now
	return true
}

// has reports whether the client has read a list.
func (r *readLists) has(method string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.read[method]
	return ok
}

// hashSeed is the same for all hashes of a process.
var hashSeed = maphash.MakeSeed()

// listHash returns a hash of a list as a client sees it, without the items of some servers.
func (s *Server) listHash(c *Client, method string, without ...string) uint64 {
	return itemsHash(lists[method].items(s.executor.Exposure(c)), without...)
}

func itemsHash(items []listing.Exposed, without ...string) uint64 {
	var h maphash.Hash
	h.SetSeed(hashSeed)
	for _, item := range items {
		if slices.Contains(without, item.Upstream.Name) {
			continue
		}
		_, _ = h.Write(item.Raw) // never fails
		_ = h.WriteByte(0)
	}
	return h.Sum64()
}

// read returns the items of a list for a client, and remembers that the client has read
// them. Every later change of the catalog is announced to the client.
func (s *Server) read(c *Client, method string) []listing.Exposed {
	for {
		catalog := s.registry.For(c).Catalog()
		items := lists[method].items(s.executor.Exposure(c))
		c.lists.remember(method, itemsHash(items))
		if s.registry.For(c).Catalog() == catalog { // else the announcement may have come before remember
			return items
		}
	}
}

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

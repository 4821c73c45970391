package server

import (
	"context"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"time"

	"mcpx/executor"
	"mcpx/registry/live"
)

// readLists remembers what a client has read of each list, so that it is notified only of
// changes that it does not know yet. Some clients fail on notifications that they do not
// expect, and all others would read the list again for nothing. The methods may be called
// concurrently.
type readLists struct {
	current func(method string) uint64 // the hash of a list as the client would get it now

	mu        sync.Mutex
	read      map[string]uint64 // the last answer to each method of lists
	announced map[string]uint64 // what a list was when its last change was announced
}

// remember records the answer to a method of lists.
func (r *readLists) remember(method string, hash uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rememberLocked(method, hash)
}

func (r *readLists) rememberLocked(method string, hash uint64) {
	if r.read == nil {
		r.read, r.announced = map[string]uint64{}, map[string]uint64{}
	}
	r.read[method] = hash
	delete(r.announced, method)
}

// assume records a list that the client may have read on another replica, unless it has
// read it here.
func (r *readLists) assume(method string, hash uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.read[method]; !ok {
		r.rememberLocked(method, hash)
	}
}

// rememberAll records the lists of a capability as they are now.
func (r *readLists) rememberAll(capability string) {
	for method := range lists {
		if strings.HasPrefix(method, capability+"/") {
			r.remember(method, r.current(method))
		}
	}
}

// isNews reports whether a notification is of use to the client: every one, except a
// list_changed of lists that the client has not read, here or maybe on another replica, or
// that are as in its last answer.
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
	if r.current == nil || !r.has(method) { // a client for one request gets no announcements
		return false
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

// listHash returns a hash of a list as a client sees it.
func (s *Server) listHash(c *Client, method string) uint64 {
	return itemsHash(lists[method].items(s.executor.Exposure(c)))
}

func itemsHash(items []executor.Exposed) uint64 {
	var h maphash.Hash
	h.SetSeed(hashSeed)
	for _, item := range items {
		_, _ = h.Write(item.Raw) // never fails
		_ = h.WriteByte(0)
	}
	return h.Sum64()
}

// read returns the items of a list for a client, and remembers that the client has read
// them. Every later change of the catalog is announced to the client.
func (s *Server) read(c *Client, method string) []executor.Exposed {
	for {
		catalog := s.registry.For(c).Catalog()
		items := lists[method].items(s.executor.Exposure(c))
		c.lists.remember(method, itemsHash(items))
		if s.registry.For(c).Catalog() == catalog { // else the announcement may have come before remember
			return items
		}
	}
}

// AssumeRead records the lists for a client that may have read them on another replica, so
// that it is notified when one changes. It is called before a request of the client is
// handled here. While servers are in their first start, it waits for them in the background,
// because the client may know their items.
func (s *Server) AssumeRead(c *Client) {
	if !slices.ContainsFunc(s.registry.For(c).Catalog().Upstreams, (*live.Upstream).InFirstStart) {
		s.assumeRead(c)
		return
	}
	s.later(func(ctx context.Context) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(c.Conn.Context(), cancel)()
		s.executor.Settle(ctx, c, assumeTime)
		s.assumeRead(c)
	})
}

// assumeTime bounds how long AssumeRead waits.
const assumeTime = time.Minute

// assumeRead records the lists as they are now.
func (s *Server) assumeRead(c *Client) {
	for method := range lists {
		if method == "tools/list" && s.lazy {
			continue // inspect and exec never change
		}
		c.lists.assume(method, s.listHash(c, method))
	}
}

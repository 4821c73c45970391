// Package results keeps texts that are too long for one answer: Fit cuts a result to
// its budget and stores the texts it cut, Read returns parts of them.
package results

import (
	"container/list"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// These limits say how much is kept, and how long after its last use. The newest
// text is always kept: it is no longer than the message it came in.
const (
	maxBytes       = 64 << 20
	maxClientBytes = 16 << 20
	lifetime       = 30 * time.Minute
	maxClients     = 10_000
)

// Store holds the texts that were cut, each for the client that got the result.
type Store struct {
	budget int // tokens of an answer of Read

	mu      sync.Mutex
	texts   *list.List // of *entry, the least recently used first
	clients map[string]*client
	floor   int // forgotten clients may have got numbers up to here
	bytes   int
}

// client has the texts of one client.
type client struct {
	texts map[string]*list.Element // by id
	last  int                      // number of the last id given out
	bytes int
}

// entry is one text.
type entry struct {
	client string
	id     string
	text   string
	used   time.Time
}

// New returns an empty store whose Read answers with at most budget tokens.
func New(budget int) *Store {
	return &Store{budget: max(budget, minBudget), texts: list.New(), clients: map[string]*client{}}
}

// Forget drops everything that is kept for a client.
func (s *Store) Forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.clients[name]
	if !ok {
		return
	}
	for _, e := range c.texts {
		s.drop(e)
	}
	delete(s.clients, name)
}

// save keeps a text for a client and returns its id.
func (s *Store) save(name, content string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	c, ok := s.clients[name]
	if !ok {
		s.makeRoom()
		c = &client{texts: map[string]*list.Element{}, last: s.floor}
		s.clients[name] = c
	}
	c.last++
	id := "r" + strconv.Itoa(c.last)
	c.texts[id] = s.texts.PushBack(&entry{client: name, id: id, text: content, used: time.Now()})
	c.bytes += len(content)
	s.bytes += len(content)

	for c.bytes > maxClientBytes && len(c.texts) > 1 {
		s.drop(s.oldest(name))
	}
	for s.bytes > maxBytes && s.texts.Len() > 1 {
		s.drop(s.texts.Front())
	}
	return id
}

// makeRoom forgets clients when there are too many: those without texts, or else
// those with the least recently used texts. Nobody tells when a client without a
// session is gone. Numbers are never used again.
func (s *Store) makeRoom() {
	if len(s.clients) < maxClients {
		return
	}
	if len(s.clients) == s.withTexts() {
		for range maxClients / 10 {
			for _, e := range s.clients[s.texts.Front().Value.(*entry).client].texts {
				s.drop(e)
			}
		}
	}
	for name, c := range s.clients {
		if len(c.texts) == 0 {
			s.floor = max(s.floor, c.last)
			delete(s.clients, name)
		}
	}
}

// withTexts counts the clients that have texts.
func (s *Store) withTexts() (n int) {
	for _, c := range s.clients {
		if len(c.texts) > 0 {
			n++
		}
	}
	return n
}

// load returns a text of a client and marks it as used.
func (s *Store) load(name, id string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	c, ok := s.clients[name]
	if !ok || len(c.texts) == 0 {
		return "", fmt.Errorf("no result %q: none is kept any more; call the tool again", id)
	}
	e, ok := c.texts[id]
	if !ok {
		return "", fmt.Errorf("no result %q: kept are %s; call the tool again for others", id, c.ids())
	}
	kept := e.Value.(*entry)
	kept.used = time.Now()
	s.texts.MoveToBack(e)
	return kept.text, nil
}

// ids lists the ids that a client can read, the newest of many.
func (c *client) ids() string {
	var ids []string
	for n := c.last; n > 0 && len(ids) < min(maxNames, len(c.texts)); n-- {
		if id := "r" + strconv.Itoa(n); c.texts[id] != nil {
			ids = append(ids, id)
		}
	}
	slices.Reverse(ids)
	return strings.Join(ids, ", ")
}

// expire drops texts that were not used for too long.
func (s *Store) expire() {
	for e := s.texts.Front(); e != nil && time.Since(e.Value.(*entry).used) >= lifetime; e = s.texts.Front() {
		s.drop(e)
	}
}

// oldest returns the least recently used text of a client.
func (s *Store) oldest(name string) *list.Element {
	e := s.texts.Front()
	for e.Value.(*entry).client != name {
		e = e.Next()
	}
	return e
}

// drop removes a text. It keeps the client and its counter, so that an old id never
// means a new text.
func (s *Store) drop(e *list.Element) {
	gone := s.texts.Remove(e).(*entry)
	c := s.clients[gone.client]
	delete(c.texts, gone.id)
	c.bytes -= len(gone.text)
	s.bytes -= len(gone.text)
}

// Package replicas lets several processes with the same session key serve one client
// session. With a shared store, each of them can also read the kept results of the others.
//
// Hooks: httpfront.Replicas and httpfront.Copy, results.Shelf.
//
// A session has a copy in each process that has served one of its requests. The sealed ID
// contains the state that does not change (sealed.go). Ended sessions and log levels are in
// the store, and the copies send each other notes (notes.go).
package replicas

import (
	"context"
	"crypto/rand"
	"net/http"
	"time"

	"github.com/rs/zerolog"

	"mcpx/executor/results"
	"mcpx/internal/seal"
	"mcpx/internal/store"
	"mcpx/internal/tasks"
	"mcpx/server"
	httpfront "mcpx/server/http"
)

// Replicas implements httpfront.Replicas. Its methods may be called concurrently.
type Replicas struct {
	id           string // of this process
	box          *seal.Box
	store        store.Store
	isShared     bool          // other replicas use the store too
	known        *store.Memory // the ended sessions that this replica knows of, if the store fails or loses them
	front        *httpfront.HTTP
	log          zerolog.Logger
	tasks        tasks.Group
	urgent       queue // notes that somebody waits for: a flood of notifications must not delay them
	others       queue
	long         chan struct{} // has one element while a long note is published
	deliveryTime time.Duration // how long other replicas have to deliver a request to the client
	shelves      *background   // changes of kept results
}

const defaultDeliveryTime = 2 * time.Second

// New returns the replicas of a front. The box seals the IDs of client sessions. The store is
// shared with the other replicas; it may be nil.
func New(front *httpfront.HTTP, box *seal.Box, shared store.Store) *Replicas {
	p := &Replicas{
		id: rand.Text()[:8], box: box, store: shared, isShared: shared != nil, known: store.NewMemory(), front: front, log: front.Log,
		urgent: newQueue(), others: newQueue(), long: make(chan struct{}, 1), deliveryTime: defaultDeliveryTime, shelves: newBackground(),
	}
	if !p.isShared {
		p.store = p.known
	}
	return p
}

// Shelf returns the shelf of a profile's results, nil if replicas share no store.
func (p *Replicas) Shelf(profile string) results.Shelf {
	if !p.isShared {
		return nil
	}
	return &shelf{p.store, profile, p.shelves}
}

// Close waits for changes of kept results in the store, but not for long. It is called before
// the store is closed.
func (p *Replicas) Close() { p.shelves.close() }

// Share implements httpfront.Replicas.
func (p *Replicas) Share(n *httpfront.Session) (*server.Client, httpfront.Copy) {
	c := &sessionCopy{replicas: p, session: n, id: n.Key(), until: time.Now().Add(sealedTime)}
	return n.Server().NewSharedClient(logID(c.id), n.Send), c
}

// ID implements httpfront.Replicas.
func (p *Replicas) ID(n *httpfront.Session) string {
	return sealID(p.box, copyOf(n).state(), n.Server().View())
}

// Find implements httpfront.Replicas. A client session of another replica, or one that was
// idle for long, is continued.
func (p *Replicas) Find(r *http.Request, s *server.Server, id string) (n *httpfront.Session, done func(), err error) {
	text, until := openID(p.box, id, s.View())
	if text == nil {
		return nil, nil, httpfront.ErrNoSession
	}
	if n, done = p.front.FindSession(text.id(), r); n != nil {
		return n, done, nil
	}
	state := text.state(until)
	if httpfront.Sender(r) != state.sender {
		return nil, nil, httpfront.ErrNoSession
	}
	return p.front.ContinueSession(r, s, state.id, func(n *httpfront.Session) bool { return copyOf(n).begin(state) })
}

// hasEnded reports whether a client has ended a session, as far as this replica or the store
// knows.
func (p *Replicas) hasEnded(c *sessionCopy) bool {
	if known, _ := p.known.Get(context.Background(), endedKey+c.id); known != nil {
		return true
	}
	isEnded := p.get(endedKey, c) != ""
	if isEnded {
		p.remember(c.id)
	}
	return isEnded
}

// remember records on this replica that a client session has ended. After sealedTime the ID of
// the session is no longer valid, so the record expires.
func (p *Replicas) remember(id string) {
	_ = p.known.Set(context.Background(), endedKey+id, []byte("yes"), sealedTime) // it is in memory
}

// Keys of the store. The ID of the session follows.
const (
	endedKey = "ended:"
	levelKey = "level:"
)

// get returns a value about a session from the store; empty if there is none, or if the store
// cannot be used.
func (p *Replicas) get(key string, c *sessionCopy) string {
	value, err := p.store.Get(context.Background(), key+c.id)
	if err != nil {
		p.log.Debug().Err(err).Msg("could not read the state of a client session")
	}
	return string(value)
}

// set keeps a value about a session in the store while its ID is valid.
func (p *Replicas) set(key string, c *sessionCopy, value string) {
	if err := p.store.Set(context.Background(), key+c.id, []byte(value), max(time.Until(c.until), time.Second)); err != nil {
		p.log.Debug().Err(err).Msg("could not store the state of a client session")
	}
}

package front

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"time"

	"github.com/rs/zerolog"

	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/internal/seal"
	"mcpx/internal/store"
	"mcpx/server"
)

// replicas shares client sessions with the other processes that have the same session key.
// A session has a copy in each process that has served one of its requests. The sealed ID
// contains the state that does not change (sealed.go). Ended sessions and log levels are in the
// store, and the copies send each other notes (notes.go). Its methods may be called concurrently.
type replicas struct {
	id       string // of this process
	box      *seal.Box
	store    store.Store
	isShared bool          // other replicas use the store too
	known    *store.Memory // the ended sessions that this replica knows of, if the store fails or loses them
	sessions *sessions
	log      zerolog.Logger
	urgent   queue // notes that somebody waits for: a flood of notifications must not delay them
	others   queue
	long     chan struct{} // has one element while a long note is published
	takeTime time.Duration // how long other replicas have to take a request to the client
}

const defaultTakeTime = 2 * time.Second

func newReplicas(box *seal.Box, shared store.Store, all *sessions) *replicas {
	p := &replicas{id: rand.Text()[:8], box: box, store: shared, isShared: shared != nil, known: store.NewMemory(), sessions: all, urgent: newQueue(), others: newQueue(), long: make(chan struct{}, 1), takeTime: defaultTakeTime}
	if !p.isShared {
		p.store = p.known
	}
	return p
}

// find returns the client session of a request, which counts as used until done is called. A
// session of another replica, or one that was idle for long, is continued. The error is
// errNoSession for any ID that is not valid for this server and sender.
func (p *replicas) find(r *http.Request, s *server.Server, id string) (n *session, done func(), err error) {
	text, until := openID(p.box, id, s.View())
	if text == nil {
		return nil, nil, errNoSession
	}
	n, done = p.sessions.find(text.id(), streamableHTTP, r)
	if n == nil {
		n, done, err = p.continueSession(r, s, text.state(until))
	}
	if err != nil {
		return nil, nil, err
	}
	n.waitReady()
	if n.isOver() {
		done()
		return nil, nil, errNoSession
	}
	return n, done, nil
}

// continueSession makes a copy of a session in this process. Other requests wait until it
// is ready. The copy is in the table before the store is read: if the session ends
// afterwards, the copy gets the note about it.
func (p *replicas) continueSession(r *http.Request, s *server.Server, state sealedState) (n *session, done func(), err error) {
	if senderOf(r).sum() != state.sender {
		return nil, nil, errNoSession
	}
	own := p.sessions.newSession(state.id, s, r)
	own.until, own.ready = state.until, make(chan struct{})
	n, done, err = p.sessions.addOnce(r.Context(), own)
	if n != own || err != nil {
		return n, done, err
	}
	defer close(own.ready)
	if p.hasEnded(own) {
		p.sessions.end(own)
		return own, done, nil
	}
	own.client.SetProgram(state.clientInfo)
	own.client.Continue(state.revision, state.capabilities, p.get(levelKey, own))
	p.sessions.attach(own)
	s.AssumeRead(own.client)
	p.sessions.later(func(context.Context) { s.SendLogLevel(own.client) })
	p.log.Debug().Str("client", own.client.ID()).Msg("client session continued")
	return own, done, nil
}

// waitReady waits until a session that was continued can be used.
func (n *session) waitReady() {
	if n.ready != nil {
		<-n.ready
	}
}

// Keys of the store. The ID of the session follows.
const (
	endedKey = "ended:"
	levelKey = "level:"
)

// get returns a value about a session from the store; empty if there is none, or if the store
// cannot be used.
func (p *replicas) get(key string, n *session) string {
	value, err := p.store.Get(context.Background(), key+n.id)
	if err != nil {
		p.log.Debug().Err(err).Msg("could not read the state of a client session")
	}
	return string(value)
}

// set keeps a value about a session in the store while its ID is valid.
func (p *replicas) set(key string, n *session, value string) {
	if err := p.store.Set(context.Background(), key+n.id, []byte(value), max(time.Until(n.until), time.Second)); err != nil {
		p.log.Debug().Err(err).Msg("could not store the state of a client session")
	}
}

// remember records on this replica that a client session has ended. After sealedTime the ID of
// the session is no longer valid, so the record expires.
func (p *replicas) remember(id string) {
	_ = p.known.Set(context.Background(), endedKey+id, []byte("yes"), sealedTime) // it is in memory
}

// hasEnded reports whether a client has ended a session, as far as this replica or the store
// knows.
func (p *replicas) hasEnded(n *session) bool {
	if known, _ := p.known.Get(context.Background(), endedKey+n.id); known != nil {
		return true
	}
	isEnded := p.get(endedKey, n) != ""
	if isEnded {
		p.remember(n.id)
	}
	return isEnded
}

// end ends a session on all replicas.
func (p *replicas) end(n *session) {
	p.remember(n.id)
	p.set(endedKey, n, "yes")
	n.server.Remove(n.client)
	p.sessions.end(n)
	_ = p.publish(note{kind: noteEnded, session: n.id}) // without it, the copies end when they are idle
}

// Errors for messages that are for another replica. Replicas forward them through the store.
var (
	errNoStream    = errors.New("the client has no stream to this replica of mcpx; route its requests to one replica by Mcp-Session-Id (sticky routing), or set server.store")
	errNotOffered  = errors.New("the client has no stream to this replica of mcpx, and the store cannot be used now; try again later")
	errNotTaken    = errors.New("the client has no stream to any replica of mcpx; let it open one with GET")
	errNotExpected = errors.New("this replica of mcpx has sent no request with that ID; route requests to one replica by Mcp-Session-Id (sticky routing), or set server.store")
	errStoreDown   = errors.New("the response is for another replica of mcpx, and the store cannot be used now; try again")
)

// forAllCopies are the methods that every copy of a session must handle.
var forAllCopies = map[string]bool{"logging/setLevel": true, "resources/unsubscribe": true, "notifications/roots/list_changed": true}

const methodCancelled = "notifications/cancelled"

// mayForward reports whether replicas forward such messages of a client. Whoever can write to
// the store can send them, so no other is accepted: nobody calls tools through the store.
func mayForward(m rpc.Message) bool {
	return m.IsResponse() || forAllCopies[m.Method] || m.Method == methodCancelled
}

// share forwards a message of a client to the other replicas if it concerns them. Behind a
// load balancer, a response or a cancellation may reach any replica.
func (p *replicas) share(n *session, m rpc.Message, text []byte) error {
	forward := note{kind: noteReceived, session: n.id, payload: text}
	switch {
	case m.IsResponse() && n.client.IsElsewhere(m.ID):
		if !p.isShared {
			return errNotExpected
		}
		err := p.publish(forward)
		if err != nil && !errors.Is(err, errQueueFull) {
			return errStoreDown
		}
		return err
	case forAllCopies[m.Method]:
		if level, ok := server.LogLevel(m.Params); ok && m.Method == "logging/setLevel" {
			p.set(levelKey, n, level)
		}
		_ = p.publish(forward)
	case m.Method == methodCancelled && !n.client.Conn.IsIncoming(rawjson.Get(m.Params, "requestId")):
		_ = p.publish(forward)
	}
	return nil
}

// shareAll is share for a message or a batch. A batch that is too long is refused, so nobody
// gets a part of it.
func (p *replicas) shareAll(n *session, body server.Inbound) error {
	if body.Err == nil {
		return p.share(n, body.Message, body.Text)
	}
	if !n.client.AcceptsBatch(body) || server.BatchSize(body.Text) > server.MaxBatch {
		return nil
	}
	for text := range rawjson.Elements(body.Text) {
		m, err := rpc.ParseStrict(text)
		if err != nil {
			continue
		}
		if err := p.share(n, m, text); err != nil {
			return err
		}
	}
	return nil
}

// offer publishes a message to the client, for the replica that has the GET stream of the
// session. It does not wait. A request fails if no replica takes it.
func (p *replicas) offer(n *session, message []byte) error {
	if !p.isShared {
		return errNoStream
	}
	to := p.others
	if m, err := rpc.Parse(message); err == nil && m.IsRequest() {
		n.expectTaken(m.ID, p.takeTime)
		to = p.urgent
	}
	return p.post(to, note{kind: noteOffered, session: n.id, payload: message})
}

// expectTaken fails a request to the client if no replica takes it in time.
func (n *session) expectTaken(id []byte, limit time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.offered == nil {
		n.offered = map[string]*time.Timer{}
	}
	n.offered[string(id)] = time.AfterFunc(limit, func() {
		if n.taken(id) {
			n.client.Conn.Refuse(id, errNotTaken)
		}
	})
}

// taken ends the wait for a request that was offered. It returns false if nobody waits.
func (n *session) taken(id []byte) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	timer := n.offered[string(id)]
	if timer == nil {
		return false
	}
	timer.Stop()
	delete(n.offered, string(id))
	return true
}

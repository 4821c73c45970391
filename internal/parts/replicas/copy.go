package replicas

import (
	"context"
	"errors"
	"sync"
	"time"

	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/server"
	httpfront "mcpx/server/http"
)

// sessionCopy is the copy of a client session on this replica. It implements httpfront.Copy.
type sessionCopy struct {
	replicas *Replicas
	session  *httpfront.Session
	id       string    // of the session, as its replicas know it
	until    time.Time // the sealed ID is valid until then; begin may change it, before any other use

	mu      sync.Mutex
	newest  streamMark             // of the newest GET stream that this replica knows
	stream  *httpfront.Stream      // the one with that mark; nil if another replica has it
	offered map[string]*time.Timer // requests to the client that were offered to other replicas, by ID
}

// copyOf returns the copy of a session here, nil for a session of legacy SSE.
func copyOf(n *httpfront.Session) *sessionCopy {
	c, _ := n.Copy().(*sessionCopy)
	return c
}

// begin continues a session of another replica. It returns false if the session has ended. The
// session is in the table already: if it ends after begin has read the store, the copy gets the
// note about it.
func (c *sessionCopy) begin(state sealedState) bool {
	if c.replicas.hasEnded(c) {
		return false
	}
	c.until = state.until
	client := c.session.Client()
	client.SetProgram(state.clientInfo)
	client.Continue(state.revision, state.capabilities, c.replicas.get(levelKey, c))
	c.replicas.log.Debug().Str("client", client.ID()).Msg("client session continued")
	return true
}

// Notify implements httpfront.Copy.
func (c *sessionCopy) Notify(ctx context.Context, e httpfront.Event) {
	switch e {
	case httpfront.StreamOpened:
		c.announceStream(ctx)
	case httpfront.Left:
		c.post(noteLeft, nil)
	case httpfront.Ended:
		c.replicas.remember(c.id)
		c.replicas.set(endedKey, c, "yes")
		_ = c.replicas.publish(note{kind: noteEnded, session: c.id}) // without it, the copies end when they are idle
	}
}

// post sends a note to the other copies in the background. It may be lost.
func (c *sessionCopy) post(kind noteKind, payload []byte) {
	if !c.replicas.isShared {
		return
	}
	_ = c.replicas.post(c.replicas.urgent, note{kind: kind, session: c.id, payload: payload})
}

// Errors for messages that are for another replica. Replicas forward them through the store.
var (
	errNoStream     = errors.New("the client has no stream to this replica of mcpx; route its requests to one replica by Mcp-Session-Id (sticky routing), or set server.store")
	errNotOffered   = errors.New("the client has no stream to this replica of mcpx, and the store cannot be used now; try again later")
	errNotDelivered = errors.New("the client has no stream to any replica of mcpx; let it open one with GET")
	errStoreDown    = errors.New("the response is for another replica of mcpx, and the store cannot be used now; try again")
)

// forAllCopies are the methods that every copy of a session must handle.
var forAllCopies = map[string]bool{"logging/setLevel": true, "resources/unsubscribe": true, "notifications/roots/list_changed": true}

const methodCanceled = "notifications/cancelled"

// mayForward reports whether replicas forward such messages of a client. Whoever can write to
// the store can send them, so no other is accepted: nobody calls tools through the store.
func mayForward(m rpc.Message) bool {
	return m.IsResponse() || forAllCopies[m.Method] || m.Method == methodCanceled
}

// Forward implements httpfront.Copy. A batch that is too long is refused, so nobody gets a part
// of it.
func (c *sessionCopy) Forward(body server.Inbound) error {
	if body.Err == nil {
		return c.forward(body.Message, body.Text)
	}
	if !c.session.Client().AcceptsBatch(body) || server.BatchSize(body.Text) > server.MaxBatch {
		return nil
	}
	for text := range rawjson.Elements(body.Text) {
		m, err := rpc.ParseStrict(text)
		if err != nil {
			continue
		}
		if err := c.forward(m, text); err != nil {
			return err
		}
	}
	return nil
}

// forward forwards a message of a client to the other replicas if it concerns them. Behind a
// load balancer, a response or a cancellation may reach any replica.
func (c *sessionCopy) forward(m rpc.Message, text []byte) error {
	p, client := c.replicas, c.session.Client()
	received := note{kind: noteReceived, session: c.id, payload: text}
	switch {
	case m.IsResponse() && client.IsElsewhere(m.ID):
		if !p.isShared {
			return httpfront.ErrNotExpected
		}
		err := p.publish(received)
		if err != nil && !errors.Is(err, errQueueFull) {
			return errStoreDown
		}
		return err
	case forAllCopies[m.Method]:
		if level, ok := server.LogLevel(m.Params); ok && m.Method == "logging/setLevel" {
			p.set(levelKey, c, level)
		}
		_ = p.publish(received)
	case m.Method == methodCanceled && !client.Conn.IsIncoming(rawjson.Get(m.Params, "requestId")):
		_ = p.publish(received)
	}
	return nil
}

// Send implements httpfront.Copy. A request fails if no replica delivers it.
func (c *sessionCopy) Send(message []byte) error {
	p := c.replicas
	if !p.isShared {
		return errNoStream
	}
	to := p.others
	if m, err := rpc.Parse(message); err == nil && m.IsRequest() {
		c.expectDelivery(m.ID, p.deliveryTime)
		to = p.urgent
	}
	return p.post(to, note{kind: noteOffered, session: c.id, payload: message})
}

// expectDelivery fails a request to the client if no replica delivers it in time.
func (c *sessionCopy) expectDelivery(id []byte, limit time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.offered == nil {
		c.offered = map[string]*time.Timer{}
	}
	c.offered[string(id)] = time.AfterFunc(limit, func() {
		if c.endWait(id) {
			c.session.Client().Conn.Refuse(id, errNotDelivered)
		}
	})
}

// endWait ends the wait for a request that was offered. It returns false if nobody waits.
func (c *sessionCopy) endWait(id []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	timer := c.offered[string(id)]
	if timer == nil {
		return false
	}
	timer.Stop()
	delete(c.offered, string(id))
	return true
}

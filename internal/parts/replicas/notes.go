package replicas

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"mcpx/internal/rpc"
	"mcpx/internal/store"
	"mcpx/server"
)

// note is a message between the copies of a client session. It is published through the
// store: a line with words, then the payload.
type note struct {
	kind    noteKind
	from    string // replica
	session string
	payload []byte
}

// noteKind says what a note is about.
type noteKind string

// The kinds.
const (
	noteEnded     noteKind = "ended"    // the client has ended the session
	noteReceived  noteKind = "received" // payload: a message of the client, for the replica that it concerns
	noteOffered   noteKind = "offered"  // payload: a message to the client, for the replica that has the GET stream
	noteDelivered noteKind = "taken"    // payload: the ID of a request that was offered, and that the client has on its GET stream now
	noteLeft      noteKind = "left"     // the client has closed its GET stream to the sender of the note
	noteStream    noteKind = "stream"   // the client has its GET stream to the sender of the note; payload: when it was opened, in microseconds
)

// noteTopic begins notes. Other messages in the store have other topics.
const noteTopic = "session"

// handlers has the handler of each kind of note. It runs on the replicas that have a copy of
// the session.
var handlers = map[noteKind]func(c *sessionCopy, m note){
	noteEnded:     (*sessionCopy).ended,
	noteReceived:  (*sessionCopy).received,
	noteOffered:   (*sessionCopy).deliver,
	noteDelivered: func(c *sessionCopy, m note) { c.endWait(m.payload) },
	noteStream:    (*sessionCopy).moveStream,
	noteLeft:      (*sessionCopy).left,
}

func (n note) text(from string) []byte {
	line := strings.Join([]string{noteTopic, string(n.kind), from, n.session}, " ")
	return append([]byte(line+"\n"), n.payload...)
}

func parseNote(text []byte) (note, bool) {
	line, payload, _ := bytes.Cut(text, []byte("\n"))
	words := strings.Split(string(line[:min(len(line), 200)]), " ")
	if len(words) != 4 || words[0] != noteTopic {
		return note{}, false
	}
	return note{noteKind(words[1]), words[2], words[3], payload}, true
}

// Run receives notes and publishes those in the queues until ctx ends.
func (p *Replicas) Run(ctx context.Context) {
	defer p.tasks.Close()
	if p.isShared {
		p.tasks.Go(func() { p.store.Listen(ctx, p.receive) })
		p.tasks.Go(func() { p.publishAll(ctx, p.urgent) })
		p.tasks.Go(func() { p.publishAll(ctx, p.others) })
	}
	<-ctx.Done()
}

// publishAll publishes the notes of a queue until ctx ends.
func (p *Replicas) publishAll(ctx context.Context, q queue) {
	for {
		select {
		case text := <-q.notes:
			q.bytes.Add(-int64(len(text)))
			if err := p.send(ctx, text); err != nil {
				p.log.Debug().Err(err).Msg("could not publish a note")
				p.notPublished(text)
			}
		case <-ctx.Done():
			return
		}
	}
}

// notPublished fails the request to a client in a note that no replica gets.
func (p *Replicas) notPublished(text []byte) {
	m, _ := parseNote(text)
	c := p.copyHere(m.session)
	if c == nil || m.kind != noteOffered {
		return
	}
	if r, err := rpc.Parse(m.payload); err == nil && r.IsRequest() && c.endWait(r.ID) {
		c.session.Client().Conn.Refuse(r.ID, errNotOffered)
	}
}

// copyHere returns the copy of a session on this replica, nil if there is none.
func (p *Replicas) copyHere(id string) *sessionCopy {
	if n := p.front.Session(id); n != nil {
		return copyOf(n)
	}
	return nil
}

// publish sends a note to the other replicas.
func (p *Replicas) publish(n note) error {
	if !p.isShared {
		return nil
	}
	return p.send(context.Background(), n.text(p.id))
}

// longNote is the size above which notes are published one at a time. Redis closes the
// connection of a replica that gets much more than it reads, and then all sessions lose notes.
const longNote = 1 << 20

// send publishes the text of a note.
func (p *Replicas) send(ctx context.Context, text []byte) error {
	if len(text) > longNote {
		select {
		case p.long <- struct{}{}:
			defer func() { <-p.long }()
		case <-time.After(store.Limit):
			return errQueueFull
		}
	}
	return p.store.Publish(ctx, text)
}

// queue has notes that are published in the background, in their order.
type queue struct {
	notes chan []byte
	bytes *atomic.Int64
}

// Limits of a queue.
const (
	maxNotes     = 5000
	maxNoteBytes = 32 << 20
)

// errQueueFull is returned while notes are published too slowly.
var errQueueFull = errors.New("too many messages to other replicas of mcpx wait for the store; try again later")

func newQueue() queue { return queue{make(chan []byte, maxNotes), new(atomic.Int64)} }

// post is publish in the background. It does not wait, and fails if the queue is full.
func (p *Replicas) post(to queue, n note) error {
	text := n.text(p.id)
	if to.bytes.Add(int64(len(text))) <= maxNoteBytes {
		select {
		case to.notes <- text:
			return nil
		default:
		}
	}
	to.bytes.Add(-int64(len(text)))
	return errQueueFull
}

// receive handles a note. It neither waits nor publishes: it would delay the notes behind it.
func (p *Replicas) receive(text []byte) {
	m, ok := parseNote(text)
	if !ok || m.from == p.id {
		return
	}
	if m.kind == noteEnded && len(m.session) == innerBytes { // also if there is no copy here: the client may come to this replica later
		p.remember(m.session)
	}
	c := p.copyHere(m.session)
	if handle := handlers[m.kind]; handle != nil && c != nil {
		handle(c, m)
	}
}

// ended ends the copy of a session that the client has ended.
func (c *sessionCopy) ended(note) {
	c.replicas.tasks.Go(func() { c.replicas.front.EndSession(c.session) })
}

// left handles that the client has closed its GET stream to another replica. It may have
// opened one here meanwhile, or have a call here.
func (c *sessionCopy) left(note) {
	if !c.session.IsBusy() {
		c.replicas.tasks.Go(func() { c.session.Server().Left(c.session.Client()) })
	}
}

// received handles a message of the client that another replica got.
func (c *sessionCopy) received(m note) {
	body := server.Read(m.payload)
	if body.Err != nil || !mayForward(body.Message) {
		return
	}
	client, release := c.session.Client(), func() {}
	if body.IsRequest() {
		if !client.Quota.TryAcquire() {
			return
		}
		release = client.Quota.Release
	}
	done := c.session.Use()
	finish := func([]byte) {
		release()
		done()
	}
	c.session.Server().Handle(context.Background(), client, body, finish)
	if !body.IsAnswered() {
		finish(nil)
	}
}

// deliver sends a message to the client if it has its GET stream here.
func (c *sessionCopy) deliver(m note) {
	s := c.session.Stream()
	if s == nil {
		return
	}
	r, err := rpc.Parse(m.payload)
	if err != nil || r.IsResponse() || s.Send(m.payload) != nil { // replicas never publish responses, so this note is forged
		return
	}
	if r.IsRequest() {
		c.post(noteDelivered, r.ID)
	}
}

package front

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"strconv"
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
	noteEnded    noteKind = "ended"    // the client has ended the session
	noteReceived noteKind = "received" // payload: a message of the client, for the replica that it concerns
	noteOffered  noteKind = "offered"  // payload: a message to the client, for the replica that has the GET stream
	noteTaken    noteKind = "taken"    // payload: the ID of a request that was offered
	noteStream   noteKind = "stream"   // the client has its GET stream to the sender of the note; payload: when it was opened, in microseconds
)

// noteTopic begins notes. Other messages in the store have other topics.
const noteTopic = "session"

// handlers has the handler of each kind of note. It runs on the replicas that have a copy of
// the session.
var handlers = map[noteKind]func(p *replicas, n *session, m note){
	noteEnded:    (*replicas).ended,
	noteReceived: (*replicas).received,
	noteOffered:  (*replicas).take,
	noteTaken:    func(_ *replicas, n *session, m note) { n.taken(m.payload) },
	noteStream:   (*replicas).moveStream,
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

// run receives notes and publishes those in the queues until ctx ends.
func (p *replicas) run(ctx context.Context) {
	if p.isShared {
		p.sessions.tasks.Go(func() { p.store.Listen(ctx, p.receive) })
		p.sessions.tasks.Go(func() { p.publishAll(ctx, p.urgent) })
		p.publishAll(ctx, p.others)
	}
}

// publishAll publishes the notes of a queue until ctx ends.
func (p *replicas) publishAll(ctx context.Context, q queue) {
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
func (p *replicas) notPublished(text []byte) {
	m, _ := parseNote(text)
	n := p.sessions.get(m.session)
	if n == nil || m.kind != noteOffered {
		return
	}
	if r, err := rpc.Parse(m.payload); err == nil && r.IsRequest() && n.taken(r.ID) {
		n.client.Conn.Refuse(r.ID, errNotOffered)
	}
}

// publish sends a note to the other replicas.
func (p *replicas) publish(n note) error {
	if !p.isShared {
		return nil
	}
	return p.send(context.Background(), n.text(p.id))
}

// longNote is the size above which notes are published one at a time. Redis closes the
// connection of a replica that gets much more than it reads, and then all sessions lose notes.
const longNote = 1 << 20

// send publishes the text of a note.
func (p *replicas) send(ctx context.Context, text []byte) error {
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
func (p *replicas) post(to queue, n note) error {
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
func (p *replicas) receive(text []byte) {
	m, ok := parseNote(text)
	if !ok || m.from == p.id {
		return
	}
	if m.kind == noteEnded && len(m.session) == innerBytes { // also if there is no copy here: the client may come to this replica later
		p.remember(m.session)
	}
	n := p.sessions.get(m.session)
	if handle := handlers[m.kind]; handle != nil && n != nil {
		handle(p, n, m)
	}
}

// ended ends the copy of a session that the client has ended.
func (p *replicas) ended(n *session, _ note) {
	p.sessions.later(func(context.Context) {
		n.waitReady()
		n.server.Remove(n.client)
		p.sessions.end(n)
	})
}

// received handles a message of the client that another replica got.
func (p *replicas) received(n *session, m note) {
	body := server.Read(m.payload)
	if body.Err != nil || !mayForward(body.Message) {
		return
	}
	release := func() {}
	if body.IsRequest() {
		if !n.client.Quota.TryAcquire() {
			return
		}
		release = n.client.Quota.Release
	}
	done := n.use()
	finish := func([]byte) {
		release()
		done()
	}
	n.server.Handle(context.Background(), n.client, body, finish)
	if !body.IsAnswered() {
		finish(nil)
	}
}

// take sends a message to the client if it has its GET stream here.
func (p *replicas) take(n *session, m note) {
	s := n.stream()
	if s == nil {
		return
	}
	r, err := rpc.Parse(m.payload)
	if err != nil || r.IsResponse() || s.Send(m.payload) != nil { // replicas never publish responses, so this note is forged
		return
	}
	if r.IsRequest() {
		_ = p.post(p.urgent, note{kind: noteTaken, session: n.id, payload: r.ID})
	}
}

// announceStream notifies the other replicas in the background, until ctx ends, that the client
// has its GET stream here. Their copies have subscriptions, so they must not expire meanwhile.
// A replica that drains ends the stream at once, so the others keep theirs.
func (p *replicas) announceStream(ctx context.Context, n *session, out *stream) {
	n.mu.Lock()
	mark, isOpen := n.newest, n.getStream == out
	n.mu.Unlock()
	if !isOpen || !p.isShared || p.sessions.isDraining() {
		return
	}
	p.sessions.tasks.Go(func() {
		tick := time.NewTicker(max(p.sessions.limits.SessionIdle/3, time.Second))
		defer tick.Stop()
		for {
			p.postStream(n, mark)
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
}

// streamMark is the order of the GET streams that a client opens on several replicas. The
// newest stays open.
type streamMark struct {
	time    int64  // in microseconds; later than that of every stream that the replica knew of
	replica string // decides between two streams of the same time
}

func (m streamMark) isAfter(other streamMark) bool {
	return cmp.Or(cmp.Compare(m.time, other.time), strings.Compare(m.replica, other.replica)) > 0
}

// moveStream ends the GET stream here if the client has opened the one of the note later. If
// not, the clock of the sender may be late: moveStream notifies it, so that one stream stays.
func (p *replicas) moveStream(n *session, m note) {
	at, _ := strconv.ParseInt(string(m.payload), 10, 64)
	mark := streamMark{at, m.from}
	var ended *stream
	n.mu.Lock()
	n.used = time.Now()
	if mark.isAfter(n.newest) {
		ended, n.getStream, n.newest = n.getStream, nil, mark
	}
	isHere, own := n.getStream != nil, n.newest
	n.mu.Unlock()
	if ended != nil {
		ended.end(nil)
	}
	if isHere {
		p.postStream(n, own)
	}
}

// postStream notifies the other replicas of the GET stream here.
func (p *replicas) postStream(n *session, mark streamMark) {
	_ = p.post(p.urgent, note{kind: noteStream, session: n.id, payload: strconv.AppendInt(nil, mark.time, 10)})
}

// Package work bounds the memory and the processor time of work on large values. All
// clients share one Budget: work that has no room waits for other work to end.
package work

import (
	"container/list"
	"context"
	"runtime"
	"slices"
	"sync"
)

// Budget bounds the bytes of all work that runs at the same time. Waiting clients take turns,
// and the work of one client runs in order. Small work does not wait for large work:
// it has an eighth of the bytes for itself. Large work also leaves one processor free for
// everything else. The methods may be called concurrently.
type Budget struct {
	mu    sync.Mutex
	small lane
	large lane
	peak  int
}

// smallPiece is the size up to which a piece of work counts as small. Such a piece takes
// a few milliseconds.
const smallPiece = 1 << 20

// New returns a Budget of that many bytes.
func New(bytes int) *Budget {
	const unlimited = 1 << 30
	return &Budget{
		small: newLane(bytes/8, unlimited),
		large: newLane(bytes-bytes/8, max(1, runtime.GOMAXPROCS(0)-1)),
	}
}

// Peak returns the most bytes that were in use at the same time.
func (b *Budget) Peak() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.peak
}

// Piece is a piece of work.
type Piece struct {
	Client string // clients take turns
	Bytes  int    // memory that the work needs for itself

	// Work on the same key shares one value, see Lease.Value.
	Key      any // nil: nothing is shared
	KeyBytes int // memory of the value
}

func (p Piece) all() int { return p.Bytes + p.KeyBytes }

// Acquire waits until there is room for a piece of work, or until the context ends. A piece
// larger than the budget runs alone. The caller must Release the lease, and must not hold
// another one: two clients could wait for each other.
func (b *Budget) Acquire(ctx context.Context, p Piece) (*Lease, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	l := &Lease{budget: b, lane: &b.large, piece: p}
	if p.all() <= smallPiece {
		l.lane = &b.small
	}
	if b.start(l) {
		return l, nil
	}
	select {
	case <-l.granted:
		return l, nil
	case <-ctx.Done():
		l.Release()
		return nil, context.Cause(ctx)
	}
}

// start starts a piece at once, or puts it into a queue and returns false.
func (b *Budget) start(l *Lease) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if isAlone := l.lane.clients.Len() == 0; isAlone && l.piece.Key == nil && l.lane.running < l.lane.turns && l.lane.makeRoom(l) {
		l.lane.run(l)
		b.peak = max(b.peak, b.small.used+b.large.used)
		return true
	}
	l.granted = make(chan struct{})
	l.lane.add(l)
	b.grant(l.lane)
	return false
}

// grant starts waiting work in a lane. The caller holds mu.
func (b *Budget) grant(lane *lane) {
	for lane.grantNext() {
		b.peak = max(b.peak, b.small.used+b.large.used)
	}
}

// lane is a part of a budget with its own queue.
type lane struct {
	limit   int // bytes
	turns   int // pieces that may use a processor
	used    int
	running int
	clients *list.List               // of *queue: clients with waiting work, the next one first
	queues  map[string]*list.Element // the same, by client
	values  map[any]*value
}

// queue has the waiting work of one client, the oldest first.
type queue struct {
	client string
	leases []*Lease
}

func newLane(limit, turns int) lane {
	return lane{limit: limit, turns: turns, clients: list.New(), queues: map[string]*list.Element{}, values: map[any]*value{}}
}

// add puts a piece into the queue of its client.
func (l *lane) add(lease *Lease) {
	e, ok := l.queues[lease.piece.Client]
	if !ok {
		e = l.clients.PushBack(&queue{client: lease.piece.Client})
		l.queues[lease.piece.Client] = e
	}
	q := e.Value.(*queue)
	q.leases = append(q.leases, lease)
	if key := lease.piece.Key; key != nil {
		v := l.values[key]
		if v == nil {
			v = &value{bytes: lease.piece.KeyBytes, turn: make(chan struct{}, 1)}
			l.values[key] = v
		}
		v.waiting++
		lease.value = v
	}
}

// remove removes a piece from its queue, if it waits.
func (l *lane) remove(lease *Lease) {
	e, ok := l.queues[lease.piece.Client]
	if !ok {
		return
	}
	q := e.Value.(*queue)
	i := slices.Index(q.leases, lease)
	if i < 0 {
		return
	}
	if q.leases = slices.Delete(q.leases, i, i+1); len(q.leases) == 0 {
		l.clients.Remove(e)
		delete(l.queues, q.client)
	}
	if lease.value != nil {
		lease.value.waiting--
		l.dropUnused(lease.piece.Key)
	}
}

// free gives back the bytes of a piece that ran.
func (l *lane) free(lease *Lease) {
	l.used -= lease.piece.Bytes
	if lease.value != nil {
		lease.value.users--
		l.dropUnused(lease.piece.Key)
	}
}

// grantNext starts the first piece of the next client; false if none waits, or if there is
// no room for it.
func (l *lane) grantNext() bool {
	first := l.clients.Front()
	if first == nil || l.running >= l.turns {
		return false
	}
	q := first.Value.(*queue)
	lease := q.leases[0]
	if !l.makeRoom(lease) {
		return false
	}
	if v := lease.value; v != nil {
		v.users++ // before remove, which drops unused values
		if !v.isCounted {
			v.isCounted = true
			l.used += v.bytes
		}
	}
	l.remove(lease)
	if len(q.leases) > 0 {
		l.clients.MoveToBack(first)
	}
	l.run(lease)
	close(lease.granted)
	return true
}

// run counts a piece that starts.
func (l *lane) run(lease *Lease) {
	l.used += lease.piece.Bytes
	l.running++
	lease.isRunning, lease.isHeld = true, true
}

// makeRoom reports whether there is room for a piece. If necessary, it drops values that only
// waiting work needs.
func (l *lane) makeRoom(lease *Lease) bool {
	need := lease.piece.Bytes
	if v := lease.value; v != nil && !v.isCounted {
		need += v.bytes
	}
	for _, v := range l.values {
		if l.used+need <= l.limit {
			break
		}
		if v != lease.value && v.users == 0 {
			l.uncount(v)
		}
	}
	inUse := l.used
	if v := lease.value; v != nil && v.isCounted && v.users == 0 {
		inUse -= v.bytes // its own value only
	}
	return l.used+need <= l.limit || inUse == 0
}

// uncount drops a built value and no longer counts its bytes.
func (l *lane) uncount(v *value) {
	if v.isCounted {
		v.isCounted, v.isBuilt, v.built = false, false, nil
		l.used -= v.bytes
	}
}

// dropUnused drops a value that nobody uses or waits for.
func (l *lane) dropUnused(key any) {
	if v := l.values[key]; v.users == 0 && v.waiting == 0 {
		l.uncount(v)
		delete(l.values, key)
	}
}

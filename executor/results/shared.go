package results

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"mcpx/internal/store"
	"mcpx/internal/work"
)

// Sharing lets other replicas read what a Store keeps.
type Sharing struct {
	Store store.Store // nil: nothing is shared
	Space string      // results of another space are never found
}

// handle is the id of a kept result, with a remark if other replicas cannot read it.
type handle struct {
	id    string
	place string // empty, or onlyHere
}

const onlyHere = " (only on this replica)"

// sharedID is the form of ids when results are shared: the number, and a random part that
// keeps replicas apart. Any other id never becomes part of a key.
var sharedID = regexp.MustCompile(`^r[0-9]{1,9}-[a-z2-7]{4}$`)

// idTries is how many random parts are tried for an id.
const idTries = 4

// isShared reports whether the result may be in the shared store.
func (s *Store) isShared(id string) bool { return s.Store != nil && sharedID.MatchString(id) }

// key returns the key of a result. It has a hash of the client's name, so that the name of
// one client cannot lead to the results of another.
func (s *Store) key(client, id string) string {
	sum := sha256.Sum256([]byte(s.Space + "\x00" + client))
	return fmt.Sprintf("result:%x:%s", sum[:16], id)
}

// share stores a result for other replicas. It returns the id, which no other result of the
// client has, and whether the result is stored.
func (s *Store) share(client string, number int, k kept) (id string, ok bool) {
	var value []byte
	if s.Store.Err() == nil {
		value = pack(k)
	}
	for range idTries {
		id = fmt.Sprintf("r%d-%s", number, strings.ToLower(rand.Text()[:4]))
		if value == nil {
			return id, false
		}
		ok, err := s.Store.Add(context.Background(), s.key(client, id), value, s.Idle)
		if ok || err != nil {
			return id, ok
		}
	}
	return id, false
}

// fetch returns a result that another replica has stored. It is kept here as well, since
// later requests often read it again. Requests for the same result fetch it once. missing is
// the error if there is none.
func (s *Store) fetch(ctx context.Context, client, id string, missing error) (kept, error) {
	r, err := s.open(ctx, client, id, missing)
	if err != nil {
		return kept{}, err
	}
	lease, err := s.Work.Acquire(ctx, work.Piece{Client: client, Key: r.key, KeyBytes: fetchWeight * r.size})
	if err != nil {
		return kept{}, err
	}
	defer lease.Release()
	lease.Idle() // it waits for the store
	k, err := lease.Value(ctx, func() (any, error) { return s.fetchNow(ctx, client, r) })
	if err != nil {
		return kept{}, err
	}
	return k.(kept), nil
}

// fetchWeight is how much memory fetch needs for each byte of a result, as TestWeights
// measures it.
const fetchWeight = 4

// fetchNow reads a result from the shared store, unless another request has just done that.
func (s *Store) fetchNow(ctx context.Context, client string, r remote) (kept, error) {
	if k, err := s.local(client, r.id); err == nil {
		return k, nil
	}
	whole, err := s.part(ctx, r, 0, r.size)
	if err != nil {
		return kept{}, err
	}
	k := newKept(whole.text, whole.text[r.data:r.dataEnd])
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.client(client); c.results[r.id] == nil {
		now := time.Now()
		s.insert(&entry{client: client, id: r.id, kept: k, used: now, shared: now, isCopy: true})
	}
	return k, nil
}

// remote is a result in the shared store.
type remote struct {
	id, key string
	start   []byte // its first bytes
	*packed
}

// open finds a result in the shared store and postpones its expiry. It reads the header,
// which says how many bytes follow, and so how long the store may take for them. missing
// is the error if there is no such result.
func (s *Store) open(ctx context.Context, client, id string, missing error) (r remote, err error) {
	r.id, r.key = id, s.key(client, id)
	if r.start, err = s.Store.Part(ctx, r.key, 0, headerBytes); err != nil {
		return r, unreachable(ctx, id)
	}
	if r.start == nil {
		return r, missing
	}
	if r.packed, err = readHeader(r.start); err != nil {
		return r, damaged(id)
	}
	s.later(s.keep(client, id))
	return r, nil
}

// unreachable is the error for a result that this replica does not have while the store
// cannot be used. The reason is in the log: it may have addresses.
func unreachable(ctx context.Context, id string) error {
	if canceled(ctx) != nil {
		return canceled(ctx)
	}
	return fmt.Errorf("no result %q on this replica, and the store cannot be used now; try again later, or call the tool again", id)
}

func damaged(id string) error { return fmt.Errorf("%s: %w; call the tool again", id, errPacked) }

// readPart is window for a result that another replica has stored. It reads only the blocks
// that it needs.
func (s *Store) readPart(ctx context.Context, client string, q Query, missing error) (string, error) {
	r, err := s.open(ctx, client, q.ID, missing)
	if err != nil {
		return "", err
	}
	from := max(0, min(q.startIn(r.size), r.size)-utf8Max)
	want := min(s.budget(), blockBytes) * wantedPerToken
	if q.Limit > 0 {
		want = min(want, q.Limit+2*utf8Max)
	}
	for ; ; want *= 2 {
		found, err := s.part(ctx, r, from, min(from+want, r.size))
		if err != nil {
			return "", err
		}
		if answer, ok, err := s.window(found, q); ok || err != nil {
			return answer, err
		}
	}
}

// Sizes for readPart.
const (
	utf8Max        = 4 // bytes of a character that may begin before the offset
	wantedPerToken = 8 // bytes to read for each token; doubled if they are not enough
)

// part reads a part of the text of a result, and perhaps more.
func (s *Store) part(ctx context.Context, r remote, from, to int) (excerpt, error) {
	first, end := r.stored(from, to)
	end = min(end, packedBytes)
	stored := r.start[min(first, len(r.start)):min(end, len(r.start))]
	if end > len(r.start) {
		var err error
		if stored, err = s.Store.Part(ctx, r.key, first, end); err != nil {
			return excerpt{}, unreachable(ctx, r.id)
		}
	}
	text, at, err := r.text(stored, from)
	if err != nil || at+len(text) < to {
		return excerpt{}, damaged(r.id)
	}
	return excerpt{text, at, r.size}, nil
}

// keep returns a task that postpones the expiry of a shared result after its use.
func (s *Store) keep(client, id string) func() {
	return func() { _ = s.Store.Keep(context.Background(), s.key(client, id), s.Idle) }
}

// remove returns a task that removes a shared result.
func (s *Store) remove(client, id string) func() {
	return func() { _ = s.Store.Delete(context.Background(), s.key(client, id)) }
}

// maxTasks bounds the tasks that wait. Further ones are dropped: a result that is not removed
// expires.
const maxTasks = 1000

// background runs tasks one after the other. Each takes no longer than a request to the
// store.
type background struct {
	waiting errgroup.Group
	turn    chan struct{}
	isOver  atomic.Bool // tasks that have not begun are dropped
}

func newBackground() *background {
	b := &background{turn: make(chan struct{}, 1)}
	b.waiting.SetLimit(maxTasks)
	return b
}

// later runs a task in the background, unless too many wait.
func (b *background) later(task func()) {
	b.waiting.TryGo(func() error {
		b.turn <- struct{}{}
		defer func() { <-b.turn }()
		if !b.isOver.Load() {
			task()
		}
		return nil
	})
}

// closeTime bounds how long Close waits for tasks of a slow store, besides the one that runs.
const closeTime = time.Second

// Close waits for the tasks in the background, and drops those that take too long. It is
// called before the store is closed.
func (b *background) Close() {
	drop := time.AfterFunc(closeTime, func() { b.isOver.Store(true) })
	defer drop.Stop()
	_ = b.waiting.Wait()
}

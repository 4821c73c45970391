package results

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"mcpx/internal/store"
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
// later requests often read it again. missing is the error if there is none.
func (s *Store) fetch(client, id string, missing error) (kept, error) {
	value, err := s.value(s.key(client, id))
	switch {
	case err != nil:
		return kept{}, unreachable(id)
	case value == nil:
		return kept{}, missing
	}
	k, err := unpack(value)
	if err != nil {
		return kept{}, fmt.Errorf("%s: %w; call the tool again", id, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.client(client); c.results[id] == nil {
		now := time.Now()
		s.insert(&entry{client: client, id: id, kept: k, used: now, shared: now, isCopy: true})
	}
	s.later(s.keep(client, id))
	return k, nil
}

// value returns a packed result, nil if there is none. The header comes first: it says how
// many bytes follow, and so how long the store may take for them.
func (s *Store) value(key string) ([]byte, error) {
	start, err := s.Store.Part(context.Background(), key, 0, headerBytes)
	if err != nil || len(start) < headerBytes {
		return start, err
	}
	p, _ := readHeader(start) // unpack reports the error
	if p == nil {
		return start, nil
	}
	_, end := p.stored(0, p.size)
	rest, err := s.Store.Part(context.Background(), key, headerBytes, min(end, packedBytes))
	return append(start, rest...), err
}

// unreachable is the error for a result that this replica does not have while the store
// cannot be used. The reason is in the log: it may have addresses.
func unreachable(id string) error {
	return fmt.Errorf("no result %q on this replica, and the store cannot be used now; try again later, or call the tool again", id)
}

// readPart is window for a result that another replica has stored. It reads only the blocks
// that it needs.
func (s *Store) readPart(client string, q Query, missing error) (string, error) {
	key := s.key(client, q.ID)
	start, err := s.Store.Part(context.Background(), key, 0, headerBytes)
	switch {
	case err != nil:
		return "", unreachable(q.ID)
	case start == nil:
		return "", missing
	}
	p, err := readHeader(start)
	if err != nil {
		return "", fmt.Errorf("%s: %w; call the tool again", q.ID, err)
	}
	s.later(s.keep(client, q.ID))
	from := max(0, min(q.startIn(p.size), p.size)-utf8Max)
	want := min(s.budget(), blockBytes) * wantedPerToken
	if q.Limit > 0 {
		want = min(want, q.Limit+2*utf8Max)
	}
	for ; ; want *= 2 {
		to := min(from+want, p.size)
		found, err := s.part(key, p, start, span{from, to})
		if errors.Is(err, errPacked) {
			return "", fmt.Errorf("%s: %w; call the tool again", q.ID, err)
		}
		if err != nil {
			return "", unreachable(q.ID)
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

// span is a part of a text.
type span struct{ from, to int }

// part reads a part of the text of a packed result, of which start is the beginning.
func (s *Store) part(key string, p *packed, start []byte, part span) (excerpt, error) {
	first, end := p.stored(part.from, part.to)
	stored := start[min(first, len(start)):min(end, len(start))]
	if end > len(start) {
		var err error
		if stored, err = s.Store.Part(context.Background(), key, first, end); err != nil {
			return excerpt{}, err
		}
	}
	text, at, err := p.text(stored, part.from)
	if err != nil || at+len(text) < part.to {
		return excerpt{}, errPacked
	}
	return excerpt{text, at, p.size}, nil
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

// background runs tasks one after the other, in a goroutine that ends when there are none.
// Each takes no longer than a request to the store.
type background struct {
	mu      sync.Mutex
	tasks   []func()
	isBusy  bool
	running sync.WaitGroup
}

// later runs a task in the background, unless too many wait.
func (b *background) later(task func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.tasks) < maxTasks {
		b.tasks = append(b.tasks, task)
	}
	if !b.isBusy {
		b.isBusy = true
		b.running.Go(b.work)
	}
}

func (b *background) work() {
	for {
		b.mu.Lock()
		if len(b.tasks) == 0 {
			b.isBusy, b.tasks = false, nil
			b.mu.Unlock()
			return
		}
		task := b.tasks[0]
		b.tasks = b.tasks[1:]
		b.mu.Unlock()
		task()
	}
}

// closeTime bounds how long Close waits for tasks of a slow store, besides the one that runs.
const closeTime = time.Second

// Close waits for the tasks in the background, and drops those that take too long. It is
// called before the store is closed.
func (b *background) Close() {
	drop := time.AfterFunc(closeTime, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.tasks = nil
	})
	defer drop.Stop()
	b.running.Wait()
}

package replicas

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

	"mcpx/executor/results"
	"mcpx/internal/store"
)

// shelf implements results.Shelf in the store that replicas share.
type shelf struct {
	store store.Store
	space string // results of another space are never found
	*background
}

// idForm is the form of ids: the number, and a random part that keeps replicas apart. Any other
// id never becomes part of a key.
var idForm = regexp.MustCompile(`^r[0-9]{1,9}-[a-z2-7]{4}$`)

// idTries is how many random parts are tried for an id.
const idTries = 4

// key returns the key of a result. It has a hash of the client's name, so that the name of
// one client cannot lead to the results of another.
func (s *shelf) key(client, id string) string {
	sum := sha256.Sum256([]byte(s.space + "\x00" + client))
	return fmt.Sprintf("result:%x:%s", sum[:16], id)
}

// Put implements results.Shelf. It waits for the store.
func (s *shelf) Put(client string, number int, k results.Kept, keep time.Duration) (id string, ok bool) {
	var value []byte
	if s.store.Err() == nil {
		value = pack(k)
	}
	for range idTries {
		id = fmt.Sprintf("r%d-%s", number, strings.ToLower(rand.Text()[:4]))
		if value == nil {
			return id, false
		}
		ok, err := s.store.Add(context.Background(), s.key(client, id), value, keep)
		if ok || err != nil {
			return id, ok
		}
	}
	return id, false
}

// Get implements results.Shelf. It reads the start of the value, which has the length of the
// rest, and so how long the store may take for it.
func (s *shelf) Get(ctx context.Context, client, id string) (results.Found, error) {
	if !idForm.MatchString(id) {
		return results.Found{}, results.ErrNoResult
	}
	start, err := s.store.Part(ctx, s.key(client, id), 0, startBytes)
	if err != nil {
		return results.Found{}, unreachable(ctx, id)
	}
	p, ok := readHeader(start)
	if !ok { // nothing, or a format of another version of mcpx
		return results.Found{}, results.ErrNoResult
	}
	return results.Found{Size: p.size, Read: func(ctx context.Context) (results.Kept, error) {
		rest, err := s.store.Part(ctx, s.key(client, id), len(start), headerBytes+p.body) // nothing if start has all
		if err != nil {
			return results.Kept{}, unreachable(ctx, id)
		}
		k, err := p.unpack(start[headerBytes:], rest)
		if err != nil {
			return results.Kept{}, fmt.Errorf("%s: %w; call the tool again", id, err)
		}
		return k, nil
	}}, nil
}

// unreachable is the error for a result that this replica does not have while the store
// cannot be used. The reason is in the log: it may have addresses.
func unreachable(ctx context.Context, id string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("no result %q on this replica, and the store cannot be used now; try again later, or call the tool again", id)
}

// Keep implements results.Shelf.
func (s *shelf) Keep(client, id string, keep time.Duration) {
	key := s.key(client, id)
	s.later(func() {
		if keep <= 0 {
			_ = s.store.Delete(context.Background(), key)
			return
		}
		_ = s.store.Keep(context.Background(), key, keep)
	})
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

// closeTime bounds how long close waits for tasks of a slow store, besides the one that runs.
const closeTime = time.Second

// close waits for the tasks in the background, and drops those that take too long. It is
// called before the store is closed.
func (b *background) close() {
	drop := time.AfterFunc(closeTime, func() { b.isOver.Store(true) })
	defer drop.Stop()
	_ = b.waiting.Wait()
}

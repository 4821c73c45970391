// Package redis is the store of replicas in Redis or Valkey.
package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"mcpx/internal/neterr"
	"mcpx/internal/store"
	"mcpx/internal/tasks"
)

// Store is a store.Store in Redis or Valkey: one server, a cluster, or servers behind Sentinel.
//
// After a request that fails, all requests fail at once until a probe in the background
// succeeds, so that a server that hangs delays only the requests that notice it.
type Store struct {
	client  goredis.UniversalClient
	address string
	prefix  string // of all keys, with the colon
	Options

	requests, failures atomic.Uint64

	// Start connects in the background, so that the state is known and logged before the
	// first request. It is safe to call twice.
	Start func()

	suspect tasks.Signal // a request has failed
	closed  context.Context
	close   context.CancelFunc
	tasks   tasks.Group

	mu     sync.Mutex
	err    error // why the store cannot be used now; nil if it can
	isDown bool  // the last probe failed, which was logged
	since  time.Time
}

// Options are the settings of a Store.
type Options struct {
	Log   zerolog.Logger
	Limit time.Duration // of requests, instead of store.Limit; 0: that one
}

// Time for the bytes that a request moves.
const (
	timePerByte = time.Second / (8 << 20) // 8 MiB per second; a slower network is too slow for long values
	maxTransfer = 4 * time.Second         // for about 32 MiB; longer values get no more
)

// transferTime returns the time for a number of bytes.
func transferTime(bytes int) time.Duration { return min(time.Duration(bytes)*timePerByte, maxTransfer) }

// Times between probes.
const (
	probeEvery = 5 * time.Second        // while the store can be used, so that its state is known without requests
	retryEvery = 300 * time.Millisecond // about, while it cannot
)

// Open returns the store at an address, which store.CheckAddress describes. It connects
// with the first request, or with Start.
func Open(address string, o Options) (*Store, error) {
	o.Limit = cmp.Or(o.Limit, store.Limit)
	parsed, err := parse(address, o.Limit)
	if err != nil {
		return nil, err
	}
	r := &Store{
		client: parsed.connect(), address: parsed.shown, prefix: parsed.prefix + ":", Options: o,
		suspect: tasks.NewSignal(), since: time.Now(),
	}
	r.closed, r.close = context.WithCancel(context.Background())
	r.Start = sync.OnceFunc(func() { r.tasks.Go(r.watch) })
	return r, nil
}

// watch probes the server until Close.
func (r *Store) watch() {
	for r.closed.Err() == nil {
		next := probeEvery
		if !r.probe() {
			next = jitter(retryEvery)
		}
		select {
		case <-r.suspect:
		case <-time.After(next):
		case <-r.closed.Done():
		}
	}
}

// probe reports whether the server can be used. It writes a value, because a server that
// answers may still refuse writes.
func (r *Store) probe() bool {
	ctx, cancel := context.WithTimeout(r.closed, r.Limit)
	defer cancel()
	err := r.client.Set(ctx, r.prefix+"probe", "1", time.Minute).Err()
	if r.closed.Err() != nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if wasDown := r.isDown; wasDown != (err != nil) {
		r.isDown, r.since = err != nil, time.Now()
		if r.isDown {
			r.Log.Warn().Str("store", r.address).Str("reason", reason(err, r.Limit)).Msg("the store cannot be used; mcpx goes on without it")
		} else {
			r.Log.Info().Str("store", r.address).Msg("the store can be used again")
		}
	}
	r.err = unusable(err, r.Limit)
	return err == nil
}

// unusable returns the error for requests to a store that cannot be used.
func unusable(err error, limit time.Duration) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the store cannot be used: %s", reason(err, limit))
}

// reason returns why a request with that time limit failed, in plain words.
func reason(err error, limit time.Duration) string {
	var failed net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &failed) && failed.Timeout() {
		return fmt.Sprintf("no answer within %s", limit.Round(time.Millisecond))
	}
	return neterr.Reason(err)
}

// do makes a request that moves that many bytes, 0 for few, unless the store cannot be used.
func (r *Store) do(ctx context.Context, bytes int, request func(ctx context.Context) error) error {
	if err := r.Err(); err != nil {
		return err
	}
	r.Start()
	r.requests.Add(1)
	limit := r.Limit + transferTime(bytes)
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := request(limited)
	if err == nil || errors.Is(err, goredis.Nil) {
		return err
	}
	if over := ended(ctx); over != nil {
		return over // says nothing about the store
	}
	r.failures.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = unusable(err, limit)
	r.suspect.Notify()
	return r.err
}

// ended returns why a context has ended, nil if it has not. A connection may notice its
// deadline before the context does.
func ended(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && ctx.Err() == nil && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return context.Cause(ctx)
}

// Get implements store.Store.
func (r *Store) Get(ctx context.Context, key string) (value []byte, err error) {
	err = r.do(ctx, 0, func(ctx context.Context) (err error) {
		value, err = r.client.Get(ctx, r.prefix+key).Bytes()
		return err
	})
	if errors.Is(err, goredis.Nil) {
		return nil, nil
	}
	return value, err
}

// Part implements store.Store.
func (r *Store) Part(ctx context.Context, key string, from, to int) (part []byte, err error) {
	if to <= from { // GETRANGE includes its end, and -1 means the last byte
		return nil, nil
	}
	err = r.do(ctx, to-from, func(ctx context.Context) (err error) {
		part, err = r.client.GetRange(ctx, r.prefix+key, int64(from), int64(to)-1).Bytes()
		return err
	})
	if len(part) == 0 {
		part = nil
	}
	return part, err
}

// Set implements store.Store.
func (r *Store) Set(ctx context.Context, key string, value []byte, keep time.Duration) error {
	return r.do(ctx, len(value), func(ctx context.Context) error {
		return r.client.Set(ctx, r.prefix+key, value, atLeast(keep)).Err()
	})
}

// Add implements store.Store.
func (r *Store) Add(ctx context.Context, key string, value []byte, keep time.Duration) (bool, error) {
	err := r.do(ctx, len(value), func(ctx context.Context) error {
		return r.client.SetArgs(ctx, r.prefix+key, value, goredis.SetArgs{Mode: "NX", TTL: atLeast(keep)}).Err()
	})
	if errors.Is(err, goredis.Nil) {
		return false, nil
	}
	return err == nil, err
}

// Keep implements store.Store.
func (r *Store) Keep(ctx context.Context, key string, keep time.Duration) error {
	return r.do(ctx, 0, func(ctx context.Context) error {
		return r.client.PExpire(ctx, r.prefix+key, atLeast(keep)).Err()
	})
}

// atLeast replaces a time that the client library would read as "no expiry".
func atLeast(keep time.Duration) time.Duration { return max(keep, time.Millisecond) }

// Delete implements store.Store.
func (r *Store) Delete(ctx context.Context, key string) error {
	return r.do(ctx, 0, func(ctx context.Context) error { return r.client.Del(ctx, r.prefix+key).Err() })
}

// Publish implements store.Store.
func (r *Store) Publish(ctx context.Context, message []byte) error {
	return r.do(ctx, len(message), func(ctx context.Context) error { return r.client.Publish(ctx, r.channel(), message).Err() })
}

// Listen implements store.Store. The client library connects again after a failure.
func (r *Store) Listen(ctx context.Context, receive func(message []byte)) {
	subscription := r.client.Subscribe(ctx, r.channel())
	defer func() { _ = subscription.Close() }()
	messages := subscription.Channel()
	for {
		select {
		case m, ok := <-messages:
			if !ok { // closed
				return
			}
			receive([]byte(m.Payload))
		case <-ctx.Done():
			return
		}
	}
}

// channel is the channel of all messages.
func (r *Store) channel() string { return r.prefix + "messages" }

// Err implements store.Store.
func (r *Store) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// State returns the state of the store, as the last probe has found it.
func (r *Store) State() store.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := store.State{Health: store.Health{State: "up", Since: r.since.UTC()}, Address: r.address, Requests: r.requests.Load(), Failures: r.failures.Load()}
	if r.isDown {
		s.State, s.Reason = "down", r.err.Error()
	}
	return s
}

// Close ends the connections. It is safe to call twice.
func (r *Store) Close() error {
	r.close()
	r.tasks.Close()
	err := r.client.Close()
	if errors.Is(err, goredis.ErrClosed) {
		return nil
	}
	return err
}

// jitter returns a random time between 0.5 and 1.5 times d.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d) }

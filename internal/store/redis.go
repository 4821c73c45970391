package store

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

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"mcpx/internal/neterr"
	"mcpx/internal/tasks"
)

// Redis is the Store in Redis or Valkey: one server, a cluster, or servers behind Sentinel.
//
// After a request that fails, all requests fail at once until a probe in the background
// succeeds, so that a server that hangs delays only the requests that notice it.
type Redis struct {
	client  redis.UniversalClient
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

// Options are the settings of a Redis store.
type Options struct {
	Log   zerolog.Logger
	Limit time.Duration // of requests, instead of the constant Limit; 0: the constant
}

// State describes a store for people.
type State struct {
	Health
	Address  string `json:"address"`          // without user and password
	Reason   string `json:"reason,omitempty"` // why the store is down
	Requests uint64 `json:"requests"`
	Failures uint64 `json:"failures"`
}

// Health is the part of a State that everybody may see.
type Health struct {
	State string    `json:"state"` // "up" or "down"
	Since time.Time `json:"since"`
}

// Times between probes.
const (
	probeEvery = 5 * time.Second        // while the store can be used, so that its state is known without requests
	retryEvery = 300 * time.Millisecond // about, while it cannot
)

// OpenRedis returns the store at an address, which CheckAddress describes. It connects with
// the first request, or with Start.
func OpenRedis(address string, o Options) (*Redis, error) {
	o.Limit = cmp.Or(o.Limit, Limit)
	parsed, err := parse(address, o.Limit)
	if err != nil {
		return nil, err
	}
	r := &Redis{
		client: parsed.connect(), address: parsed.shown, prefix: parsed.prefix + ":", Options: o,
		suspect: tasks.NewSignal(), since: time.Now(),
	}
	r.closed, r.close = context.WithCancel(context.Background())
	r.Start = sync.OnceFunc(func() { r.tasks.Go(r.watch) })
	return r, nil
}

// watch probes the server until Close.
func (r *Redis) watch() {
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
func (r *Redis) probe() bool {
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
func (r *Redis) do(ctx context.Context, bytes int, request func(ctx context.Context) error) error {
	if err := r.Err(); err != nil {
		return err
	}
	r.Start()
	r.requests.Add(1)
	limit := r.Limit + transferTime(bytes)
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := request(limited)
	if err == nil || errors.Is(err, redis.Nil) {
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

// Get implements Store.
func (r *Redis) Get(ctx context.Context, key string) (value []byte, err error) {
	err = r.do(ctx, 0, func(ctx context.Context) (err error) {
		value, err = r.client.Get(ctx, r.prefix+key).Bytes()
		return err
	})
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	return value, err
}

// Part implements Store.
func (r *Redis) Part(ctx context.Context, key string, from, to int) (part []byte, err error) {
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

// Set implements Store.
func (r *Redis) Set(ctx context.Context, key string, value []byte, keep time.Duration) error {
	return r.do(ctx, len(value), func(ctx context.Context) error {
		return r.client.Set(ctx, r.prefix+key, value, atLeast(keep)).Err()
	})
}

// Add implements Store.
func (r *Redis) Add(ctx context.Context, key string, value []byte, keep time.Duration) (bool, error) {
	err := r.do(ctx, len(value), func(ctx context.Context) error {
		return r.client.SetArgs(ctx, r.prefix+key, value, redis.SetArgs{Mode: "NX", TTL: atLeast(keep)}).Err()
	})
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil, err
}

// Keep implements Store.
func (r *Redis) Keep(ctx context.Context, key string, keep time.Duration) error {
	return r.do(ctx, 0, func(ctx context.Context) error {
		return r.client.PExpire(ctx, r.prefix+key, atLeast(keep)).Err()
	})
}

// atLeast replaces a time that the client library would read as "no expiry".
func atLeast(keep time.Duration) time.Duration { return max(keep, time.Millisecond) }

// Delete implements Store.
func (r *Redis) Delete(ctx context.Context, key string) error {
	return r.do(ctx, 0, func(ctx context.Context) error { return r.client.Del(ctx, r.prefix+key).Err() })
}

// Publish implements Store.
func (r *Redis) Publish(ctx context.Context, message []byte) error {
	return r.do(ctx, len(message), func(ctx context.Context) error { return r.client.Publish(ctx, r.channel(), message).Err() })
}

// Listen implements Store. The client library connects again after a failure.
func (r *Redis) Listen(ctx context.Context, receive func(message []byte)) {
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
func (r *Redis) channel() string { return r.prefix + "messages" }

// Err implements Store.
func (r *Redis) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// State returns the state of the store, as the last probe has found it.
func (r *Redis) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := State{Health: Health{"up", r.since.UTC()}, Address: r.address, Requests: r.requests.Load(), Failures: r.failures.Load()}
	if r.isDown {
		s.State, s.Reason = "down", r.err.Error()
	}
	return s
}

// Close ends the connections. It is safe to call twice.
func (r *Redis) Close() error {
	r.close()
	r.tasks.Close()
	err := r.client.Close()
	if errors.Is(err, redis.ErrClosed) {
		return nil
	}
	return err
}

// jitter returns a random time between 0.5 and 1.5 times d.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d) }

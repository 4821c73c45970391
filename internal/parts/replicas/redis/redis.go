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

	"github.com/gomodule/redigo/redis"
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
	client  client
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
	key := r.prefix + "probe"
	_, err := r.client.do(ctx, key, "SET", key, "1", "PX", time.Minute.Milliseconds())
	if r.closed.Err() != nil {
		return false
	}
	if err != nil {
		r.client.reset()
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

// errNone says that there is no value, or that a condition of a write was not met.
var errNone = errors.New("no value")

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
	if err == nil || errors.Is(err, errNone) {
		return err
	}
	if over := ended(ctx); over != nil {
		return over // says nothing about the store
	}
	r.failures.Add(1)
	r.client.reset()
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

// send sends a command with a key. It returns errNone if the reply is empty.
func (r *Store) send(ctx context.Context, command, key string, args ...any) (any, error) {
	reply, err := r.client.do(ctx, key, command, append([]any{key}, args...)...)
	if reply == nil && err == nil {
		err = errNone
	}
	return reply, err
}

// Get implements store.Store.
func (r *Store) Get(ctx context.Context, key string) (value []byte, err error) {
	err = r.do(ctx, 0, func(ctx context.Context) (err error) {
		value, err = redis.Bytes(r.send(ctx, "GET", r.prefix+key))
		return err
	})
	if errors.Is(err, errNone) {
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
		part, err = redis.Bytes(r.send(ctx, "GETRANGE", r.prefix+key, from, to-1))
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
		_, err := r.send(ctx, "SET", r.prefix+key, value, "PX", milliseconds(keep))
		return err
	})
}

// Add implements store.Store.
func (r *Store) Add(ctx context.Context, key string, value []byte, keep time.Duration) (bool, error) {
	err := r.do(ctx, len(value), func(ctx context.Context) error {
		_, err := r.send(ctx, "SET", r.prefix+key, value, "NX", "PX", milliseconds(keep))
		return err
	})
	if errors.Is(err, errNone) {
		return false, nil
	}
	return err == nil, err
}

// Keep implements store.Store.
func (r *Store) Keep(ctx context.Context, key string, keep time.Duration) error {
	return r.do(ctx, 0, func(ctx context.Context) error {
		_, err := r.send(ctx, "PEXPIRE", r.prefix+key, milliseconds(keep))
		return err
	})
}

// milliseconds returns a time as the server wants it, which refuses 0.
func milliseconds(keep time.Duration) int64 { return max(keep, time.Millisecond).Milliseconds() }

// Delete implements store.Store.
func (r *Store) Delete(ctx context.Context, key string) error {
	return r.do(ctx, 0, func(ctx context.Context) error {
		_, err := r.send(ctx, "DEL", r.prefix+key)
		return err
	})
}

// Publish implements store.Store.
func (r *Store) Publish(ctx context.Context, message []byte) error {
	return r.do(ctx, len(message), func(ctx context.Context) error {
		_, err := r.send(ctx, "PUBLISH", r.channel(), message)
		return err
	})
}

// Listen implements store.Store. It connects again after a failure.
func (r *Store) Listen(ctx context.Context, receive func(message []byte)) {
	connect := func(ctx context.Context) (*conn, error) { return r.client.connect(ctx, r.channel()) }
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.closed, cancel)()
	subscription{channel: r.channel(), connect: connect, limit: r.Limit, receive: receive}.run(ctx)
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
	r.client.close()
	return nil
}

// jitter returns a random time between 0.5 and 1.5 times d.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d) }

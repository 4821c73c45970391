package redis

import (
	"context"
	crypto "crypto/rand"
	"errors"
	"time"

	"github.com/gomodule/redigo/redis"

	"mcpx/internal/store"
)

// lockRetry is about the time between two tries to get a lock.
const lockRetry = 10 * time.Millisecond

// lock is a lock that somebody holds. Its value in the server is fence, which only the
// holder knows. The script compares it, so that a holder whose time is over changes nothing.
type lock struct {
	in    *Store
	key   string // of the lock's value
	fence string
}

// Lock implements store.Store.
func (r *Store) Lock(ctx context.Context, key string) (store.Lock, error) {
	key = r.prefix + key
	// The braces put the lock onto the cluster node of the locked key, where one script can use both.
	l := &lock{in: r, key: r.prefix + "lock:{" + key + "}", fence: crypto.Text()}
	for {
		isSent := false
		err := r.do(ctx, 0, func(ctx context.Context) error {
			isSent = true
			_, err := r.send(ctx, "SET", l.key, l.fence, "NX", "PX", milliseconds(store.LockTime))
			return err
		})
		if err == nil {
			set := func(ctx context.Context, value []byte, keep time.Duration) error { return l.set(ctx, key, value, keep) }
			return store.Lock{Set: set, Unlock: l.unlock}, nil
		}
		if !errors.Is(err, errNone) { // errNone: somebody holds the lock
			if isSent {
				l.abandon()
			}
			return store.Lock{}, err
		}
		select {
		case <-time.After(jitter(lockRetry)):
		case <-ctx.Done():
			return store.Lock{}, context.Cause(ctx)
		}
	}
}

// setLocked replaces or deletes a value. It returns 0 if the lock is no longer held.
const setLocked = `if redis.call("GET", KEYS[2]) ~= ARGV[1] then return 0 end
if ARGV[2] == "" then redis.call("DEL", KEYS[1]) else redis.call("SET", KEYS[1], ARGV[2], "PX", ARGV[3]) end
return 1`

// set replaces the value of a key, or deletes it if the value is empty.
func (l *lock) set(ctx context.Context, key string, value []byte, keep time.Duration) error {
	done := 0
	err := l.in.do(ctx, len(value), func(ctx context.Context) (err error) {
		done, err = redis.Int(l.in.client.do(ctx, key, "EVAL", setLocked, 2, key, l.key, l.fence, value, milliseconds(keep)))
		return err
	})
	if err == nil && done == 0 {
		return store.ErrLockLost
	}
	return err
}

// unlock ends the lock. If the store cannot be used, it does so later.
func (l *lock) unlock() {
	if !l.release(context.Background()) {
		l.abandon()
	}
}

// release reports whether the lock is no longer held.
func (l *lock) release(ctx context.Context) bool {
	err := l.set(ctx, l.key, nil, 0)
	return err == nil || errors.Is(err, store.ErrLockLost)
}

// abandon releases a lock in the background, as soon as the store can be used. Until then it
// is not known whether the lock is held: a request without a response may have set it.
func (l *lock) abandon() {
	l.in.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(l.in.closed, store.LockTime) // then the lock has ended by itself
		defer cancel()
		for {
			select {
			case <-time.After(jitter(retryEvery)): // the request may still be on its way
			case <-ctx.Done():
				return
			}
			if l.release(ctx) {
				return
			}
		}
	})
}

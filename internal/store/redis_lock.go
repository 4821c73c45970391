package store

import (
	"context"
	crypto "crypto/rand"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// LockTime is the time after which a lock ends by itself. Nobody may hold one longer.
const LockTime = 40 * time.Second

// lockRetry is about the time between two tries to get a lock.
const lockRetry = 10 * time.Millisecond

// redisLock is a lock that somebody holds. Its value in the server is fence, which only the
// holder knows. The script compares it, so that a holder whose time is over changes nothing.
type redisLock struct {
	store *Redis
	key   string // of the lock's value
	fence string
}

// Lock implements Store.
func (r *Redis) Lock(ctx context.Context, key string) (Lock, error) {
	key = r.prefix + key
	// The braces put the lock onto the cluster node of the locked key, where one script can use both.
	l := &redisLock{store: r, key: r.prefix + "lock:{" + key + "}", fence: crypto.Text()}
	for {
		isSent := false
		err := r.do(ctx, 0, func(ctx context.Context) error {
			isSent = true
			return r.client.SetArgs(ctx, l.key, l.fence, redis.SetArgs{Mode: "NX", TTL: LockTime}).Err()
		})
		if err == nil {
			set := func(ctx context.Context, value []byte, keep time.Duration) error { return l.set(ctx, key, value, keep) }
			return Lock{set, l.unlock}, nil
		}
		if !errors.Is(err, redis.Nil) { // redis.Nil: somebody holds the lock
			if isSent {
				l.abandon()
			}
			return Lock{}, err
		}
		select {
		case <-time.After(jitter(lockRetry)):
		case <-ctx.Done():
			return Lock{}, context.Cause(ctx)
		}
	}
}

// setLocked replaces or deletes a value. It returns 0 if the lock is no longer held.
const setLocked = `if redis.call("GET", KEYS[2]) ~= ARGV[1] then return 0 end
if ARGV[2] == "" then redis.call("DEL", KEYS[1]) else redis.call("SET", KEYS[1], ARGV[2], "PX", ARGV[3]) end
return 1`

// set replaces the value of a key, or deletes it if the value is empty.
func (l *redisLock) set(ctx context.Context, key string, value []byte, keep time.Duration) error {
	done := 0
	err := l.store.do(ctx, len(value), func(ctx context.Context) (err error) {
		done, err = l.store.client.Eval(ctx, setLocked, []string{key, l.key}, l.fence, value, atLeast(keep).Milliseconds()).Int()
		return err
	})
	if err == nil && done == 0 {
		return ErrLockLost
	}
	return err
}

// unlock ends the lock. If the store cannot be used, it does so later.
func (l *redisLock) unlock() {
	if !l.release(context.Background()) {
		l.abandon()
	}
}

// release reports whether the lock is no longer held.
func (l *redisLock) release(ctx context.Context) bool {
	err := l.set(ctx, l.key, nil, 0)
	return err == nil || errors.Is(err, ErrLockLost)
}

// abandon releases a lock in the background, as soon as the store can be used. Until then it
// is not known whether the lock is held: a request without a response may have set it.
func (l *redisLock) abandon() {
	l.store.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(l.store.closed, LockTime) // then the lock has ended by itself
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

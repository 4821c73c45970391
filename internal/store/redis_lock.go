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
// holder knows. The scripts compare it, so that a holder whose time is over changes nothing.
type redisLock struct {
	store *Redis
	key   string
	fence string
}

// Lock implements Store.
func (r *Redis) Lock(ctx context.Context, key string) (Lock, error) {
	l := &redisLock{store: r, key: r.prefix + key, fence: crypto.Text()}
	for {
		isSent := false
		err := r.do(ctx, func(ctx context.Context) error {
			isSent = true
			return r.client.SetArgs(ctx, l.name(), l.fence, redis.SetArgs{Mode: "NX", TTL: LockTime}).Err()
		})
		if err == nil {
			return l, nil
		}
		if !errors.Is(err, redis.Nil) { // redis.Nil: somebody holds the lock
			if isSent {
				l.abandon()
			}
			return nil, err
		}
		select {
		case <-time.After(jitter(lockRetry)):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// name returns the key of the lock's value. The braces put it onto the cluster node of the
// locked key, where one script can use both.
func (l *redisLock) name() string { return l.store.prefix + "lock:{" + l.key + "}" }

const (
	setLocked = `if redis.call("GET", KEYS[2]) ~= ARGV[1] then return 0 end
redis.call("SET", KEYS[1], ARGV[2], "PX", ARGV[3])
return 1`
	deleteLocked = `if redis.call("GET", KEYS[2]) ~= ARGV[1] then return 0 end
redis.call("DEL", KEYS[1])
return 1`
	unlock = `if redis.call("GET", KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call("DEL", KEYS[1])`
)

// Set implements Lock.
func (l *redisLock) Set(ctx context.Context, value []byte, keep time.Duration) error {
	return l.write(ctx, setLocked, value, atLeast(keep))
}

// Delete implements Lock.
func (l *redisLock) Delete(ctx context.Context) error { return l.write(ctx, deleteLocked, nil, 0) }

// write runs a script that returns 0 if the lock is no longer held.
func (l *redisLock) write(ctx context.Context, script string, value []byte, keep time.Duration) error {
	done := 0
	err := l.store.transfer(ctx, len(value), func(ctx context.Context) (err error) {
		done, err = l.store.client.Eval(ctx, script, []string{l.key, l.name()}, l.fence, value, keep.Milliseconds()).Int()
		return err
	})
	if err == nil && done == 0 {
		return ErrLockLost
	}
	return err
}

// Unlock implements Lock. If the store cannot be used, the lock is released later.
func (l *redisLock) Unlock() {
	if l.release(context.Background()) != nil {
		l.abandon()
	}
}

// release removes the lock if it is still held.
func (l *redisLock) release(ctx context.Context) error {
	return l.store.do(ctx, func(ctx context.Context) error {
		return l.store.client.Eval(ctx, unlock, []string{l.name()}, l.fence).Err()
	})
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
			if l.release(ctx) == nil {
				return
			}
		}
	})
}

// Package store has values, locks and messages that replicas of mcpx share, and those of one
// process in memory. Package redis has them in Redis or Valkey.
//
// A store may fail at any time. No request to it takes longer than Limit, plus the time for
// the bytes that it moves, and mcpx works without it.
package store

import (
	"context"
	"errors"
	"time"
)

// Limit is the longest time that a request to a store takes, besides the time for the bytes
// that it moves. Lock may take longer, while somebody else holds the lock.
const Limit = 250 * time.Millisecond

// LockTime is the time after which a lock ends by itself. Nobody may hold one longer.
const LockTime = 40 * time.Second

// ErrLockLost is returned for a write under a lock that somebody else has taken over.
var ErrLockLost = errors.New("the lock was lost, because it was held for too long")

// Store holds values by key, each for a limited time. Its methods may be called
// concurrently.
type Store interface {
	// Get returns the value of a key, nil if there is none. Its time limit is for short values.
	// Part reads long ones, because it knows their length.
	Get(ctx context.Context, key string) ([]byte, error)
	// Part returns the bytes of a value from one offset up to another: fewer if the value
	// is shorter, nil if it has none there.
	Part(ctx context.Context, key string, from, to int) ([]byte, error)
	// Set replaces the value of a key. The value expires after keep.
	Set(ctx context.Context, key string, value []byte, keep time.Duration) error
	// Add is Set for a key without a value. It returns false if the key has one.
	Add(ctx context.Context, key string, value []byte, keep time.Duration) (bool, error)
	// Keep changes the expiry of a key's value, if there is one: it expires after keep.
	Keep(ctx context.Context, key string, keep time.Duration) error
	// Delete removes the value of a key.
	Delete(ctx context.Context, key string) error
	// Lock waits until nobody else holds the lock of a key. The lock of a process that dies
	// ends by itself.
	Lock(ctx context.Context, key string) (Lock, error)
	// Publish sends a message to all replicas that listen, to this one too.
	Publish(ctx context.Context, message []byte) error
	// Listen calls receive for each message that is published, one after the other, until
	// the context ends. Messages are lost while the store cannot be reached.
	Listen(ctx context.Context, receive func(message []byte))
	// Err returns why the store cannot be used now, nil if it can. It does not wait.
	Err() error
}

// Lock is the lock of a key that somebody holds.
type Lock struct {
	// Set is Store.Set for the key, or Store.Delete if the value is empty. It fails
	// with ErrLockLost if the lock is no longer held.
	Set func(ctx context.Context, value []byte, keep time.Duration) error
	// Unlock ends the lock. It is safe to call twice.
	Unlock func()
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

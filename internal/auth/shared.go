package auth

import (
	"context"
	"strings"
	"sync"
	"time"

	"mcpx/internal/seal"
	"mcpx/internal/store"
)

// Shared is the Store of several replicas, in Redis or Valkey. Its values are sealed, so that
// a reader of that server cannot use them.
type Shared struct {
	store store.Store
	box   *seal.Box

	mu       sync.Mutex
	versions map[string]knownVersion // by key, as they were last read
}

type knownVersion struct {
	version string
	until   time.Time
}

const (
	// sharedTime is how long a sign-in is kept after it was last saved.
	sharedTime = 90 * 24 * time.Hour
	// versionTime is how long a version counts as known. Changes are published, but a
	// message can be lost.
	versionTime = 5 * time.Second
	// versionBytes is the length of a version: the start of a sealed value, with its nonce.
	versionBytes = 19
	maxVersions  = 10_000
)

// changedTopic begins the messages that name a key whose value has changed.
const changedTopic = "token "

// NewShared returns the Store that is in s. Nothing is read yet.
func NewShared(s store.Store, box *seal.Box) *Shared {
	return &Shared{store: s, box: box, versions: map[string]knownVersion{}}
}

// Run receives the changes that other replicas publish, until ctx ends. Without it, Shared
// notices them up to versionTime later.
func (s *Shared) Run(ctx context.Context) {
	s.store.Listen(ctx, func(message []byte) {
		if key, ok := strings.CutPrefix(string(message), changedTopic); ok {
			s.mu.Lock()
			delete(s.versions, key)
			s.mu.Unlock()
		}
	})
}

// Load implements Store. A value that was sealed with another key counts as none.
func (s *Shared) Load(ctx context.Context, key string) (value []byte, version string, err error) {
	sealed, err := s.store.Get(ctx, tokenKey(key))
	if err != nil {
		return nil, "", err
	}
	version = s.learn(key, sealed)
	value, _, _ = s.box.Open(string(sealed), key) // nil after an error
	return value, version, nil
}

// tokenKey returns the key in the store.
func tokenKey(key string) string { return "token:" + key }

// learn remembers the version of a sealed value and returns it. The start of the value is
// enough.
func (s *Shared) learn(key string, sealed []byte) string {
	version := string(sealed[:min(len(sealed), versionBytes)])
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.versions) >= maxVersions {
		clear(s.versions)
	}
	s.versions[key] = knownVersion{version, time.Now().Add(versionTime)}
	return version
}

// Version implements Store.
func (s *Shared) Version(ctx context.Context, key string) (string, error) {
	s.mu.Lock()
	known, ok := s.versions[key]
	s.mu.Unlock()
	if ok && time.Now().Before(known.until) {
		return known.version, nil
	}
	sealed, err := s.store.Part(ctx, tokenKey(key), 0, versionBytes)
	if err != nil {
		return "", err
	}
	return s.learn(key, sealed), nil
}

// Lock implements Store. Save fails if the lock was held for too long and somebody else has
// it now.
func (s *Shared) Lock(ctx context.Context, key string) (Lock, error) {
	lock, err := s.store.Lock(ctx, tokenKey(key))
	if err != nil {
		return nil, err
	}
	return &sharedLock{s, key, lock}, nil
}

// Check implements Store. Whether the store can be reached shows when it is used.
func (s *Shared) Check(context.Context) error { return nil }

// Place implements Store.
func (s *Shared) Place(string) string { return "server.store (encrypted)" }

// sharedLock is the lock of a key.
type sharedLock struct {
	shared *Shared
	key    string
	store.Lock
}

// Save implements Lock.
func (l *sharedLock) Save(ctx context.Context, value []byte) error {
	var sealed []byte
	var err error
	if value == nil {
		err = l.Delete(ctx)
	} else {
		sealed = []byte(l.shared.box.Seal(value, seal.Terms{Label: l.key, Until: time.Now().Add(sharedTime)}))
		err = l.Set(ctx, sealed, sharedTime)
	}
	if err != nil {
		return err
	}
	l.shared.learn(l.key, sealed)
	_ = l.shared.store.Publish(ctx, []byte(changedTopic+l.key)) // if it fails, others notice the change later
	return nil
}

package auth

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"mcpx/internal/authtest"
	"mcpx/internal/seal"
	"mcpx/internal/store"
	"mcpx/internal/store/storetest"
)

func testKey(letter string) seal.Key { return seal.Key(strings.Repeat(letter, seal.KeyBytes)) }

// openShared returns a store of another process: with its own connections, and listening.
func openShared(t *testing.T, s store.Store, keys ...seal.Key) *Shared {
	shared := NewShared(s, seal.New(seal.Token, keys))
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { shared.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return shared
}

func openRedis(t *testing.T, address string) *store.Redis {
	r, err := store.OpenRedis(address, store.Options{Limit: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

var sharedStores = map[string]func(t *testing.T) func() Store{
	"memory": func(t *testing.T) func() Store {
		m := store.NewMemory()
		return func() Store { return openShared(t, m, testKey("a")) }
	},
	"redis": func(t *testing.T) func() Store {
		address := storetest.Start(t).Address()
		return func() Store { return openShared(t, openRedis(t, address), testKey("a")) }
	},
}

// TestShared runs the tests of accounts over stores that replicas share.
func TestShared(t *testing.T) {
	files := testStore
	t.Cleanup(func() { testStore = files })
	for kind, open := range sharedStores {
		t.Run(kind, func(t *testing.T) {
			testStore = open
			for name, test := range map[string]func(*testing.T){
				"sign-in": TestSignInAndUse, "another process": TestSharedStore, "refresh": TestRefresh, "refused": TestRefused,
				"another process refreshes": TestOtherProcessRefreshed, "expired": TestStoredTokenExpired, "single flight": TestSingleFlight,
				"canceled": TestCancelledRefresh, "unsaved": TestUnsavedToken, "more access": TestStepUp, "logout": TestLogout, "wait": TestWait,
				"client credentials": TestClientCredentials, "race": testRace,
			} {
				t.Run(name, test)
			}
		})
	}
}

// testRace lets five processes use tokens that expire again and again. Each expiry costs one
// refresh, and no refresh token is used twice.
func testRace(t *testing.T) {
	const processes, expiries = 5, 30
	s := authtest.New(t)
	open := testStore(t)
	var accounts []*Account
	for range processes {
		accounts = append(accounts, New(open(), zerolog.Nop()).Account(Settings{URL: s.URL}, ""))
	}
	signIn(t, accounts[0])
	for range expiries {
		s.Expire()
		var calls sync.WaitGroup
		for _, a := range accounts {
			calls.Go(func() {
				if status, err := call(t, a, "tools/call"); err != nil || status != http.StatusOK {
					t.Errorf("%d, %v", status, err)
				}
			})
		}
		calls.Wait()
	}
	if got := s.Grants("refresh_token"); got != expiries || s.Reused() != 0 {
		t.Errorf("%d refreshes for %d expiries, %d reused", got, expiries, s.Reused())
	}
}

// TestLostLock checks that a process whose lock has ended overwrites nothing.
func TestLostLock(t *testing.T) {
	server := storetest.Start(t)
	open := func() *Shared { return openShared(t, openRedis(t, server.Address()), testKey("a")) }
	one, two := open(), open()
	first, err := one.Lock(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	server.Do("DEL mcpx:lock:{mcpx:token:key}") // as if its time were over
	second, err := two.Lock(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Save(t.Context(), []byte("new")); err != nil {
		t.Fatal(err)
	}
	for _, value := range [][]byte{[]byte("old"), nil} {
		if err := first.Save(t.Context(), value); !errors.Is(err, store.ErrLockLost) {
			t.Errorf("a lost lock: %v", err)
		}
	}
	first.Unlock()
	second.Unlock()
	if got, _, err := one.Load(t.Context(), "key"); string(got) != "new" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if keys := server.Eternal(); keys != "" {
		t.Errorf("keys that never expire: %s", keys)
	}
}

// recording is a store that keeps what was written, and counts what is read.
type recording struct {
	*store.Memory
	mu      sync.Mutex
	written []byte
	reads   int
	err     error
}

func (r *recording) Lock(ctx context.Context, key string) (store.Lock, error) {
	if r.err != nil {
		return nil, r.err
	}
	lock, err := r.Memory.Lock(ctx, key)
	return &recordingLock{lock, r}, err
}

type recordingLock struct {
	store.Lock
	store *recording
}

func (l *recordingLock) Set(ctx context.Context, value []byte, keep time.Duration) error {
	if keep != 90*24*time.Hour {
		return errors.New("it is not kept for 90 days")
	}
	l.store.written = append(l.store.written, value...)
	return l.Lock.Set(ctx, value, keep)
}

func (r *recording) Part(ctx context.Context, key string, from, to int) ([]byte, error) {
	r.mu.Lock()
	r.reads++
	r.mu.Unlock()
	return r.Memory.Part(ctx, key, from, to)
}

// TestSharedTokensAreSealed checks what a reader of the store sees, and who can open it.
func TestSharedTokensAreSealed(t *testing.T) {
	s := authtest.New(t)
	r := &recording{Memory: store.NewMemory()}
	a := New(openShared(t, r, testKey("a")), zerolog.Nop()).Account(Settings{URL: s.URL}, "")
	signIn(t, a)
	token, _ := a.Token(t.Context())
	if len(r.written) == 0 || bytes.Contains(r.written, []byte(token)) || bytes.Contains(r.written, []byte("issuer")) {
		t.Errorf("the store has %q", r.written)
	}
	for _, row := range []struct {
		name string
		keys []seal.Key
		want bool
	}{
		{"a new key before the old one", []seal.Key{testKey("b"), testKey("a")}, true},
		{"another key", []seal.Key{testKey("b")}, false},
	} {
		got, err := New(openShared(t, r, row.keys...), zerolog.Nop()).Account(Settings{URL: s.URL}, "").Token(t.Context())
		if err != nil || (got == token) != row.want {
			t.Errorf("%s: %q, %v", row.name, got, err)
		}
	}
	value, _ := r.Get(t.Context(), tokenKey(a.key))
	_ = r.Set(t.Context(), tokenKey("other"), value, time.Hour)
	if got, _, err := openShared(t, r, testKey("a")).Load(t.Context(), "other"); got != nil || err != nil {
		t.Errorf("the value of another key: %q, %v", got, err)
	}
}

// TestSharedVersion checks that versions are read once, and again after a change elsewhere.
func TestSharedVersion(t *testing.T) {
	r := &recording{Memory: store.NewMemory()}
	one, two := openShared(t, r, testKey("a")), openShared(t, r, testKey("a"))
	seen := map[string]bool{}
	for range 3 {
		lock, err := one.Lock(t.Context(), "key")
		if err != nil {
			t.Fatal(err)
		}
		if err := lock.Save(t.Context(), []byte("same")); err != nil {
			t.Fatal(err)
		}
		lock.Unlock()
		await(t, func() bool {
			version, err := two.Version(t.Context(), "key")
			own, _ := one.Version(t.Context(), "key")
			return err == nil && !seen[version] && own == version
		})
		version, _ := two.Version(t.Context(), "key")
		seen[version] = true
	}
	r.mu.Lock()
	before := r.reads
	r.mu.Unlock()
	for range 1000 {
		_, _ = two.Version(t.Context(), "key")
	}
	if r.reads-before > 10 {
		t.Errorf("%d requests for 1000 versions", r.reads-before)
	}
}

func await(t *testing.T, done func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); <-time.After(time.Millisecond) {
		if done() {
			return
		}
	}
	t.Fatal("it did not happen")
}

// TestStoreDown checks that a token which is still valid is used while the store is down.
func TestStoreDown(t *testing.T) {
	s := authtest.New(t)
	s.Life = 1000
	r := &recording{Memory: store.NewMemory()}
	a := New(openShared(t, r, testKey("a")), zerolog.Nop()).Account(Settings{URL: s.URL}, "")
	now := time.Now()
	a.now = func() time.Time { return now }
	signIn(t, a)
	r.err = errors.New("the store cannot be used")
	for after, want := range map[time.Duration]bool{0: true, 900 * time.Second: true, 1001 * time.Second: false} {
		now = time.Now().Add(after)
		if token, err := a.Token(t.Context()); (token != "" && err == nil) != want {
			t.Errorf("after %s: %q, %v", after, token, err)
		}
	}
}

package signin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/parts/replicas/redis"
	"mcpx/internal/parts/replicas/storetest"
	"mcpx/internal/parts/signin/signintest"
	"mcpx/internal/seal"
	"mcpx/internal/store"
)

func testKey(letter string) seal.Key { return seal.Key(strings.Repeat(letter, seal.KeyBytes)) }

// openShared returns the vault of a replica in a store.
func openShared(k Keeper, keys ...seal.Key) Vault { return NewShared(k, seal.New(seal.Token, keys)) }

func openRedis(t *testing.T, address string) *redis.Store {
	r, err := redis.Open(address, redis.Options{Limit: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

var sharedStores = map[string]func(t *testing.T) func() Vault{
	"memory": func(t *testing.T) func() Vault {
		m := store.NewMemory()
		return func() Vault { return openShared(m, testKey("a")) }
	},
	"redis": func(t *testing.T) func() Vault {
		address := storetest.Start(t).Address()
		return func() Vault { return openShared(openRedis(t, address), testKey("a")) }
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
				"canceled": TestCanceledRefresh, "unsaved": TestUnsavedToken, "more access": TestStepUp, "logout": TestLogout, "wait": TestWait,
				"client credentials": TestClientCredentials, "race": testRace,
			} {
				t.Run(name, test)
			}
		})
	}
}

// TestForeignCredentials: credentials in a shared store that are not encrypted are not used.
// Whoever can write to the store could send the client secret to another server with them.
func TestForeignCredentials(t *testing.T) {
	s := signintest.New(t)
	m := store.NewMemory()
	a := New(openShared(m, testKey("a")), zerolog.Nop()).account(Settings{URL: s.URL}, "")
	signIn(t, a)
	stored, err := a.load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lock, err := m.Lock(t.Context(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	clear, _ := json.Marshal(stored)
	if err := lock.Set(t.Context(), clear, time.Hour); err != nil {
		t.Fatal(err)
	}
	lock.Unlock()
	other := New(openShared(m, testKey("a")), zerolog.Nop()).account(Settings{URL: s.URL}, "")
	if _, err := call(t, other, "tools/call"); err == nil || !strings.Contains(err.Error(), "its tokens are not encrypted") {
		t.Errorf("a call: %v", err)
	}
}

// testRace lets five processes use tokens that expire again and again. Each expiry costs one
// refresh, and no refresh token is used twice.
func testRace(t *testing.T) {
	const processes, expiries = 5, 30
	s := signintest.New(t)
	open := testStore(t)
	var accounts []*Account
	for range processes {
		accounts = append(accounts, New(open(), zerolog.Nop()).account(Settings{URL: s.URL}, ""))
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
	server, issuer := storetest.Start(t), signintest.New(t)
	open := func() *Account {
		return New(openShared(openRedis(t, server.Address()), testKey("a")), zerolog.Nop()).account(Settings{URL: issuer.URL}, "")
	}
	one, two := open(), open()
	err := one.locked(t.Context(), func(ctx context.Context) error {
		server.Do("DEL mcpx:lock:{mcpx:" + one.key + "}") // as if its time were over
		signIn(t, two)
		if err := one.save(ctx, nil); !errors.Is(err, store.ErrLockLost) {
			t.Errorf("a lost lock: %v", err)
		}
		return one.save(ctx, &credentials{Access: "old"})
	})
	if !errors.Is(err, store.ErrLockLost) {
		t.Errorf("a lost lock: %v", err)
	}
	want, _ := two.Token(t.Context())
	if got, err := open().Token(t.Context()); got != want || got == "" || err != nil {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	if keys := server.Eternal(); keys != "" {
		t.Errorf("keys that never expire: %s", keys)
	}
}

// recording is a store that keeps what was written, and counts what is read.
type recording struct {
	*store.Memory
	written []byte
	reads   atomic.Int32
	isDown  atomic.Bool
}

var errDown = errors.New("the store cannot be used")

func (r *recording) Get(ctx context.Context, key string) ([]byte, error) {
	r.reads.Add(1)
	if r.isDown.Load() {
		return nil, errDown
	}
	return r.Memory.Get(ctx, key)
}

func (r *recording) Lock(ctx context.Context, key string) (store.Lock, error) {
	if r.isDown.Load() {
		return store.Lock{}, errDown
	}
	lock, err := r.Memory.Lock(ctx, key)
	set := lock.Set
	lock.Set = func(ctx context.Context, value []byte, keep time.Duration) error {
		if keep != 90*24*time.Hour {
			return errors.New("it is not kept for 90 days")
		}
		r.written = append(r.written, value...)
		return set(ctx, value, keep)
	}
	return lock, err
}

// TestSharedTokensAreSealed checks what a reader of the store sees, and who can open it.
func TestSharedTokensAreSealed(t *testing.T) {
	s := signintest.New(t)
	r := &recording{Memory: store.NewMemory()}
	a := New(openShared(r, testKey("a")), zerolog.Nop()).account(Settings{URL: s.URL}, "")
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
		got, err := New(openShared(r, row.keys...), zerolog.Nop()).account(Settings{URL: s.URL}, "").Token(t.Context())
		if err != nil || (got == token) != row.want {
			t.Errorf("%s: %q, %v", row.name, got, err)
		}
	}
	if got, err := openShared(r, testKey("a")).open(t.Context(), "other", []byte(a.stored)); got != nil || err == nil {
		t.Errorf("the value of another key: %+v, %v", got, err)
	}
}

// TestNewSessionKey: after the session key was replaced, machines sign in again by themselves.
func TestNewSessionKey(t *testing.T) {
	s := signintest.New(t)
	m := store.NewMemory()
	for _, key := range []string{"a", "b"} {
		settings := Settings{URL: s.URL, Auth: config.Auth{Flow: config.FlowClientCredentials, ClientID: "machine", ClientSecret: "machine-secret"}}
		mustCall(t, New(openShared(m, testKey(key)), zerolog.Nop()).account(settings, ""))
	}
}

// TestWaitReads: while an account waits for a person, it reads the store once a second, also
// while the store is down.
func TestWaitReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recording{Memory: store.NewMemory()}
		open := func() *Account {
			return New(openShared(r, testKey("a")), zerolog.Nop()).account(Settings{URL: "http://127.0.0.1:1"}, "")
		}
		a := open()
		wait := func(limit time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			return a.Wait(ctx, nil)
		}
		for _, isDown := range []bool{false, true} {
			r.isDown.Store(isDown)
			before := r.reads.Load()
			if err := wait(10*time.Second + time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("nobody has signed in: %v", err)
			}
			if reads := r.reads.Load() - before; reads < 10 || reads > 12 {
				t.Errorf("%d reads in 10 s", reads)
			}
		}
		time.AfterFunc(10*time.Second, func() {
			r.isDown.Store(false)
			if err := open().keep(t.Context(), &credentials{Access: "new"}); err != nil {
				t.Error(err)
			}
		})
		if err := wait(time.Minute); err != nil {
			t.Errorf("after a sign-in elsewhere: %v", err)
		}
	})
}

// TestStoreDown checks that a token which is still valid is used while the store is down.
func TestStoreDown(t *testing.T) {
	s := signintest.New(t)
	s.Life = 1000
	r := &recording{Memory: store.NewMemory()}
	a := New(openShared(r, testKey("a")), zerolog.Nop()).account(Settings{URL: s.URL}, "")
	now := time.Now()
	a.now = func() time.Time { return now }
	signIn(t, a)
	r.isDown.Store(true)
	for after, want := range map[time.Duration]bool{0: true, 900 * time.Second: true, 1001 * time.Second: false} {
		now = time.Now().Add(after)
		if token, err := a.Token(t.Context()); (token != "" && err == nil) != want {
			t.Errorf("after %s: %q, %v", after, token, err)
		}
	}
}

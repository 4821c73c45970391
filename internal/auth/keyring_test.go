package auth

import (
	"bytes"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/zalando/go-keyring"

	"mcpx/internal/authtest"
)

// mockKeyring replaces the keyring by one in memory.
func mockKeyring(t *testing.T) {
	t.Helper()
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "mock") // there is a session
	keyring.MockInit()
}

// TestKeyring: with a keyring the files are encrypted, without one they are not, unless
// the config demands it.
func TestKeyring(t *testing.T) {
	locked := errors.New("locked")
	for name, row := range map[string]struct {
		kind      Kind
		none      bool  // the system has no keyring
		err       error // of the keyring
		encrypted bool
		fails     bool
	}{
		"auto with a locked one": {kind: KindAuto, err: locked, fails: true},
		"auto":                   {kind: KindAuto, encrypted: true},
		"auto without a keyring": {kind: KindAuto, none: true},
		"keyring":                {kind: KindKeyring, encrypted: true},
		"keyring without one":    {kind: KindKeyring, none: true, fails: true},
		"file":                   {kind: KindFile},
		"file without a keyring": {kind: KindFile, none: true},
	} {
		t.Run(name, func(t *testing.T) {
			mockKeyring(t)
			if row.err != nil {
				keyring.MockInitWithError(row.err)
			}
			if row.none {
				keyring.MockInitWithError(keyring.ErrUnsupportedPlatform)
				t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
			}
			folder := testFolder(t)
			want := &credentials{Access: "sentinel"}
			v := NewFiles(folder, row.kind, nil)
			if _, err := v.Box(t.Context()); (err != nil) != row.fails {
				t.Errorf("check: %v", err)
			}
			sealed, err := v.seal(t.Context(), "key", want)
			if (err != nil) != row.fails {
				t.Fatal(err)
			}
			if row.fails {
				return
			}
			if bytes.Contains(sealed, []byte("sentinel")) == row.encrypted || isSealed(sealed) != row.encrypted {
				t.Errorf("%q", sealed)
			}
			other := NewFiles(folder, row.kind, nil) // another process
			if got, err := other.open(t.Context(), "key", sealed); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%+v, %v", got, err)
			}
			if row.encrypted {
				if got, err := other.open(t.Context(), "other", sealed); got != nil || !errors.As(err, new(lostError)) {
					t.Errorf("the value of another key: %+v, %v", got, err)
				}
			}
		})
	}
}

// TestFiles: a value is replaced whole and removed, and no other file is left.
func TestFiles(t *testing.T) {
	f := files{testFolder(t), nil}
	lock, err := f.Lock(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock()
	want := func(text string) {
		t.Helper()
		if got, err := f.Get(t.Context(), "key"); string(got) != text || (got == nil) != (text == "") || err != nil {
			t.Errorf("%q, %v; want %q", got, err, text)
		}
	}
	want("")
	for _, text := range []string{"a long value", "short"} {
		if err := lock.Set(t.Context(), []byte(text), time.Nanosecond); err != nil {
			t.Fatal(err)
		}
		want(text)
	}
	for range 2 {
		if err := lock.Set(t.Context(), nil, 0); err != nil {
			t.Fatal(err)
		}
		want("")
	}
	if entries, err := os.ReadDir(f.folder); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v; want the lock alone", entries, err)
	}
}

// TestSignInWithoutKeyring: no sign-in begins if its tokens cannot be saved.
func TestSignInWithoutKeyring(t *testing.T) {
	mockKeyring(t)
	keyring.MockInitWithError(keyring.ErrUnsupportedPlatform)
	s := authtest.New(t)
	a := New(NewFiles(testFolder(t), KindKeyring, nil), zerolog.Nop()).Account(Settings{URL: s.URL, ClientID: "me"}, "")
	for name, begin := range map[string]func() error{
		"browser":            func() error { _, err := a.Begin(t.Context(), redirect, nil); return err },
		"device":             func() error { _, err := a.Device(t.Context(), nil); return err },
		"client credentials": func() error { return a.SignIn(t.Context(), nil) },
	} {
		if err := begin(); err == nil || !strings.Contains(err.Error(), "no keyring, which auth.store requires") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(a.accounts.pending) != 0 || s.Count("/token") != 0 {
		t.Errorf("%d sign-ins wait, and %d tokens were requested", len(a.accounts.pending), s.Count("/token"))
	}
}

// TestRefreshWithoutKeyring: a refresh token that can be used once is not used if the new one
// could not be saved.
func TestRefreshWithoutKeyring(t *testing.T) {
	mockKeyring(t)
	s := authtest.New(t)
	folder := testFolder(t)
	open := func(k Kind) *Account {
		return New(NewFiles(folder, k, nil), zerolog.Nop()).Account(Settings{URL: s.URL}, "")
	}
	signIn(t, open(KindFile))
	keyring.MockInitWithError(keyring.ErrUnsupportedPlatform)
	s.Expire()
	before := s.Count("/token")
	if _, err := call(t, open(KindKeyring), "tools/call"); err == nil {
		t.Error("a call with an expired token succeeded")
	}
	if n := s.Count("/token") - before; n != 0 {
		t.Errorf("%d tokens were requested", n)
	}
	mustCall(t, open(KindFile)) // the stored token still works
}

// TestLostTokens: stored tokens that cannot be used stay in the store. The account says why,
// a new sign-in replaces them, and signing out removes them. A keyring that fails is an error, after which nobody has to
// sign in.
func TestLostTokens(t *testing.T) {
	for name, row := range map[string]struct {
		kind Kind
		lose func(t *testing.T, file string)
		want string
	}{
		"another key": {KindAuto, func(*testing.T, string) { keyring.MockInit() }, "its tokens are encrypted with another key"},
		"no keyring": {KindAuto, func(t *testing.T, _ string) {
			keyring.MockInitWithError(keyring.ErrUnsupportedPlatform)
			t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
		}, "its tokens are encrypted with a key in a keyring, which is not used here"},
		"cut":   {KindFile, func(t *testing.T, file string) { writeFile(t, file, `{"issuer":`) }, "its tokens are damaged"},
		"empty": {KindFile, func(t *testing.T, file string) { writeFile(t, file, "") }, "its tokens are damaged"},
		"another form": {KindAuto, func(t *testing.T, file string) { writeFile(t, file, "mcpx-sealed-1\nxyz") },
			"its tokens are encrypted with another key"},
	} {
		t.Run(name, func(t *testing.T) {
			mockKeyring(t)
			s := authtest.New(t)
			folder := testFolder(t)
			open := func() *Account {
				return New(NewFiles(folder, row.kind, nil), zerolog.Nop()).Account(Settings{URL: s.URL}, "")
			}
			a := open()
			signIn(t, a)
			file := files{folder, nil}.path(a.key)
			row.lose(t, file)
			before, _ := os.ReadFile(file)
			a = open()
			if _, err := call(t, a, "tools/call"); err == nil || !strings.Contains(err.Error(), "needs sign-in, because "+row.want) {
				t.Errorf("a call: %v", err)
			}
			if _, err := a.Status(t.Context()); err == nil || err.Error() != row.want+"; sign in again" {
				t.Errorf("status: %v", err)
			}
			if after, err := os.ReadFile(file); err != nil || !bytes.Equal(after, before) {
				t.Errorf("the tokens were changed: %q, %v", after, err)
			}
			signIn(t, open())
			if !a.Changed(t.Context()) {
				t.Error("the new sign-in is not noticed")
			}
			mustCall(t, a)
			row.lose(t, file)
			for _, want := range []bool{true, false} {
				if was, err := open().Logout(t.Context()); was != want || err != nil {
					t.Errorf("logout: %v, %v; want %v", was, err, want)
				}
			}
			if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the tokens are still there: %v", err)
			}
		})
	}
	t.Run("a locked keyring", func(t *testing.T) {
		mockKeyring(t)
		s := authtest.New(t)
		folder := testFolder(t)
		signIn(t, New(NewFiles(folder, KindAuto, nil), zerolog.Nop()).Account(Settings{URL: s.URL}, ""))
		keyring.MockInitWithError(errors.New("locked"))
		a := New(NewFiles(folder, KindAuto, nil), zerolog.Nop()).Account(Settings{URL: s.URL}, "")
		if _, err := a.Token(t.Context()); err == nil || !strings.Contains(err.Error(), "its sign-in cannot be read") {
			t.Errorf("got %v", err)
		}
	})
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

package signin

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/parts/signin/signintest"
)

// fakeKeyring is a keyring with one key.
type fakeKeyring struct {
	key  string
	none bool  // the system has no keyring
	err  error // of the keyring
}

func (k *fakeKeyring) read(_ context.Context, _ string, create func() string) (string, bool, error) {
	if k.none || k.err != nil {
		return "", k.err != nil, k.err
	}
	k.key = cmp.Or(k.key, create())
	return k.key, true, nil
}

// TestKeyring: with a keyring the files are encrypted, without one they are not, unless
// the config demands it.
func TestKeyring(t *testing.T) {
	locked := fakeKeyring{err: errors.New("locked")}
	for name, row := range map[string]struct {
		kind      config.Tokens
		keyring   fakeKeyring
		encrypted bool
		fails     bool
	}{
		"auto with a locked one":  {kind: config.TokensAuto, keyring: locked, fails: true},
		"auto with a damaged key": {kind: config.TokensAuto, keyring: fakeKeyring{key: "x"}, fails: true},
		"auto":                    {kind: config.TokensAuto, encrypted: true},
		"auto without a keyring":  {kind: config.TokensAuto, keyring: fakeKeyring{none: true}},
		"keyring":                 {kind: config.TokensKeyring, encrypted: true},
		"keyring without one":     {kind: config.TokensKeyring, keyring: fakeKeyring{none: true}, fails: true},
		"file":                    {kind: config.TokensFile},
		"file without a keyring":  {kind: config.TokensFile, keyring: fakeKeyring{none: true}},
	} {
		t.Run(name, func(t *testing.T) {
			folder := testFolder(t)
			want := &credentials{Access: "sentinel"}
			v := NewFiles(folder, row.kind, row.keyring.read, nil)
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
			other := NewFiles(folder, row.kind, row.keyring.read, nil) // another process
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
	none := &fakeKeyring{none: true}
	s := signintest.New(t)
	a := New(NewFiles(testFolder(t), config.TokensKeyring, none.read, nil), zerolog.Nop()).account(Settings{URL: s.URL, Auth: config.Auth{ClientID: "me"}}, "")
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
	none := &fakeKeyring{none: true}
	s := signintest.New(t)
	folder := testFolder(t)
	open := func(k config.Tokens) *Account {
		return New(NewFiles(folder, k, none.read, nil), zerolog.Nop()).account(Settings{URL: s.URL}, "")
	}
	signIn(t, open(config.TokensFile))
	s.Expire()
	before := s.Count("/token")
	if _, err := call(t, open(config.TokensKeyring), "tools/call"); err == nil {
		t.Error("a call with an expired token succeeded")
	}
	if n := s.Count("/token") - before; n != 0 {
		t.Errorf("%d tokens were requested", n)
	}
	mustCall(t, open(config.TokensFile)) // the stored token still works
}

// TestLostTokens: stored tokens that cannot be used stay in the store. The account says why,
// a new sign-in replaces them, and signing out removes them. A keyring that fails is an error, after which nobody has to
// sign in.
func TestLostTokens(t *testing.T) {
	for name, row := range map[string]struct {
		kind config.Tokens
		lose func(t *testing.T, k *fakeKeyring, file string)
		want string
	}{
		"another key": {config.TokensAuto, func(_ *testing.T, k *fakeKeyring, _ string) { k.key = "" }, "its tokens are encrypted with another key"},
		"no keyring": {config.TokensAuto, func(_ *testing.T, k *fakeKeyring, _ string) { k.none = true },
			"its tokens are encrypted with a key in a keyring, which is not used here"},
		"cut":   {config.TokensFile, func(t *testing.T, _ *fakeKeyring, file string) { writeFile(t, file, `{"issuer":`) }, "its tokens are damaged"},
		"empty": {config.TokensFile, func(t *testing.T, _ *fakeKeyring, file string) { writeFile(t, file, "") }, "its tokens are damaged"},
		"another form": {config.TokensAuto, func(t *testing.T, _ *fakeKeyring, file string) { writeFile(t, file, "mcpx-sealed-1\nxyz") },
			"its tokens are encrypted with another key"},
	} {
		t.Run(name, func(t *testing.T) {
			k := &fakeKeyring{}
			s := signintest.New(t)
			folder := testFolder(t)
			open := func() *Account {
				return New(NewFiles(folder, row.kind, k.read, nil), zerolog.Nop()).account(Settings{URL: s.URL}, "")
			}
			a := open()
			signIn(t, a)
			file := files{folder, nil}.path(a.key)
			row.lose(t, k, file)
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
			row.lose(t, k, file)
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
		k := &fakeKeyring{}
		s := signintest.New(t)
		folder := testFolder(t)
		signIn(t, New(NewFiles(folder, config.TokensAuto, k.read, nil), zerolog.Nop()).account(Settings{URL: s.URL}, ""))
		k.err = errors.New("locked")
		a := New(NewFiles(folder, config.TokensAuto, k.read, nil), zerolog.Nop()).account(Settings{URL: s.URL}, "")
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

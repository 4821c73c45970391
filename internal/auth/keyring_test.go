package auth

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

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
			f := testFiles(t)
			f.kind = row.kind
			value := []byte(`{"access_token":"sentinel"}`)
			if err := f.Check(t.Context()); (err != nil) != row.fails {
				t.Errorf("check: %v", err)
			}
			err := f.save(t.Context(), "key", value)
			if (err != nil) != row.fails {
				t.Fatal(err)
			}
			if row.fails {
				return
			}
			data, err := os.ReadFile(f.path("key"))
			if err != nil || bytes.Contains(data, []byte("sentinel")) == row.encrypted {
				t.Errorf("%q, %v", data, err)
			}
			other := &Files{folder: f.folder, kind: row.kind} // another process
			if got, err := other.load(t.Context(), "key"); err != nil || !bytes.Equal(got, value) {
				t.Errorf("%q, %v", got, err)
			}
			if row.encrypted {
				if err := os.Rename(f.path("key"), f.path("other")); err != nil {
					t.Fatal(err)
				}
				if got, err := other.load(t.Context(), "other"); got != nil || err != nil {
					t.Errorf("the value of another key: %q, %v", got, err)
				}
			}
			if err := f.save(t.Context(), "key", nil); err != nil {
				t.Fatal(err)
			}
			if got, err := f.load(t.Context(), "key"); got != nil || err != nil {
				t.Errorf("removed: %q, %v", got, err)
			}
		})
	}
}

// TestSignInWithoutKeyring: no sign-in begins if its tokens cannot be saved.
func TestSignInWithoutKeyring(t *testing.T) {
	mockKeyring(t)
	keyring.MockInitWithError(keyring.ErrUnsupportedPlatform)
	s := authtest.New(t)
	f := testFiles(t)
	f.kind = KindKeyring
	a := New(f, zerolog.Nop()).Account(Settings{URL: s.URL, ClientID: "me"}, "")
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

// TestLostKey: files whose key is gone count as absent; a keyring that fails is an error.
func TestLostKey(t *testing.T) {
	mockKeyring(t)
	f := testFiles(t)
	f.kind = KindAuto
	if err := f.save(t.Context(), "key", []byte("value")); err != nil {
		t.Fatal(err)
	}
	keyring.MockInit()
	if got, err := (&Files{folder: f.folder}).load(t.Context(), "key"); got != nil || err != nil {
		t.Errorf("another key: %q, %v", got, err)
	}
	keyring.MockInitWithError(errors.New("locked"))
	if _, err := (&Files{folder: f.folder}).load(t.Context(), "key"); err == nil {
		t.Error("a keyring that fails")
	}
}

func TestVersion(t *testing.T) {
	f := testFiles(t)
	seen := map[string]bool{}
	for i := range 20 {
		version, err := f.Version(t.Context(), "key")
		if err != nil || seen[version] {
			t.Fatalf("version %d: %q, %v", i, version, err)
		}
		seen[version] = true
		if err := f.save(t.Context(), "key", []byte("same")); err != nil {
			t.Fatal(err)
		}
	}
}

package auth

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"github.com/zalando/go-keyring"
)

// TestKeyring: with a keyring the files are encrypted, without one they are not, unless
// the config demands it.
func TestKeyring(t *testing.T) {
	broken := errors.New("no keyring")
	for name, row := range map[string]struct {
		kind      Kind
		err       error // of the keyring
		encrypted bool
		fails     bool
	}{
		"auto":                   {kind: KindAuto, encrypted: true},
		"auto without a keyring": {kind: KindAuto, err: broken},
		"keyring":                {kind: KindKeyring, encrypted: true},
		"keyring without one":    {kind: KindKeyring, err: broken, fails: true},
		"file":                   {kind: KindFile},
		"file without a keyring": {kind: KindFile, err: broken},
	} {
		t.Run(name, func(t *testing.T) {
			keyring.MockInit()
			if row.err != nil {
				keyring.MockInitWithError(row.err)
			}
			f := testFiles(t)
			f.kind = row.kind
			value := []byte(`{"access_token":"sentinel"}`)
			err := f.Save(t.Context(), "key", value)
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
			if got, err := other.Load(t.Context(), "key"); err != nil || !bytes.Equal(got, value) {
				t.Errorf("%q, %v", got, err)
			}
			if row.encrypted {
				if err := os.Rename(f.path("key"), f.path("other")); err != nil {
					t.Fatal(err)
				}
				if got, err := other.Load(t.Context(), "other"); got != nil || err != nil {
					t.Errorf("the value of another key: %q, %v", got, err)
				}
			}
			if err := f.Save(t.Context(), "key", nil); err != nil {
				t.Fatal(err)
			}
			if got, err := f.Load(t.Context(), "key"); got != nil || err != nil {
				t.Errorf("removed: %q, %v", got, err)
			}
		})
	}
}

// TestLostKey: files whose key is gone count as absent; a keyring that fails is an error.
func TestLostKey(t *testing.T) {
	keyring.MockInit()
	f := testFiles(t)
	f.kind = KindAuto
	if err := f.Save(t.Context(), "key", []byte("value")); err != nil {
		t.Fatal(err)
	}
	keyring.MockInit()
	if got, err := (&Files{folder: f.folder}).Load(t.Context(), "key"); got != nil || err != nil {
		t.Errorf("another key: %q, %v", got, err)
	}
	keyring.MockInitWithError(errors.New("locked"))
	if _, err := (&Files{folder: f.folder}).Load(t.Context(), "key"); err == nil {
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
		if err := f.Save(t.Context(), "key", []byte("same")); err != nil {
			t.Fatal(err)
		}
	}
}

package auth

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"sync"

	"mcpx/internal/editfile"
	"mcpx/internal/seal"
	"mcpx/internal/secret"
)

// Kind is a kind of Vault in files.
type Kind string

// The kinds. Auto encrypts if the system has a keyring.
const (
	KindAuto    Kind = "auto"
	KindKeyring Kind = "keyring"
	KindFile    Kind = "file"
)

// NewFiles returns the Vault in a folder. With a keyring, the files are encrypted, and the
// keyring has their key. The tokens are not in the keyring itself, because Windows and macOS
// allow only two to three kilobytes there. Nothing is read yet. repaired is called for files
// that other users could read.
func NewFiles(folder string, kind Kind, repaired editfile.Repaired) Vault {
	k := &keyringKey{files: files{folder, repaired}, kind: kind}
	return Vault{Store: k.files, Place: folder, Box: k.box}
}

// keyName is the name of the key in the keyring. No secret of a person can have this name.
const keyName = ".tokens"

// keyringKey is the key in the keyring that encrypts files.
type keyringKey struct {
	files files
	kind  Kind

	mu   sync.Mutex
	kept *seal.Box // with the key, once that was read
}

// box returns nil if files are not encrypted. A locked keyring is no reason for that.
func (k *keyringKey) box(ctx context.Context) (*seal.Box, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kept != nil {
		return k.kept, nil
	}
	if k.kind == KindFile {
		return nil, k.files.create()
	}
	unlock, err := k.files.lock(ctx, "keyring.lock") // two processes must not create two keys
	if err != nil {
		return nil, err
	}
	defer unlock()
	key, err := readKey(ctx)
	switch {
	case errors.Is(err, secret.ErrNoKeyring) && k.kind == KindKeyring:
		return nil, errors.New(`this system has no keyring, which auth.store requires; set "auth": {"store": "file"}`)
	case errors.Is(err, secret.ErrNoKeyring):
		return nil, nil
	case err != nil:
		return nil, err
	}
	k.kept = seal.New(seal.Token, []seal.Key{key})
	return k.kept, nil
}

// readKey reads the key from the keyring, or creates it.
func readKey(ctx context.Context) (seal.Key, error) {
	text, err := secret.Get(ctx, keyName)
	if err == nil {
		return seal.ParseKey(text)
	}
	if !errors.Is(err, secret.ErrNotFound) {
		return nil, err
	}
	key := make(seal.Key, seal.KeyBytes)
	_, _ = rand.Read(key) // never fails
	return key, secret.Set(ctx, keyName, base64.StdEncoding.EncodeToString(key))
}

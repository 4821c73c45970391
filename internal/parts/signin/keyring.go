package signin

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"sync"

	"mcpx/config"
	"mcpx/internal/atomicfile"
	"mcpx/internal/seal"
)

// Keyring returns the secret with this name in the keyring of the system, or stores the one
// that create returns. ok is false if the system has no keyring.
type Keyring func(ctx context.Context, name string, create func() string) (key string, ok bool, err error)

// NewFiles returns the Vault in a folder. With a keyring, the files are encrypted, and the
// keyring has their key. The tokens are not in the keyring itself, because Windows and macOS
// allow only two to three kilobytes there. Nothing is read yet. repaired is called for files
// that other users could read.
func NewFiles(folder string, kind config.Tokens, keyring Keyring, repaired atomicfile.Repaired) Vault {
	k := &keyringKey{files: files{folder, repaired}, kind: kind, read: keyring}
	return Vault{Keeper: k.files, Place: folder, Box: k.box}
}

// keyName is the name of the key in the keyring. No secret of a person can have this name.
const keyName = ".tokens"

// keyringKey is the key in the keyring that encrypts files.
type keyringKey struct {
	files files
	kind  config.Tokens
	read  Keyring

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
	if k.kind == config.TokensFile {
		return nil, k.files.create()
	}
	unlock, err := k.files.lock(ctx, "keyring.lock") // two processes must not create two keys
	if err != nil {
		return nil, err
	}
	defer unlock()
	text, ok, err := k.read(ctx, keyName, newKey)
	switch {
	case err != nil:
		return nil, err
	case !ok && k.kind == config.TokensKeyring:
		return nil, errors.New(`this system has no keyring, which auth.store requires; set "auth": {"store": "file"}`)
	case !ok:
		return nil, nil
	}
	key, err := seal.ParseKey(text)
	if err != nil {
		return nil, err
	}
	k.kept = seal.New(seal.Token, []seal.Key{key})
	return k.kept, nil
}

// newKey returns a new key as text.
func newKey() string {
	key := make(seal.Key, seal.KeyBytes)
	_, _ = rand.Read(key) // never fails
	return base64.StdEncoding.EncodeToString(key)
}

package auth

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"

	"mcpx/internal/secret"
)

const (
	sealMark = "mcpx-sealed-1\n" // begins an encrypted file
	keyName  = ".tokens"         // of the key in the keyring; no secret of a person can have this name
)

func isSealed(data []byte) bool { return bytes.HasPrefix(data, []byte(sealMark)) }

// unsealed decrypts the value of a key.
func (f *Files) unsealed(ctx context.Context, key string, data []byte) ([]byte, error) {
	c, err := f.sealKey(ctx)
	switch {
	case errors.Is(err, secret.ErrNoKeyring):
		return nil, errors.New("it is encrypted, and there is no keyring in this session; sign in again here")
	case err != nil:
		return nil, fmt.Errorf("it is encrypted: %w", err)
	}
	// An error means that the keyring has another key since: there is nothing to use.
	value, _ := c.Open(nil, nil, data[len(sealMark):], []byte(key))
	return value, nil
}

// saveKey returns the cipher for new files, nil if they are not encrypted.
func (f *Files) saveKey(ctx context.Context) (cipher.AEAD, error) {
	if f.kind == KindFile {
		return nil, nil
	}
	c, err := f.sealKey(ctx)
	switch {
	case !errors.Is(err, secret.ErrNoKeyring): // a locked one is no reason to do without
		return c, err
	case f.kind == KindKeyring:
		return nil, errors.New(`this system has no keyring, which auth.store requires; set "auth": {"store": "file"}`)
	}
	return nil, nil
}

// sealKey returns the cipher with the keyring's key. It creates the key if there is none.
func (f *Files) sealKey(ctx context.Context) (cipher.AEAD, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cipher != nil {
		return f.cipher, nil
	}
	unlock, err := f.lock(ctx, "keyring.lock") // two processes must not create two keys
	if err != nil {
		return nil, err
	}
	defer unlock()
	key, err := keyringKey(ctx)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	f.cipher, err = cipher.NewGCMWithRandomNonce(block)
	return f.cipher, err
}

// keyringKey reads the key from the keyring, or creates it.
func keyringKey(ctx context.Context) ([]byte, error) {
	text, err := secret.Get(ctx, keyName)
	if err == nil {
		return base64.StdEncoding.DecodeString(text)
	}
	if !errors.Is(err, secret.ErrNotFound) {
		return nil, err
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return key, secret.Set(ctx, keyName, base64.StdEncoding.EncodeToString(key))
}

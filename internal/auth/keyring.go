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
	"sync"
	"time"

	"github.com/zalando/go-keyring"
)

// sealer has the key that encrypts files, once it was read from the system's keyring.
type sealer struct {
	mu     sync.Mutex
	cipher cipher.AEAD
}

const (
	sealMark    = "mcpx-sealed-1\n" // begins an encrypted file
	keyService  = "mcpx"
	keyUser     = "tokens"
	keyringTime = 30 * time.Second // a locked keyring may ask a person
)

// errKeyring is returned if the keyring does not answer, for example because it is locked.
var errKeyring = errors.New("the system's keyring does not answer; unlock it, or set \"auth\": {\"store\": \"file\"}")

func isSealed(data []byte) bool { return bytes.HasPrefix(data, []byte(sealMark)) }

// sealed encrypts the value of a key.
func (f *Files) sealed(ctx context.Context, key string, value []byte) ([]byte, error) {
	c, err := f.sealKey(ctx)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, c.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	return c.Seal(append([]byte(sealMark), nonce...), nonce, value, []byte(key)), nil
}

// unsealed decrypts the value of a key.
func (f *Files) unsealed(ctx context.Context, key string, data []byte) ([]byte, error) {
	c, err := f.sealKey(ctx)
	if err != nil {
		return nil, fmt.Errorf("it is encrypted: %w", err)
	}
	data = data[len(sealMark):]
	if len(data) < c.NonceSize() {
		return nil, nil
	}
	value, err := c.Open(nil, data[:c.NonceSize()], data[c.NonceSize():], []byte(key))
	if err != nil {
		return nil, nil // the keyring has another key since: sign in again
	}
	return value, nil
}

// sealKey returns the cipher with the keyring's key. It creates the key if there is none.
func (f *Files) sealKey(ctx context.Context) (cipher.AEAD, error) {
	f.seal.mu.Lock()
	defer f.seal.mu.Unlock()
	if f.seal.cipher != nil {
		return f.seal.cipher, nil
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
	f.seal.cipher, err = cipher.NewGCM(block)
	return f.seal.cipher, err
}

// keyringKey reads the key from the keyring, or creates it. The keyring may show a dialog
// and cannot be canceled: after keyringTime the goroutine stays until the dialog ends.
func keyringKey(ctx context.Context) ([]byte, error) {
	type answer struct {
		key []byte
		err error
	}
	done := make(chan answer, 1)
	go func() {
		key, err := readKey()
		done <- answer{key, err}
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, keyringTime, errKeyring)
	defer cancel()
	select {
	case a := <-done:
		return a.key, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func readKey() ([]byte, error) {
	text, err := keyring.Get(keyService, keyUser)
	if err == nil {
		return base64.StdEncoding.DecodeString(text)
	}
	if !errors.Is(err, keyring.ErrNotFound) {
		return nil, fmt.Errorf("the system's keyring cannot be used: %w", err)
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	if err := keyring.Set(keyService, keyUser, base64.StdEncoding.EncodeToString(key)); err != nil {
		return nil, fmt.Errorf("the system's keyring cannot be used: %w", err)
	}
	return key, nil
}

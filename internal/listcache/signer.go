package listcache

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"mcpx/internal/atomicfile"
)

// signer reads the key from a file that only the user can read, and keeps it.
type signer struct {
	file     string
	repaired atomicfile.Repaired // may be nil

	mu   sync.Mutex
	kept signingKey
}

const (
	keyBytes       = 32
	signatureBytes = 2*sha256.Size + 1 // in hexadecimal, and the end of the line
)

var errNoKey = errors.New("there is no key")

// existing returns the key if there is one.
func (s *signer) existing() (signingKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept != nil {
		return s.kept, nil
	}
	wasOpen := false
	if err := atomicfile.PrivateFolder(filepath.Dir(s.file), s.repaired); err != nil {
		return nil, err
	}
	key, err := atomicfile.ReadPrivate(s.file, keyBytes, func(path string) {
		wasOpen = true
		if s.repaired != nil {
			s.repaired(path)
		}
	})
	switch {
	case err != nil:
		return nil, err
	case wasOpen: // others may know it, so its signatures prove nothing
		return nil, errors.Join(errNoKey, os.Remove(s.file))
	case len(key) != keyBytes:
		return nil, errNoKey
	}
	s.kept = key
	return key, nil
}

// create returns the key, and creates it if there is none. If several processes do so at once,
// all of them use the key of the first.
func (s *signer) create() (signingKey, error) {
	switch key, err := s.existing(); {
	case err == nil:
		return key, nil
	case !errors.Is(err, errNoKey) && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(s.file), 0o700); err != nil {
		return nil, err
	}
	_, err := atomicfile.Edit(s.file, atomicfile.Options{Limit: keyBytes, Create: 0o600}, func(old []byte) ([]byte, error) {
		if len(old) == keyBytes {
			return old, nil
		}
		key := make([]byte, keyBytes)
		_, _ = rand.Read(key) // never fails
		return key, nil
	})
	if err != nil {
		return nil, err
	}
	return s.existing()
}

// signingKey is a key that signs files. The names of the files depend on it, so that users and
// machines with different keys can share a folder.
type signingKey []byte

// name returns the part of a file's name that depends on the key.
func (k signingKey) name() string { return hex.EncodeToString(k.of("name", nil)[:4]) }

// of returns the signature of a text for an upstream.
func (k signingKey) of(upstream string, text []byte) []byte {
	mac := hmac.New(sha256.New, k)
	_, _ = mac.Write([]byte(upstream + "\n")) // never fails
	_, _ = mac.Write(text)
	return mac.Sum(nil)
}

// sign returns a text with its signature.
func (k signingKey) sign(upstream string, text []byte) []byte {
	return append([]byte(hex.EncodeToString(k.of(upstream, text))+"\n"), text...)
}

// verify returns a signed text without its signature, and reports whether this key signed it
// for this upstream.
func (k signingKey) verify(upstream string, signed []byte) (text []byte, ok bool) {
	line, text, _ := bytes.Cut(signed, []byte("\n"))
	given, err := hex.DecodeString(string(line[:min(len(line), signatureBytes)]))
	return text, err == nil && hmac.Equal(given, k.of(upstream, text))
}

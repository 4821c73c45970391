// Package seal encrypts small texts that clients or a store keep for mcpx, such as the
// state of a client session in its ID. Only replicas with the same key can read a sealed
// text, and nobody else can make one.
//
//	box := seal.New(seal.Session, keys)
//	id := box.Seal(text, seal.Terms{Label: "work", Until: tomorrow})
//	text, until, err := box.Open(id, "work")
//
// Deriving a key takes longer than sealing a text, so New does it once.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strings"
	"time"
)

// Key is a secret that all replicas have.
type Key []byte

// KeyBytes is the length of a Key.
const KeyBytes = 32

// ParseKey reads a key from base64. The error does not repeat the text.
func ParseKey(text string) (Key, error) {
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(key) != KeyBytes {
		return nil, errors.New("expected 32 bytes in base64; make a key with: openssl rand -base64 32")
	}
	return key, nil
}

// Purpose is what a text is sealed for. A text that was sealed for one purpose cannot be
// opened for another.
type Purpose string

// The purposes.
const (
	Session Purpose = "session" // IDs of client sessions
	Round   Purpose = "round"   // requestState of calls that wait for input
	Token   Purpose = "token"   // OAuth tokens in a store
)

// Box seals and opens texts for one purpose. It is immutable.
type Box struct {
	ciphers []cipher.AEAD // the first seals, all open
}

// New returns a Box. The first key seals, and all keys open, so that a key can be replaced
// while texts that it sealed are in use. There must be at least one key.
func New(purpose Purpose, keys []Key) *Box {
	b := &Box{}
	for _, key := range keys {
		b.ciphers = append(b.ciphers, newCipher(purpose, key))
	}
	return b
}

// newCipher derives the key of a purpose.
func newCipher(purpose Purpose, key Key) cipher.AEAD {
	derived := must(hkdf.Key(sha256.New, key, nil, "mcpx "+prefix+string(purpose), KeyBytes))
	return must(cipher.NewGCMWithRandomNonce(must(aes.NewCipher(derived)))) // a nonce may repeat after 2³² texts of one key
}

// must panics after an error, which would be about a length. All lengths are constant.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// Terms are the conditions under which a sealed text can be opened.
type Terms struct {
	Label string    // Open needs the same one; it is not part of the sealed text
	Until time.Time // Open fails from then on; zero: never
}

// ErrInvalid is returned for every text that cannot be opened, whatever the reason is:
// changed, cut, expired, or sealed with another key, purpose or label.
var ErrInvalid = errors.New("the text was not sealed with this key, or it has expired")

const (
	prefix      = "v1." // of sealed texts
	expiryBytes = 8     // Until in seconds, before the text
	overhead    = 12 + expiryBytes + 16
)

// encoding is strict and has no padding, so that a sealed text has only one form.
var encoding = base64.RawURLEncoding.Strict()

// SealedLen returns the length of a sealed text.
func SealedLen(text int) int { return len(prefix) + encoding.EncodedLen(overhead+text) }

// Seal encrypts a text: v1., and in base64url the nonce, the encrypted expiry and text, and
// the tag.
func (b *Box) Seal(text []byte, t Terms) string {
	until := int64(0)
	if !t.Until.IsZero() {
		until = t.Until.Unix()
	}
	plain := make([]byte, 0, expiryBytes+len(text))
	plain = append(binary.BigEndian.AppendUint64(plain, uint64(until)), text...)
	sealed := b.ciphers[0].Seal(nil, nil, plain, []byte(t.Label))
	return prefix + encoding.EncodeToString(sealed)
}

// Open returns the text and its expiry, which is zero for a text that never expires. It
// compares nothing but tags, in constant time.
func (b *Box) Open(sealed, label string) (text []byte, until time.Time, err error) {
	body, ok := strings.CutPrefix(sealed, prefix)
	if !ok || strings.ContainsAny(body, "\r\n") { // the decoder skips line breaks
		return nil, time.Time{}, ErrInvalid
	}
	encrypted, err := encoding.DecodeString(body)
	if err != nil || len(encrypted) < overhead {
		return nil, time.Time{}, ErrInvalid
	}
	for _, c := range b.ciphers {
		plain, err := c.Open(nil, nil, encrypted, []byte(label))
		if err != nil {
			continue
		}
		seconds := int64(binary.BigEndian.Uint64(plain))
		if seconds != 0 {
			until = time.Unix(seconds, 0)
			if !time.Now().Before(until) {
				return nil, time.Time{}, ErrInvalid
			}
		}
		return plain[expiryBytes:], until, nil
	}
	return nil, time.Time{}, ErrInvalid
}

package signin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"mcpx/internal/seal"
	"mcpx/internal/store"
)

// Keeper keeps values by key: the files of a user, or the [store.Store] of several replicas.
// Several processes may share it. Its methods may be called concurrently.
type Keeper interface {
	// Get returns the value of a key, nil if there is none.
	Get(ctx context.Context, key string) ([]byte, error)
	// Lock waits until nobody else holds the lock of a key, whose holder may change the value.
	Lock(ctx context.Context, key string) (store.Lock, error)
}

// Vault keeps credentials with a Keeper, encrypted if there is a key.
type Vault struct {
	Keeper Keeper
	Place  string // where the values are, for people
	// Box returns the box that encrypts, nil if nothing is encrypted. Its error says why nothing
	// can be saved. It may create a key, and may be called concurrently.
	Box func(ctx context.Context) (*seal.Box, error)

	mustSeal bool // credentials that are not encrypted are not used: somebody else wrote them
}

// NewShared returns the Vault in a store that replicas share. A reader of that store cannot
// use the credentials.
func NewShared(k Keeper, box *seal.Box) Vault {
	return Vault{Keeper: k, Place: "server.store", Box: func(context.Context) (*seal.Box, error) { return box, nil }, mustSeal: true}
}

// lostError says why stored credentials cannot be used. Only Logout deletes them.
type lostError string

func (e lostError) Error() string { return "its tokens are " + string(e) }

// open decrypts and decodes stored credentials, nil if there are none.
func (v Vault) open(ctx context.Context, key string, stored []byte) (*credentials, error) {
	switch {
	case stored == nil:
		return nil, nil
	case v.mustSeal && !isSealed(stored):
		return nil, lostError("not encrypted")
	}
	if isSealed(stored) {
		box, err := v.Box(ctx)
		if err != nil {
			return nil, fmt.Errorf("its tokens are encrypted: %w", err)
		}
		if box == nil {
			return nil, lostError("encrypted with a key in a keyring, which is not used here")
		}
		if stored, _, err = box.Open(string(stored), key); err != nil {
			return nil, lostError("encrypted with another key")
		}
	}
	c := &credentials{}
	if json.Unmarshal(stored, c) != nil {
		return nil, lostError("damaged")
	}
	return c, nil
}

// seal encodes and encrypts credentials.
func (v Vault) seal(ctx context.Context, key string, c *credentials) ([]byte, error) {
	encoded, _ := json.Marshal(c) // cannot fail: strings and times
	box, err := v.Box(ctx)
	if box == nil || err != nil {
		return encoded, err
	}
	return []byte(box.Seal(encoded, seal.Terms{Label: key})), nil
}

// isSealed reports whether stored credentials are encrypted: otherwise they are JSON.
func isSealed(stored []byte) bool { return len(stored) > 0 && !bytes.HasPrefix(stored, []byte("{")) }

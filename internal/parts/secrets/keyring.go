// Package secrets adds stored secrets that are not in files: in the keyring of the operating
// system, or printed by commands such as "op read". It also writes to the keyring. Hooks:
// config.Secrets, signin.Keyring; commands: mcpx secret.
//
// Every function returns within a limit, with or without a desktop session. Errors name no
// secret.
package secrets

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zalando/go-keyring"
)

// service is the name under which the keyring stores mcpx's secrets.
const service = "mcpx"

// keyringTime limits a request to the keyring. A person may have to unlock it.
const keyringTime = 20 * time.Second

// ErrNoKeyring is returned if the system has no keyring, as in a container.
var ErrNoKeyring = errors.New(`there is no keyring here; use ${file:PATH} or {"cmd": ["PROGRAM", "ARG"]} instead`)

// ErrNotFound is returned for a name that the keyring does not have.
var ErrNotFound = errors.New("not in the keyring")

// Available returns ErrNoKeyring if the system certainly has no keyring. It does not wait.
func Available() error {
	if !hasKeyring() {
		return ErrNoKeyring
	}
	return nil
}

// Get returns a secret of the keyring.
func Get(ctx context.Context, name string) (string, error) {
	var value string
	err := withKeyring(ctx, func() (err error) {
		value, err = keyring.Get(service, name)
		return err
	})
	if err != nil {
		return "", err
	}
	return value, nil
}

// Stored implements config.Secrets.
type Stored struct{}

// Get implements config.Secrets.
func (Stored) Get(ctx context.Context, name string) (string, error) {
	value, err := Get(ctx, name)
	switch {
	case errors.Is(err, ErrNotFound):
		return "", fmt.Errorf("not in the keyring; run mcpx secret set %s", name)
	case err == nil && value == "":
		return "", errors.New("the secret is empty")
	}
	return value, err
}

// Run implements config.Secrets.
func (Stored) Run(ctx context.Context, words []string, folder string) (string, error) {
	return Run(ctx, words, folder)
}

// Set stores a secret in the keyring.
func Set(ctx context.Context, name, value string) error {
	return withKeyring(ctx, func() error { return keyring.Set(service, name, value) })
}

// Delete removes a secret from the keyring.
func Delete(ctx context.Context, name string) error {
	return withKeyring(ctx, func() error { return keyring.Delete(service, name) })
}

// Key returns the secret with this name, or stores the one that create returns. ok is false if
// the system has no keyring. It is for secrets of mcpx itself.
func Key(ctx context.Context, name string, create func() string) (key string, ok bool, err error) {
	key, err = Get(ctx, name)
	switch {
	case errors.Is(err, ErrNoKeyring):
		return "", false, nil
	case errors.Is(err, ErrNotFound):
		key = create()
		err = Set(ctx, name, key)
	}
	return key, true, err
}

// turn holds one while a request to the keyring runs. A request that hangs cannot be
// canceled, so later ones must not add to it.
var turn = make(chan struct{}, 1)

// withKeyring runs a request to the keyring and waits for it, within a limit.
func withKeyring(ctx context.Context, request func() error) error {
	if err := Available(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, keyringTime, fmt.Errorf("the keyring did not respond within %s; unlock it, then try again", keyringTime))
	defer cancel()
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	done := make(chan error, 1)
	go func() {
		defer func() { <-turn }()
		done <- request()
	}()
	select {
	case err := <-done:
		return explain(err)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// explain returns the error of a request in words for a person.
func explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, keyring.ErrNotFound):
		return ErrNotFound
	case errors.Is(err, keyring.ErrSetDataTooBig):
		return errors.New("the secret is too long for this keyring; use ${file:PATH} instead")
	case errors.Is(err, keyring.ErrUnsupportedPlatform), isUnreachable(err):
		return ErrNoKeyring
	}
	return fmt.Errorf("the keyring failed: %w", err)
}

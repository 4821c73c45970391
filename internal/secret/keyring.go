// Package secret reads secrets from outside the config file: from the keyring of the
// operating system, and from commands such as "op read". It also writes to the keyring.
//
// Every function returns within a limit, with or without a desktop session. Errors name no
// secret.
package secret

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/zalando/go-keyring"
)

// service is the name under which the keyring stores mcpx's secrets.
const service = "mcpx"

// MaxBytes is the size of the largest secret.
const MaxBytes = 64 << 10

// keyringTime limits a request to the keyring. A person may have to unlock it.
const keyringTime = 20 * time.Second

// ErrNoKeyring is returned if the system has no keyring, as in a container.
var ErrNoKeyring = errors.New(`there is no keyring here; use ${file:PATH} or {"cmd": ["PROGRAM", "ARG"]} instead`)

// ErrNotFound is returned for a name that the keyring does not have.
var ErrNotFound = errors.New("not in the keyring")

var namePattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@/-]{0,127}$`)

// CheckName returns an error for a text that cannot be the name of a secret.
func CheckName(name string) error {
	if !namePattern.MatchString(name) {
		return fmt.Errorf("%q is no name of a secret; use up to 128 letters, digits, and _ . @ / -", name)
	}
	return nil
}

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

// Set stores a secret in the keyring.
func Set(ctx context.Context, name, value string) error {
	return withKeyring(ctx, func() error { return keyring.Set(service, name, value) })
}

// Delete removes a secret from the keyring.
func Delete(ctx context.Context, name string) error {
	return withKeyring(ctx, func() error { return keyring.Delete(service, name) })
}

// turn holds one while a request to the keyring runs. A request that hangs cannot be
// cancelled, so later ones must not add to it.
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

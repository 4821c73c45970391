package signin

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// credentials are what the vault keeps about one sign-in. They belong to one issuer and
// are never used with another one.
type credentials struct {
	Issuer   string    `json:"issuer"`
	Resource string    `json:"resource"`
	Client   client    `json:"client"`
	TokenURL string    `json:"token_endpoint"`
	Revoke   string    `json:"revocation_endpoint,omitempty"`
	Access   string    `json:"access_token"`
	Refresh  string    `json:"refresh_token,omitempty"`
	Issued   time.Time `json:"issued"`
	Expires  time.Time `json:"expires,omitzero"` // zero: unknown
	Scopes   []string  `json:"scopes,omitempty"`
	Who      string    `json:"account,omitempty"`
}

// due reports whether 80 % of the access token's life is over.
func (c *credentials) due(now time.Time) bool {
	return !c.Expires.IsZero() && !now.Before(c.Issued.Add(c.Expires.Sub(c.Issued)*4/5))
}

func (c *credentials) expired(now time.Time) bool {
	return !c.Expires.IsZero() && !now.Before(c.Expires)
}

// belongs reports whether the settings allow the credentials: the config may have changed
// since the sign-in.
func (s *Settings) belongs(c *credentials) bool {
	return (s.ClientID == "" || s.ClientID == c.Client.ID) && (s.Issuer == "" || s.Issuer == c.Issuer)
}

// snapshot is the stored sign-in at one moment.
type snapshot struct {
	creds  *credentials // nil if nobody has signed in
	stored string       // as it is in the vault
	lost   lostError    // why stored cannot be used; "" if it can
}

// peek reads the vault. It changes nothing in the account, so that those who wait for a change
// still see it. Credentials that could not be saved count as stored until another process
// stores some.
func (a *Account) peek(ctx context.Context) (found snapshot, err error) {
	stored, err := a.accounts.vault.Keeper.Get(ctx, a.key)
	if err == nil {
		found.creds, err = a.accounts.vault.open(ctx, a.key, stored)
	}
	lost, isLost := errors.AsType[lostError](err)
	if err != nil && !isLost {
		return snapshot{}, fmt.Errorf("its sign-in cannot be read: %w", err)
	}
	if found.creds != nil && !a.settings.belongs(found.creds) {
		found.creds = nil
	}
	found.stored, found.lost = string(stored), lost
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.unsaved && a.stored == found.stored {
		found.creds, found.lost = a.creds, a.lost
	}
	return found, nil
}

// load reads the credentials from the vault, nil if nobody has signed in. The account uses
// them from now on.
func (a *Account) load(ctx context.Context) (*credentials, error) {
	found, err := a.peek(ctx)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.unsaved && a.stored == found.stored {
		return a.creds, nil
	}
	a.read, a.creds, a.stored, a.lost, a.unsaved = true, found.creds, found.stored, found.lost, false
	return found.creds, nil
}

// keepTime is how long the store keeps credentials after they were last saved.
const keepTime = 90 * 24 * time.Hour

// save writes credentials to the vault, or removes them if they are nil. The caller holds
// the lock.
func (a *Account) save(ctx context.Context, c *credentials) (err error) {
	var sealed []byte
	change := "removed"
	if c != nil {
		change = "saved"
		sealed, err = a.accounts.vault.seal(ctx, a.key, c)
	}
	if err == nil {
		err = a.lock.Set(ctx, sealed, keepTime)
	}
	if err != nil {
		return fmt.Errorf("its sign-in cannot be %s: %w", change, err)
	}
	a.found.Store(nil)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.read, a.creds, a.stored, a.lost, a.unsaved = true, c, string(sealed), "", false
	return nil
}

// known returns the credentials as they were last read, and whether they have been read.
func (a *Account) known() (*credentials, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.creds, a.read
}

// lockedTime bounds how long one process holds the lock. It is shorter than store.LockTime.
const lockedTime = 2 * requestTime

// locked runs use while no other goroutine and no other process uses the credentials. The
// context of use does not end with ctx: a new token that is not saved is lost, and with
// it the sign-in.
func (a *Account) locked(ctx context.Context, use func(ctx context.Context) error) error {
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	lock, err := a.accounts.vault.Keeper.Lock(ctx, a.key)
	if err != nil {
		return fmt.Errorf("its sign-in cannot be locked: %w", err)
	}
	defer lock.Unlock()
	a.lock = lock
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockedTime)
	defer cancel()
	return use(ctx)
}

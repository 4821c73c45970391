package signin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"mcpx/config"
)

// Status is what is known about a sign-in without asking a server.
type Status struct {
	SignedIn bool      `json:"signed_in"`         // there is a token that is valid or can be refreshed
	Account  string    `json:"account,omitempty"` // who signed in, if the server says so
	Issuer   string    `json:"issuer,omitempty"`  // the authorization server
	Scopes   []string  `json:"scopes,omitempty"`  // the access that was granted
	Expires  time.Time `json:"expires,omitzero"`  // of the access token; zero: unknown
	Renews   bool      `json:"renews"`            // mcpx renews the access token by itself
	Place    string    `json:"-"`                 // where the tokens are
}

// Has reports whether there is a sign-in with these scopes.
func (s Status) Has(scopes []string) bool { return s.SignedIn && covered(scopes, s.Scopes) }

// covered reports whether all scopes were granted.
func covered(scopes, granted []string) bool {
	return !slices.ContainsFunc(scopes, func(s string) bool { return !slices.Contains(granted, s) })
}

// Has implements live.Account.
func (a *Account) Has(scopes []string) bool {
	c, _ := a.known()
	return c != nil && covered(scopes, c.Scopes)
}

// granted waits until a sign-in with these scopes is stored, by this process or another one.
func (a *Account) granted(ctx context.Context, scopes []string) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if status, err := a.Status(ctx); err == nil && status.Has(scopes) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Status reads the stored sign-in. It changes nothing, so Wait still notices a new sign-in.
func (a *Account) Status(ctx context.Context) (Status, error) {
	found, err := a.peek(ctx)
	c := found.creds
	switch {
	case err != nil:
		return Status{}, err
	case found.lost != "":
		return Status{}, fmt.Errorf("%w; sign in again", found.lost)
	case c == nil:
		return Status{}, nil
	}
	place := a.accounts.vault.Place
	if isSealed([]byte(found.stored)) {
		place += " (encrypted)"
	}
	return Status{
		SignedIn: !c.expired(a.now()) || a.canRefresh(c),
		Account:  c.Who, Issuer: c.Issuer, Scopes: c.Scopes, Expires: c.Expires,
		Renews: c.Refresh != "" || a.settings.Flow == config.FlowClientCredentials,
		Place:  place,
	}, nil
}

// Logout revokes the tokens (RFC 7009) and removes them from the vault. It reports
// whether there were any. If they cannot be used, or the server cannot revoke them, they
// are removed nevertheless; the error is about the server.
func (a *Account) Logout(ctx context.Context) (wasSignedIn bool, err error) {
	var revoking error
	err = a.locked(ctx, func(ctx context.Context) error {
		c, err := a.load(ctx)
		if err != nil {
			return err
		}
		a.mu.Lock()
		wasSignedIn = c != nil || a.stored != "" || a.lost != ""
		a.mu.Unlock()
		revoking = a.revoke(ctx, c)
		return a.save(ctx, nil)
	})
	return wasSignedIn, errors.Join(err, revoking)
}

// revoke revokes the refresh token, and with it the access tokens.
func (a *Account) revoke(ctx context.Context, c *credentials) error {
	if c == nil || c.Revoke == "" {
		return nil // there is no token, or the server has no revocation
	}
	form := url.Values{"token": {c.Access}, "token_type_hint": {"access_token"}}
	if c.Refresh != "" {
		form = url.Values{"token": {c.Refresh}, "token_type_hint": {"refresh_token"}}
	}
	response, err := a.post(ctx, c, c.Revoke, form)
	if err != nil {
		return fmt.Errorf("the tokens could not be revoked: %w", failure(err))
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the tokens could not be revoked: HTTP status %s from %s", shown(response.Status), shown(c.Issuer))
	}
	return nil
}

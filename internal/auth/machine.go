package auth

import (
	"context"
	"errors"
	"net/url"
	"strings"
)

// SignIn signs in without a person: the flow client_credentials.
func (a *Account) SignIn(ctx context.Context, scopes []string) error {
	return a.locked(ctx, func(ctx context.Context) error { return a.signIn(ctx, scopes) })
}

// signIn is SignIn for a caller that holds the lock.
func (a *Account) signIn(ctx context.Context, scopes []string) error {
	if a.settings.ClientID == "" {
		return errors.New("the flow client_credentials needs auth.client_id")
	}
	_, c, err := a.prepare(ctx, "", scopes)
	if err != nil {
		return err
	}
	form := url.Values{"grant_type": {"client_credentials"}, "resource": {c.Resource}}
	if len(c.Scopes) > 0 {
		form.Set("scope", strings.Join(c.Scopes, " "))
	}
	if err := a.request(ctx, c, form); err != nil {
		return err
	}
	c.Refresh = "" // the client's own credentials are enough
	return a.save(ctx, c)
}

// replaceOwn is replace for the flow client_credentials: mcpx signs in again, with the
// scopes that the upstream asks for.
func (a *Account) replaceOwn(ctx context.Context, refused string, asked challenge) (next string, isNew bool, err error) {
	err = a.locked(ctx, func(ctx context.Context) error {
		stored, err := a.load(ctx)
		if err != nil {
			return err
		}
		if stored == nil || stored.Access == refused {
			if err := a.signIn(ctx, asked.scopes); err != nil {
				return &Required{Problem: err}
			}
			isNew = true
			stored, _ = a.known()
		}
		next = stored.Access
		return nil
	})
	return next, isNew, err
}

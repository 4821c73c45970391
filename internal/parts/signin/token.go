package signin

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"mcpx/config"
	"mcpx/internal/redact"
)

// retryRefresh is how long a refresh that failed for want of a network is not repeated.
const retryRefresh = 10 * time.Second

// Token returns the access token for the upstream, "" if nobody has signed in. It
// refreshes the token when 80 % of its life is over. If that fails, the old token is
// returned as long as it is valid.
func (a *Account) Token(ctx context.Context) (string, error) {
	c, read := a.known()
	if !read {
		var err error
		if c, err = a.load(ctx); err != nil {
			return "", err
		}
	}
	switch {
	case c == nil:
		return "", nil
	case !c.due(a.now()) || !a.canRefresh(c) || a.waits(c) != nil:
		return c.Access, nil
	}
	c, err := a.renew(ctx, c, func(stored *credentials) bool { return stored.due(a.now()) })
	switch {
	case c == nil:
		return "", nil
	case err != nil && !c.expired(a.now()):
		return c.Access, nil
	}
	return c.Access, err
}

// canRefresh reports whether there is something to refresh the token with.
func (a *Account) canRefresh(c *credentials) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.settings.Flow == config.FlowClientCredentials || c.Refresh != "" && c.Refresh != a.refused
}

// waits returns the network trouble after which a token that is still valid is not
// refreshed for a moment, nil without trouble.
func (a *Account) waits(c *credentials) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.now().Before(a.retryAt) && !c.expired(a.now()) {
		return a.trouble
	}
	return nil
}

// renew reads the stored credentials and, if they are due, replaces them by new ones. It
// returns the credentials to use, nil if there are none; they may be the old ones, with
// the reason why they could not be read or replaced.
func (a *Account) renew(ctx context.Context, old *credentials, due func(stored *credentials) bool) (used *credentials, err error) {
	used = old
	err = a.locked(ctx, func(ctx context.Context) error {
		stored, err := a.load(ctx)
		if err != nil {
			return err
		}
		used = stored
		if stored == nil || !due(stored) || !a.canRefresh(stored) {
			return nil
		}
		if trouble := a.waits(stored); trouble != nil {
			return trouble
		}
		if a.settings.Flow != config.FlowClientCredentials { // a refresh uses up the stored token
			if _, err := a.accounts.vault.Box(ctx); err != nil {
				return fmt.Errorf("its token is not refreshed, because a new one could not be saved: %w", err)
			}
		}
		if used, err = a.refresh(ctx, stored); err != nil {
			used, err = a.refreshFailed(ctx, stored, err)
			return err
		}
		if err := a.save(ctx, used); err != nil {
			a.accounts.log.Warn().Err(err).Msg("a new token could not be saved")
			a.mu.Lock()
			a.creds, a.unsaved = used, true // this process can go on
			a.mu.Unlock()
		}
		return nil
	})
	return used, err
}

// refreshFailed returns the credentials to use after a refresh that brought no token. A
// refresh token that the server does not accept may have been replaced by a process
// without the lock, so the vault is read again. Nothing is deleted.
func (a *Account) refreshFailed(ctx context.Context, sent *credentials, err error) (*credentials, error) {
	refused, ok := errors.AsType[*tokenError](err)
	if !ok || !refused.isFinal() {
		err = fmt.Errorf("its token could not be refreshed: %w", err)
		a.mu.Lock()
		a.retryAt, a.trouble = a.now().Add(retryRefresh), err
		a.mu.Unlock()
		return sent, err
	}
	if stored, err := a.load(ctx); err == nil && stored != nil && stored.Refresh != sent.Refresh {
		return stored, nil
	}
	a.mu.Lock()
	a.refused = sent.Refresh
	a.mu.Unlock()
	a.accounts.log.Info().Str("error", refused.code).Msg("a token can no longer be refreshed; sign in again")
	return sent, nil // the old token may still work; otherwise the upstream's 401 tells
}

// refresh requests a new access token.
func (a *Account) refresh(ctx context.Context, old *credentials) (*credentials, error) {
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {old.Refresh}}
	if a.settings.Flow == config.FlowClientCredentials {
		form = withScopes(url.Values{"grant_type": {"client_credentials"}}, old)
	}
	next := *old
	if err := a.request(ctx, &next, form); err != nil {
		return nil, err
	}
	a.accounts.log.Debug().Str("issuer", next.Issuer).Time("expires", next.Expires).Msg("refreshed a token")
	return &next, nil
}

// withScopes adds the scopes to ask for, if there are any.
func withScopes(form url.Values, c *credentials) url.Values {
	if len(c.Scopes) > 0 {
		form.Set("scope", strings.Join(c.Scopes, " "))
	}
	return form
}

// request makes a token request and stores the tokens of the reply in c. Every grant goes
// through here.
func (a *Account) request(ctx context.Context, c *credentials, form url.Values) error {
	form.Set("resource", c.Resource)
	secret, err := a.authenticate(c, form)
	if err != nil {
		return err
	}
	grant := clientcredentials.Config{ // sends any grant: its grant_type can be overridden
		ClientID:       c.Client.ID,
		ClientSecret:   secret,
		TokenURL:       c.TokenURL,
		EndpointParams: form,
		AuthStyle:      oauth2.AuthStyleInParams,
	}
	if c.Client.Method == methodBasic {
		grant.AuthStyle = oauth2.AuthStyleInHeader
	}
	issued := a.now()
	token, err := grant.Token(context.WithValue(ctx, oauth2.HTTPClient, a.client))
	if err != nil {
		return a.explain(err, form)
	}
	if !strings.EqualFold(token.Type(), "Bearer") {
		return fmt.Errorf("the token has the type %s, which mcpx does not support", shown(token.Type()))
	}
	if strings.ContainsFunc(token.AccessToken, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("the token has characters that a header cannot have")
	}
	c.Access, c.Refresh, c.Issued, c.Expires = token.AccessToken, token.RefreshToken, issued, time.Time{}
	if life := time.Until(token.Expiry).Round(time.Second); life > 0 {
		c.Expires = issued.Add(life)
	}
	if granted, ok := token.Extra("scope").(string); ok && granted != "" {
		c.Scopes = boundedScopes(strings.Fields(granted))
	}
	if id, ok := token.Extra("id_token").(string); ok {
		c.Who = accountName(id)
	}
	return nil
}

// tokenError is the refusal of a token request.
type tokenError struct {
	code string // such as invalid_grant
	text string
}

func (e *tokenError) Error() string { return e.text }

// isFinal reports whether the same request would be refused again.
func (e *tokenError) isFinal() bool {
	return slices.Contains([]string{"invalid_grant", "invalid_client", "unauthorized_client", "invalid_scope", "invalid_target"}, e.code)
}

// explain turns the error of a token request into one without secrets: neither the
// reply, nor the values that were sent.
func (a *Account) explain(err error, form url.Values) error {
	refused, ok := errors.AsType[*oauth2.RetrieveError](err)
	_, isNetwork := errors.AsType[*url.Error](err)
	switch {
	case ok && refused.ErrorCode != "":
		secrets := []string{a.settings.ClientSecret}
		for _, name := range []string{"code", "code_verifier", "refresh_token", "client_assertion", "device_code"} {
			secrets = append(secrets, form.Get(name))
		}
		text := describe(refused.ErrorCode, refused.ErrorDescription)
		return &tokenError{refused.ErrorCode, redact.NewTokens(secrets...).Redact(text)}
	case ok:
		status := refused.Response.StatusCode
		return fmt.Errorf("HTTP status %d %s from the token endpoint", status, http.StatusText(status))
	case isNetwork:
		return failure(err)
	}
	return errors.New("the reply of the token endpoint cannot be read")
}

// accountName returns who signed in, from an ID token. The token came from the token
// endpoint itself, so its signature does not matter here.
func accountName(idToken string) string {
	var claims struct {
		Email    string `json:"email"`
		Username string `json:"preferred_username"`
		Subject  string `json:"sub"`
	}
	if parts := strings.Split(idToken, "."); len(parts) == 3 {
		payload, _ := base64.RawURLEncoding.DecodeString(parts[1])
		_ = json.Unmarshal(payload, &claims) // without a name, nobody is shown
	}
	return shown(cmp.Or(claims.Email, claims.Username, claims.Subject))
}

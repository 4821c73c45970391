package signin

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"mcpx/config"
	"mcpx/registry/link"
)

// Transport implements link.Account. It adds the access token to requests to the upstream's
// origin. If the upstream refuses the token, the transport gets a new one and sends the request
// again. That is safe: the refused request was not run.
func (a *Account) Transport(base http.RoundTripper) http.RoundTripper {
	return &transport{a, base}
}

type transport struct {
	account *Account
	base    http.RoundTripper
}

// maxTries bounds how many other tokens a refused request is sent with.
const maxTries = 3

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme+"://"+strings.ToLower(r.URL.Host) != t.account.origin {
		return t.base.RoundTrip(r)
	}
	t.account.setDenied(false)
	used, err := t.account.Token(r.Context())
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // as a RoundTripper must
		}
		return nil, denied(err)
	}
	response, err := t.send(r, used)
	if err != nil || !isDenied(response) {
		return response, err
	}
	for tries, isNew := 0, false; tries < maxTries && !isNew; tries++ { // a stored token may have expired, too; a new one is the last try
		var next string
		if next, isNew, err = t.account.replace(r.Context(), used, response); err != nil {
			discard(response)
			return nil, denied(err)
		}
		if next == used || r.Body != nil && r.GetBody == nil {
			break
		}
		discard(response)
		used = next
		if response, err = t.sendAgain(r, used); err != nil || !isDenied(response) {
			return response, err
		}
	}
	t.account.setDenied(true)
	if required := t.account.required(r.Context(), used, response); required != nil {
		discard(response)
		return nil, required
	}
	return response, nil
}

// send sends a request with a token.
func (t *transport) send(r *http.Request, token string) (*http.Response, error) {
	if token != "" {
		r = r.Clone(r.Context()) // a RoundTripper must not change the request
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return t.base.RoundTrip(r)
}

// sendAgain sends a request that was refused once more.
func (t *transport) sendAgain(r *http.Request, token string) (*http.Response, error) {
	again := r.Clone(r.Context())
	if r.GetBody != nil {
		var err error
		if again.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
	return t.send(again, token)
}

// isDenied reports whether a token could change a response: a 401, or a 403 that names
// missing scopes.
func isDenied(response *http.Response) bool {
	switch response.StatusCode {
	case http.StatusUnauthorized:
		return true
	case http.StatusForbidden:
		return readChallenge(response.Header).code == "insufficient_scope"
	}
	return false
}

// replace returns a token in place of one that the upstream refused: another process may
// have stored one, or the refused one can be refreshed, which makes a new one. It returns
// the same token if there is no other.
func (a *Account) replace(ctx context.Context, refused string, response *http.Response) (next string, isNew bool, err error) {
	isUnauthorized := response.StatusCode == http.StatusUnauthorized
	if a.settings.Flow == config.FlowClientCredentials {
		return a.replaceOwn(ctx, refused, readChallenge(response.Header))
	}
	c, err := a.load(ctx)
	switch {
	case err != nil || c == nil:
		return refused, false, err
	case c.Access != refused:
		return c.Access, false, nil
	case !isUnauthorized || !a.canRefresh(c):
		return refused, false, nil
	}
	c, err = a.renew(ctx, c, func(stored *credentials) bool {
		isNew = stored.Access == refused
		return isNew
	})
	if err != nil || c == nil {
		return refused, false, err
	}
	return c.Access, isNew, nil
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
				return unusable(err)
			}
			isNew = true
			stored, _ = a.known()
		}
		next = stored.Access
		return nil
	})
	return next, isNew, err
}

// required returns the error for a response that a person must act on, nil for others.
func (a *Account) required(ctx context.Context, used string, response *http.Response) error {
	c := readChallenge(response.Header)
	if response.StatusCode == http.StatusForbidden {
		missing := c.scopes
		if creds, _ := a.known(); creds != nil {
			missing = slices.DeleteFunc(slices.Clone(c.scopes), func(s string) bool { return slices.Contains(creds.Scopes, s) })
		}
		if len(missing) == 0 {
			missing = c.scopes
		}
		if len(missing) == 0 {
			return nil
		}
		return &link.Denied{Failure: link.Failure{Reason: "needs more access (" + strings.Join(missing, " ") + ")", Cause: link.CauseAccess, Scopes: missing}}
	}
	p, err := a.discoverCached(ctx, c)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && (c.metadata != "" || used != ""):
		return unusable(err)
	case p == nil && used == "":
		return nil // it does not use OAuth
	}
	reason := "needs sign-in"
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lost != "" {
		reason += ", because " + a.lost.Error()
	}
	return &link.Denied{Failure: link.Failure{Reason: reason, Cause: link.CauseSignIn}}
}

// unusable returns the error for an upstream that needs a sign-in, which would fail.
func unusable(problem error) error {
	return &link.Denied{Failure: link.Failure{Reason: "needs sign-in, but its sign-in cannot be used: " + problem.Error()}}
}

// denied returns the error for a request that was not run, because its token could not be read,
// refreshed or replaced.
func denied(err error) error {
	if already, ok := errors.AsType[*link.Denied](err); ok {
		return already
	}
	return &link.Denied{Failure: link.Failure{Reason: err.Error()}}
}

// discard ends a response so that its connection can be used again.
func discard(response *http.Response) {
	_, _ = io.CopyN(io.Discard, response.Body, maxHeaders)
	_ = response.Body.Close()
}

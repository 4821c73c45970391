package signin

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

// Limits of sign-ins that wait for a person.
const (
	pendingTime       = 10 * time.Minute
	pendingPerAccount = 4 // the oldest one makes room
	maxPending        = 1000
)

// pending is a sign-in that waits for a person.
type pending struct {
	state     string // in the address that the browser comes back with
	account   *Account
	creds     credentials // without tokens
	redirect  string
	verifier  string // of PKCE
	hasIssuer bool   // the server has announced the parameter "iss"
	until     time.Time
}

// ErrNotBegun is returned for an answer to a sign-in that the caller did not begin.
var ErrNotBegun = errors.New("no sign-in is open for this address; it may be older than 10 minutes: start again")

// ErrNoOAuth is returned for an upstream that does not use OAuth.
var ErrNoOAuth = errors.New("the server does not use OAuth")

// Begin starts a sign-in in a browser. It returns the address that the person must open;
// the browser is then sent to redirect, with a query for [Accounts.Complete]. Scopes are
// asked for in addition to those that the server names.
func (a *Account) Begin(ctx context.Context, redirect string, scopes []string) (address string, err error) {
	p, c, err := a.prepare(ctx, redirect, scopes)
	switch {
	case err != nil:
		return "", err
	case p.server.AuthorizationEndpoint == "":
		return "", errors.New("its authorization server has no authorization endpoint")
	case !slices.Contains(p.server.CodeChallengeMethodsSupported, "S256"):
		return "", fmt.Errorf("%s does not announce PKCE with S256, without which signing in is not safe", shown(p.server.Issuer))
	}
	waiting := &pending{
		state: rand.Text(), account: a, creds: *c, redirect: redirect,
		verifier:  oauth2.GenerateVerifier(),
		hasIssuer: p.server.AuthorizationResponseIssParameterSupported,
		until:     a.now().Add(pendingTime),
	}
	if err := a.accounts.addPending(waiting); err != nil {
		return "", err
	}
	authorization := oauth2.Config{ClientID: c.Client.ID, RedirectURL: redirect, Scopes: c.Scopes}
	authorization.Endpoint.AuthURL = p.server.AuthorizationEndpoint
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(waiting.verifier), oauth2.SetAuthURLParam("resource", c.Resource)}
	if slices.Contains(c.Scopes, offlineAccess) { // OpenID Connect ignores it without consent
		options = append(options, oauth2.SetAuthURLParam("prompt", "consent"))
	}
	return authorization.AuthCodeURL(waiting.state, options...), nil
}

// offlineAccess is the scope for a refresh token.
const offlineAccess = "offline_access"

// prepare finds the authorization server and the client for a sign-in, and checks that
// tokens can be saved. It returns credentials without tokens.
func (a *Account) prepare(ctx context.Context, redirect string, scopes []string) (*provider, *credentials, error) {
	asked, err := a.probe(ctx)
	if err != nil {
		return nil, nil, err
	}
	p, err := a.discover(ctx, asked)
	if err != nil {
		return nil, nil, err
	}
	if p == nil {
		return nil, nil, ErrNoOAuth
	}
	if _, err := a.accounts.vault.Box(ctx); err != nil { // the tokens could not be saved
		return nil, nil, err
	}
	chosen, err := a.choose(ctx, p, redirect)
	if err != nil {
		return nil, nil, err
	}
	return p, &credentials{
		Issuer: p.server.Issuer, Resource: p.resource, Client: chosen,
		TokenURL: p.server.TokenEndpoint, Revoke: p.server.RevocationEndpoint,
		Scopes: a.wanted(ctx, p, asked.scopes, scopes),
	}, nil
}

// probe sends the upstream a request without a token and returns its challenge, which
// names the metadata and the scopes.
func (a *Account) probe(ctx context.Context) (challenge, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	body := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.settings.URL, body)
	if err != nil {
		return challenge{}, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Close = true // there is no second request
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(r)
	if err != nil {
		return challenge{}, failure(err)
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.CopyN(io.Discard, response.Body, maxHeaders)
	return readChallenge(response.Header), nil
}

// wanted returns the scopes to ask for: the configured ones, else those of the challenge,
// else those that the upstream supports; then the additional ones and, so that a step-up
// loses nothing, those of the last sign-in.
func (a *Account) wanted(ctx context.Context, p *provider, challenged, more []string) []string {
	scopes := slices.Clone(a.settings.Scopes)
	if len(scopes) == 0 {
		scopes = slices.Clone(challenged)
		if len(scopes) == 0 {
			scopes = slices.Clone(p.scopes)
		}
		if slices.Contains(p.server.ScopesSupported, offlineAccess) {
			scopes = append(scopes, offlineAccess)
		}
	}
	if len(a.settings.Scopes) == 0 || len(more) > 0 {
		if old, err := a.load(ctx); err == nil && old != nil && old.Issuer == p.server.Issuer {
			scopes = append(slices.Clone(old.Scopes), scopes...)
		}
	}
	var unique []string
	for _, scope := range append(scopes, more...) {
		if !slices.Contains(unique, scope) {
			unique = append(unique, scope)
		}
	}
	return unique
}

// addPending remembers a sign-in until the browser comes back.
func (x *Accounts) addPending(p *pending) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	same, now := 0, p.account.now()
	for i, other := range slices.Backward(x.pending) { // the newest first
		if other.account.key == p.account.key {
			same++
		}
		if now.After(other.until) || other.account.key == p.account.key && same >= pendingPerAccount {
			x.pending = slices.Delete(x.pending, i, i+1)
		}
	}
	if len(x.pending) >= maxPending {
		return errors.New("too many sign-ins are open; try again later")
	}
	x.pending = append(x.pending, p)
	return nil
}

// removePending returns a sign-in that waits, nil if there is none for this caller.
func (x *Accounts) removePending(state, caller string) *pending {
	x.mu.Lock()
	defer x.mu.Unlock()
	i := slices.IndexFunc(x.pending, func(p *pending) bool { return p.state == state && p.account.caller == caller })
	if i < 0 || x.pending[i].account.now().After(x.pending[i].until) {
		return nil
	}
	p := x.pending[i]
	x.pending = slices.Delete(x.pending, i, i+1)
	return p
}

// Complete ends a sign-in that the same caller began, with the query that the browser
// brought to the redirect address. The account can be used after that.
func (x *Accounts) Complete(ctx context.Context, caller string, query url.Values) (*Account, error) {
	p := x.removePending(query.Get("state"), caller)
	if p == nil {
		return nil, ErrNotBegun
	}
	return p.account, p.complete(ctx, query)
}

func (p *pending) complete(ctx context.Context, query url.Values) error {
	issuer := query.Get("iss")
	switch {
	case issuer == "" && p.hasIssuer:
		return errors.New("the answer does not say which server it is from (iss), so it was not used")
	case issuer != "" && issuer != p.creds.Issuer:
		return errors.New("the answer is from another server (iss), so it was not used")
	case query.Get("error") != "":
		return fmt.Errorf("%s refused: %s", shown(p.creds.Issuer), describe(query.Get("error"), query.Get("error_description")))
	case query.Get("code") == "":
		return errors.New("the answer has no code; paste the whole address that the browser ended at")
	}
	ctx = context.WithoutCancel(ctx) // the code works only once
	c := p.creds
	err := p.account.request(ctx, &c, url.Values{
		"grant_type": {"authorization_code"}, "code": {query.Get("code")}, "redirect_uri": {p.redirect},
		"code_verifier": {p.verifier},
	})
	if err != nil {
		return fmt.Errorf("%s gave no token: %w", shown(c.Issuer), err)
	}
	return p.account.keep(ctx, &c)
}

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
	if err := a.request(ctx, c, withScopes(url.Values{"grant_type": {"client_credentials"}}, c)); err != nil {
		return err
	}
	c.Refresh = "" // the client's own credentials are enough
	return a.save(ctx, c)
}

// keep saves the credentials of a new sign-in.
func (a *Account) keep(ctx context.Context, c *credentials) error {
	return a.locked(ctx, func(ctx context.Context) error { return a.save(ctx, c) })
}

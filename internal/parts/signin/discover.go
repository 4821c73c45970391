package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"mcpx/internal/plain"
)

// challenge is what an upstream's 401 or 403 asks for.
type challenge struct {
	metadata string   // URL of the protected resource metadata; may be empty
	scopes   []string // that the request needs
	code     string   // error, such as insufficient_scope
}

// readChallenge reads the WWW-Authenticate headers of a response. A header that cannot be
// read counts as absent.
func readChallenge(h http.Header) (c challenge) {
	values := h.Values("WWW-Authenticate")
	for _, value := range values[:min(len(values), maxChallenges)] {
		if len(value) > maxChallenge { // the parser's time grows with the square of it
			continue
		}
		parsed, err := oauthex.ParseWWWAuthenticate([]string{value})
		if err != nil {
			continue
		}
		for _, p := range parsed {
			if c.metadata == "" {
				c.metadata = p.Params["resource_metadata"]
			}
			if p.Scheme == "bearer" && c.scopes == nil {
				c.scopes = boundedScopes(strings.Fields(p.Params["scope"]))
			}
			if p.Scheme == "bearer" && c.code == "" {
				c.code = p.Params["error"]
			}
		}
	}
	return c
}

// Limits of what a server may name.
const (
	maxChallenges = 8
	maxChallenge  = 8 << 10 // bytes
	maxScopes     = 100
	maxScope      = 256 // bytes
	maxShown      = 200 // bytes of a foreign text in an error
)

// shown returns a foreign text for an error: on one line, and not too long.
func shown(text string) string { return plain.Cut(plain.Line(text), maxShown) }

// boundedScopes drops scopes that OAuth does not allow, and those above the limits.
func boundedScopes(scopes []string) []string {
	scopes = slices.DeleteFunc(slices.Clone(scopes), func(s string) bool {
		return s == "" || len(s) > maxScope || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' })
	})
	return scopes[:min(len(scopes), maxScopes)]
}

// provider is what metadata says about signing in to an upstream.
type provider struct {
	resource string   // the upstream's identifier, for the parameter "resource"
	scopes   []string // that the upstream supports
	server   serverMetadata
}

// serverMetadata is the metadata of an authorization server.
type serverMetadata struct {
	oauthex.AuthServerMeta
	DeviceEndpoint string `json:"device_authorization_endpoint"`
}

// discovery is a cached result of discover.
type discovery struct {
	challenge string // the metadata URL it is for
	until     time.Time
	provider  *provider
	err       error
}

const discoveryLife = time.Minute

// discoverCached is discover for the path of a request.
func (a *Account) discoverCached(ctx context.Context, c challenge) (*provider, error) {
	select {
	case a.looking <- struct{}{}:
		defer func() { <-a.looking }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	found := a.found.Load()
	if found == nil || found.challenge != c.metadata || !a.now().Before(found.until) {
		found = &discovery{challenge: c.metadata, until: a.now().Add(discoveryLife)}
		if found.provider, found.err = a.discover(ctx, c); ctx.Err() == nil {
			a.found.Store(found)
		}
	}
	return found.provider, found.err
}

// discover finds the authorization server of the upstream. It returns nil without an
// error if the upstream has no OAuth metadata.
func (a *Account) discover(ctx context.Context, c challenge) (*provider, error) {
	ctx, cancel := context.WithTimeout(ctx, discoveryTime)
	defer cancel()
	resource, err := a.resourceMetadata(ctx, c)
	if err != nil {
		return nil, err
	}
	issuer, p := a.origin, &provider{resource: resourceOf(a.settings.URL)} // an upstream of 2025-03-26 may be its own authorization server
	if resource != nil {
		p.resource, p.scopes = resource.Resource, boundedScopes(resource.ScopesSupported)
		if issuer, err = a.chooseIssuer(resource.AuthorizationServers); err != nil {
			return nil, err
		}
	}
	server, err := a.serverMetadata(ctx, issuer)
	switch {
	case err != nil || server == nil && resource == nil:
		return nil, err
	case server == nil:
		return nil, fmt.Errorf("its authorization server %s has no metadata", shown(issuer))
	}
	p.server = *server
	return p, a.checkIssuer(server.Issuer)
}

// chooseIssuer returns the configured authorization server, else the first one.
func (a *Account) chooseIssuer(offered []string) (string, error) {
	if len(offered) == 0 {
		return "", errors.New("its metadata names no authorization server")
	}
	if a.settings.Issuer == "" {
		return offered[0], nil
	}
	if !slices.Contains(offered, a.settings.Issuer) {
		return "", a.checkIssuer(offered[0])
	}
	return a.settings.Issuer, nil
}

func (a *Account) checkIssuer(issuer string) error {
	if a.settings.Issuer == "" || a.settings.Issuer == issuer {
		return nil
	}
	return fmt.Errorf("its authorization server is %s, and the config allows only %s (auth.issuer)", shown(issuer), a.settings.Issuer)
}

// resourceMetadata returns the protected resource metadata (RFC 9728): at the URL in the
// challenge, else at the well-known places; nil if there is none.
func (a *Account) resourceMetadata(ctx context.Context, c challenge) (*oauthex.ProtectedResourceMetadata, error) {
	places := []string{c.metadata}
	if c.metadata == "" {
		u, err := url.Parse(resourceOf(a.settings.URL))
		if err != nil {
			return nil, err
		}
		const wellKnown = "/.well-known/oauth-protected-resource"
		origin := u.Scheme + "://" + u.Host
		places = []string{origin + wellKnown}
		if path := strings.TrimRight(u.EscapedPath(), "/"); path != "" {
			places = []string{origin + wellKnown + u.EscapedPath(), origin + wellKnown}
		}
	}
	var found oauthex.ProtectedResourceMetadata
	switch ok, err := a.getFirst(ctx, places, &found); {
	case err != nil:
		return nil, err
	case !ok && c.metadata != "":
		return nil, fmt.Errorf("the metadata that it names, %s, does not exist", shown(c.metadata))
	case !ok:
		return nil, nil
	case !covers(found.Resource, resourceOf(a.settings.URL)):
		return nil, fmt.Errorf("its metadata is for %s, not for %s", shown(found.Resource), resourceOf(a.settings.URL))
	}
	return &found, nil
}

// covers reports whether a resource identifier is that of the URL, or of a folder above
// it on the same origin, as many servers have it.
func covers(resource, address string) bool {
	r, err1 := url.Parse(resource)
	u, err2 := url.Parse(address)
	if err1 != nil || err2 != nil || r.Scheme != u.Scheme || !strings.EqualFold(r.Host, u.Host) || r.User != nil || r.RawQuery != "" || r.Fragment != "" {
		return false
	}
	folder := strings.TrimRight(r.Path, "/")
	return u.Path == folder || strings.HasPrefix(u.Path, folder+"/")
}

// serverMetadata returns the metadata of an authorization server (RFC 8414 or OpenID
// Connect); nil if there is none.
func (a *Account) serverMetadata(ctx context.Context, issuer string) (*serverMetadata, error) {
	u, err := checkEndpoint(issuer)
	if err != nil {
		return nil, err
	}
	origin, path := u.Scheme+"://"+u.Host, strings.TrimRight(u.EscapedPath(), "/")
	places := []string{origin + "/.well-known/oauth-authorization-server" + path, origin + "/.well-known/openid-configuration" + path}
	if path != "" {
		places = append(places, origin+path+"/.well-known/openid-configuration")
	}
	var found serverMetadata
	switch ok, err := a.getFirst(ctx, places, &found); {
	case err != nil || !ok:
		return nil, err
	case found.Issuer != issuer:
		return nil, fmt.Errorf("the metadata of the authorization server %s is for another one, %s", shown(issuer), shown(found.Issuer))
	}
	return &found, found.check()
}

// check checks the endpoints.
func (m *serverMetadata) check() error {
	for name, address := range map[string]string{
		"authorization_endpoint": m.AuthorizationEndpoint, "token_endpoint": m.TokenEndpoint,
		"registration_endpoint": m.RegistrationEndpoint, "revocation_endpoint": m.RevocationEndpoint,
		"device_authorization_endpoint": m.DeviceEndpoint,
	} {
		if address == "" {
			continue
		}
		if _, err := checkEndpoint(address); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if m.TokenEndpoint == "" {
		return errors.New("its authorization server has no token endpoint")
	}
	return nil
}

// getFirst reads the first JSON document that exists. It returns false if none does.
func (a *Account) getFirst(ctx context.Context, places []string, into any) (ok bool, err error) {
	for _, place := range places {
		if ok, err = a.getJSON(ctx, place, into); ok || err != nil {
			break
		}
	}
	return ok, err
}

// getJSON reads a JSON document. It returns false if the document does not exist.
func (a *Account) getJSON(ctx context.Context, address string, into any) (bool, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return false, errors.New("it names metadata at an address that is not a URL")
	}
	r.Header.Set("Accept", "application/json")
	response, err := a.client.Do(r)
	switch {
	case err != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return false, tooSlow(address, discoveryTime)
	case err != nil:
		return false, failure(err)
	}
	defer func() { _ = response.Body.Close() }()
	switch {
	case response.StatusCode >= 400 && response.StatusCode < 500:
		return false, nil
	case response.StatusCode != http.StatusOK:
		return false, fmt.Errorf("%s: HTTP status %s", shown(address), shown(response.Status))
	}
	data, _ := io.ReadAll(response.Body) // cannot fail: guard has read it
	if err := json.Unmarshal(data, into); err != nil {
		return false, fmt.Errorf("%s is not the JSON of OAuth metadata", shown(address))
	}
	return true, nil
}

package callers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"golang.org/x/sync/singleflight"

	"mcpx/internal/policy"
	"mcpx/server/access"
)

// issuer checks the access tokens of an OpenID Connect issuer. Its configuration is read
// when the first token arrives, so that mcpx starts without it.
type issuer struct {
	config OIDC
	public string // the address of mcpx that clients use, for the audience of tokens
	keys   *keyClient

	finding  singleflight.Group
	verifier atomic.Pointer[oidc.IDTokenVerifier] // nil until the issuer was reached

	mu    sync.Mutex
	rules map[string]policy.Rules // by the grants and profiles of a token, so that equal rules are one value
}

// algorithms are the signatures that mcpx accepts: with public keys only, so that nobody
// can sign with a key that everybody knows.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// verifyTime bounds the check of one token, with all requests to the issuer.
const verifyTime = 15 * time.Second

func newIssuer(c OIDC, public string) *issuer {
	return &issuer{config: c, public: public, keys: newKeyClient(), rules: map[string]policy.Rules{}}
}

// find returns the caller that a token is for, or why it is refused in a request for a
// profile; "": for none.
func (i *issuer) find(ctx context.Context, raw, profile string) (*policy.Caller, *access.Refusal) {
	signed, err := jose.ParseSigned(raw, algorithms)
	if err != nil || len(signed.Signatures) != 1 { // no keys are needed to see that
		return nil, i.notSigned()
	}
	ctx, cancel := context.WithTimeout(ctx, verifyTime)
	defer cancel()
	verifier, err := i.reach(ctx)
	if err != nil {
		return nil, unreachable
	}
	token, err := verifier.Verify(ctx, raw)
	expired, isExpired := errors.AsType[*oidc.TokenExpiredError](err)
	switch {
	case isExpired:
		return nil, access.InvalidToken(fmt.Sprintf("the token expired %s ago", time.Since(expired.Expiry).Round(time.Second)))
	case err != nil && !i.keys.reached.Load():
		return nil, unreachable
	case err != nil:
		return nil, i.notSigned()
	case token.Subject == "":
		return nil, access.InvalidToken("the token has no subject")
	case !isAccessToken(signed.Signatures[0].Protected, token):
		return nil, access.InvalidToken("the token is not an access token; send the access token of the issuer")
	}
	profiles, ok := i.profiles(token.Audience)
	if !ok || profiles != nil && profile != "" && !slices.Contains(profiles, profile) {
		return nil, access.InvalidToken("the token is for another audience")
	}
	return &policy.Caller{
		ID:    token.Issuer + "\x00" + token.Subject,
		Name:  token.Issuer + " " + token.Subject,
		Rules: i.rulesOf(token, profiles),
	}, nil
}

// isAccessToken reports whether a token may be an access token. It returns false only if the
// token says that it is of another kind: many issuers do not name the kind. Other claims of ID tokens, such as nonce and
// at_hash, are also in access tokens of some issuers (Dex, authentik).
func isAccessToken(header jose.Header, token *oidc.IDToken) bool {
	typ, _ := header.ExtraHeaders[jose.HeaderType].(string)
	switch strings.TrimPrefix(strings.ToLower(typ), "application/") {
	case "", "jwt", "at+jwt": // the last is of RFC 9068
	default:
		return false
	}
	var claims map[string]json.RawMessage
	_ = token.Claims(&claims) // it is an object, or the token would not be valid
	switch text(claims["typ"]) {
	case "ID", "Serialized-ID", "Refresh", "Offline", "Logout": // of Keycloak
		return false
	}
	return text(claims["token_use"]) != "id" // of Cognito
}

// text returns a claim that is a text; "" for any other.
func text(claim json.RawMessage) (s string) {
	_ = json.Unmarshal(claim, &s)
	return s
}

// notSigned refuses a token that the issuer cannot have signed.
func (i *issuer) notSigned() *access.Refusal {
	return access.InvalidToken("the token is malformed, or the issuer " + i.config.Issuer + " did not sign it")
}

// unreachable refuses tokens while the keys of the issuer are not known. It is not the
// client's fault, so the client keeps its token.
var unreachable = &access.Refusal{Status: http.StatusServiceUnavailable, Text: "the issuer of the token cannot be reached; try again later"}

// reach returns the verifier. It reads the issuer's configuration if that is not known.
func (i *issuer) reach(ctx context.Context) (*oidc.IDTokenVerifier, error) {
	if v := i.verifier.Load(); v != nil {
		return v, nil
	}
	_, err, _ := i.finding.Do("", func() (any, error) {
		// Requests that wait for the configuration may end before it arrives.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), verifyTime)
		defer cancel()
		provider, err := oidc.NewProvider(oidc.ClientContext(ctx, &http.Client{Transport: i.keys, Timeout: fetchTime}), i.config.Issuer)
		if err != nil {
			return nil, err
		}
		var names []string
		for _, a := range algorithms {
			names = append(names, string(a))
		}
		i.verifier.Store(provider.Verifier(&oidc.Config{SkipClientIDCheck: true, SupportedSigningAlgs: names}))
		return nil, nil
	})
	return i.verifier.Load(), err
}

// profiles returns the profiles that a token is for, nil for all. It reports whether the
// token is for mcpx.
func (i *issuer) profiles(audience []string) (profiles []string, ok bool) {
	for _, a := range audience {
		profile, accepted := i.accepts(a)
		switch {
		case accepted && profile == "":
			return nil, true
		case accepted:
			profiles = append(profiles, profile)
		}
	}
	return profiles, len(profiles) > 0
}

// accepts reports whether an audience is mcpx, and returns the only profile that it is
// valid for; "" if it is valid for all.
func (i *issuer) accepts(audience string) (profile string, ok bool) {
	if len(i.config.Audience) > 0 {
		return "", slices.Contains(i.config.Audience, audience)
	}
	path, ok := strings.CutPrefix(audience, i.public)
	if path == "" || path == "/mcp" {
		return "", ok
	}
	name, isProfile := strings.CutPrefix(path, "/mcp/")
	profile, err := url.PathUnescape(name)
	return profile, ok && isProfile && err == nil && profile != "" && !strings.Contains(name, "/")
}

// maxRules bounds the rules that are kept. There are as many as callers have different
// sets of scopes and claims.
const maxRules = 1000

// rulesOf returns what a token grants.
func (i *issuer) rulesOf(token *oidc.IDToken, profiles []string) policy.Rules {
	grants, key := i.grants(token)
	slices.Sort(profiles)
	key += "\x00" + strings.Join(profiles, "\x00")
	i.mu.Lock()
	defer i.mu.Unlock()
	if r, ok := i.rules[key]; ok {
		return r
	}
	if len(i.rules) >= maxRules {
		clear(i.rules)
	}
	r := union(grants).within(profiles).hook()
	i.rules[key] = r
	return r
}

// grants returns what the scopes and claims of a token grant, and a key for them.
func (i *issuer) grants(token *oidc.IDToken) (grants []Grant, key string) {
	var claims map[string]json.RawMessage
	_ = token.Claims(&claims) // it is an object, or the token would not be valid
	add := func(place int, named Grants, values []string) {
		for at, n := range named {
			if slices.Contains(values, n.Name) {
				grants = append(grants, n.Value)
				key += fmt.Sprintf("%d.%d ", place, at)
			}
		}
	}
	scopes := strings.Join(append(texts(claims["scope"]), texts(claims["scp"])...), " ") // a text with spaces, or an array
	add(0, i.config.Scopes, strings.Fields(scopes))
	for at, c := range i.config.Claims {
		add(at+1, c.Value, texts(claims[c.Name]))
	}
	return grants, key
}

// texts returns the texts of a claim, which is a text or an array of them. Other values
// count as they are written: true, 7.
func texts(claim json.RawMessage) []string {
	var list []json.RawMessage
	if json.Unmarshal(claim, &list) != nil {
		list = []json.RawMessage{claim}
	}
	var all []string
	for _, value := range list {
		var text string
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		}
		all = append(all, text)
	}
	return all
}

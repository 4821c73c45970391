package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strings"
	"time"

	"mcpx/internal/policy"
)

// CallerOf returns who sent a request that a Guard has let in. It is nil for a caller
// without a name, who may use everything: with server.token, or on a front that needs no
// token.
func CallerOf(ctx context.Context) *policy.Caller {
	c, _ := ctx.Value(callerKey{}).(*policy.Caller)
	return c
}

// MayUse reports whether a schema exists for the sender of a request.
func MayUse(ctx context.Context, schema string) bool {
	caller := CallerOf(ctx)
	return caller == nil || caller.Rules.HasSchema(schema)
}

// MayUseAll reports whether the sender of a request may use everything.
func MayUseAll(ctx context.Context) bool {
	caller := CallerOf(ctx)
	return caller == nil || caller.Rules == nil
}

// callerKey is the key of the caller in a request's context.
type callerKey struct{}

// withCaller returns a request that CallerOf knows the sender of.
func withCaller(r *http.Request, c *policy.Caller) *http.Request {
	if c == nil {
		return r
	}
	return r.WithContext(context.WithValue(r.Context(), callerKey{}, c))
}

// callers knows who may send requests. Its methods may be called concurrently.
type callers struct {
	tokens []token
	issuer *issuer // nil: there is none

	schemas func() []string
	now     func() time.Time
}

// token is server.token, or one of server.auth.tokens.
type token struct {
	hash    [sha256.Size]byte
	caller  *policy.Caller // nil: server.token
	expires time.Time      // zero: never
}

func newCallers(g *Guard) *callers {
	c := &callers{schemas: g.Schemas, now: time.Now}
	if c.schemas == nil {
		c.schemas = func() []string { return nil }
	}
	for _, t := range g.Auth.Tokens {
		caller := &policy.Caller{ID: t.Name, Name: t.Name, Rules: policy.Union(t.Grant)}
		c.tokens = append(c.tokens, token{sha256.Sum256([]byte(t.Token)), caller, t.Expires})
	}
	if g.Token != "" {
		c.tokens = append(c.tokens, token{hash: sha256.Sum256([]byte(g.Token))})
	}
	if g.Auth.OIDC.Issuer != "" {
		c.issuer = newIssuer(g.Auth.OIDC, g.PublicURL)
	}
	return c
}

// find returns who sent a request, or why it is refused.
func (c *callers) find(r *http.Request) (*policy.Caller, *refusal) {
	if len(c.tokens) == 0 && c.issuer == nil { // requests need no token
		return nil, nil
	}
	values := r.Header["Authorization"]
	if len(values) == 0 || len(values) == 1 && values[0] == "" {
		return nil, &refusal{status: http.StatusUnauthorized, text: "Unauthorized: " + tokenHelp}
	}
	scheme, text := credential(values)
	known := c.byText(text)
	switch {
	case known != nil && !known.expires.IsZero() && !c.now().Before(known.expires):
		return nil, invalidToken("the token has expired")
	case known != nil:
		return known.caller, nil
	case c.issuer != nil && scheme == "bearer" && strings.Count(text, ".") == 2:
		return c.issuer.find(r.Context(), text, requestedSchema(r.URL.Path, c.schemas()))
	}
	return nil, invalidToken("mcpx does not know this token")
}

// tokenHelp says what a request without a valid token must have.
const tokenHelp = `send "Authorization: Bearer TOKEN", where TOKEN is what server.token, server.auth, MCPX_TOKEN or --token-file gave mcpx`

// byText returns the token with that text, nil if there is none; of several, the last. It
// compares hashes, and all of them, so that its duration does not reveal anything about a
// token, not even the length.
func (c *callers) byText(text string) (found *token) {
	if text == "" {
		return nil
	}
	hash := sha256.Sum256([]byte(text))
	for i := range c.tokens {
		if subtle.ConstantTimeCompare(hash[:], c.tokens[i].hash[:]) == 1 {
			found = &c.tokens[i]
		}
	}
	return found
}

// credential returns the token in the values of Authorization: as Bearer, or as the
// password of Basic, for which browsers show a dialog.
func credential(values []string) (scheme, token string) {
	if len(values) != 1 {
		return "", ""
	}
	scheme, token, _ = strings.Cut(values[0], " ")
	scheme, token = strings.ToLower(scheme), strings.TrimLeft(token, " ")
	switch scheme {
	case "bearer":
		return scheme, token
	case "basic":
		pair, _ := base64.StdEncoding.DecodeString(token)
		_, token, _ = strings.Cut(string(pair), ":")
		return scheme, token
	}
	return scheme, ""
}

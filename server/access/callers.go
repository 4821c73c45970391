package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strings"
	"time"

	"mcpx/config"
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
	full   *[sha256.Size]byte // hash of server.token; nil: there is none
	tokens []namedToken
	issuer *issuer // nil: there is none

	schemas func() []string
	now     func() time.Time
}

// namedToken is a token of server.auth.tokens.
type namedToken struct {
	hash    [sha256.Size]byte
	caller  *policy.Caller
	expires time.Time // zero: never
}

func newCallers(g *Guard) *callers {
	c := &callers{schemas: g.Schemas, now: time.Now}
	if c.schemas == nil {
		c.schemas = func() []string { return nil }
	}
	if g.Token != "" {
		hash := sha256.Sum256([]byte(g.Token))
		c.full = &hash
	}
	for _, t := range g.Auth.Tokens {
		c.tokens = append(c.tokens, newNamedToken(t))
	}
	if g.Auth.OIDC.Issuer != "" {
		c.issuer = newIssuer(g.Auth.OIDC, g.PublicURL)
	}
	return c
}

func newNamedToken(t config.Token) namedToken {
	return namedToken{
		hash:    sha256.Sum256([]byte(t.Token)),
		caller:  &policy.Caller{ID: t.Name, Name: t.Name, Rules: policy.Union(t.Grant)},
		expires: t.Expires,
	}
}

// isOpen reports whether requests need no token.
func (c *callers) isOpen() bool { return c.full == nil && len(c.tokens) == 0 && c.issuer == nil }

// find returns who sent a request, or why it is refused.
func (c *callers) find(r *http.Request) (*policy.Caller, *refusal) {
	values := r.Header["Authorization"]
	if c.isOpen() {
		return nil, nil
	}
	if len(values) == 0 || len(values) == 1 && values[0] == "" {
		return nil, &refusal{status: http.StatusUnauthorized, text: "Unauthorized: " + tokenHelp}
	}
	scheme, token := credential(values)
	if found, ok := c.byToken(token); ok {
		if found != nil && !found.expires.IsZero() && !c.now().Before(found.expires) {
			return nil, invalidToken("the token has expired")
		}
		if found == nil {
			return nil, nil
		}
		return found.caller, nil
	}
	if c.issuer != nil && scheme == "bearer" && strings.Count(token, ".") == 2 {
		return c.issuer.find(r.Context(), token, requestedSchema(r.URL.Path, c.schemas()))
	}
	return nil, invalidToken("mcpx does not know this token")
}

// tokenHelp says what a request without a valid token must have.
const tokenHelp = `send "Authorization: Bearer TOKEN", where TOKEN is what server.token, server.auth, MCPX_TOKEN or --token-file gave mcpx`

// byToken finds a token; nil with true is server.token. It compares hashes, and all of
// them, so that its duration does not reveal anything about a token, not even the length.
func (c *callers) byToken(token string) (found *namedToken, ok bool) {
	if token == "" {
		return nil, false
	}
	hash := sha256.Sum256([]byte(token))
	for i := range c.tokens {
		if subtle.ConstantTimeCompare(hash[:], c.tokens[i].hash[:]) == 1 {
			found, ok = &c.tokens[i], true
		}
	}
	if c.full != nil && subtle.ConstantTimeCompare(hash[:], c.full[:]) == 1 {
		return nil, true
	}
	return found, ok
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

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

// MayUse reports whether a profile exists for the sender of a request.
func MayUse(ctx context.Context, profile string) bool {
	caller := CallerOf(ctx)
	return caller == nil || caller.Rules.HasProfile(profile)
}

// MayUseAll reports whether the sender of a request may use everything.
func MayUseAll(ctx context.Context) bool {
	caller := CallerOf(ctx)
	return caller == nil || caller.Rules == nil
}

// callerKey is the key of the caller in a request's context.
type callerKey struct{}

// token is server.token, or one of server.auth.tokens.
type token struct {
	hash    [sha256.Size]byte
	caller  *policy.Caller // nil: server.token
	expires time.Time      // zero: never
}

func tokensOf(s config.Server) (all []token) {
	for _, t := range s.Auth.Tokens {
		caller := &policy.Caller{ID: t.Name, Name: t.Name, Rules: policy.Union(t.Grant)}
		all = append(all, token{sha256.Sum256([]byte(t.Token)), caller, t.Expires})
	}
	if s.Token != "" {
		all = append(all, token{hash: sha256.Sum256([]byte(s.Token))})
	}
	return all
}

// caller returns who sent a request, or why it is refused.
func (g *gate) caller(r *http.Request) (*policy.Caller, *refusal) {
	if !NeedsToken(g.Server) {
		return nil, nil
	}
	values := r.Header["Authorization"]
	if len(values) == 0 || len(values) == 1 && values[0] == "" {
		return nil, &refusal{status: http.StatusUnauthorized, text: "Unauthorized: " + tokenHelp}
	}
	text := credential(values)
	known := g.token(text)
	switch {
	case known != nil && !known.expires.IsZero() && !time.Now().Before(known.expires):
		return nil, invalidToken("the token has expired")
	case known != nil:
		return known.caller, nil
	case g.issuer != nil && strings.Count(text, ".") == 2:
		return g.issuer.find(r.Context(), text, requestedProfile(r.URL.Path, g.Profiles()))
	}
	return nil, invalidToken("mcpx does not know this token")
}

// tokenHelp says what a request without a valid token must have.
const tokenHelp = `send "Authorization: Bearer TOKEN", where TOKEN is what server.token, server.auth, MCPX_TOKEN or --token-file gave mcpx`

// token returns the token with that text, nil if there is none; of several, the last. It
// compares hashes, and all of them, so that its duration does not reveal anything about a
// token, not even the length.
func (g *gate) token(text string) (found *token) {
	if text == "" {
		return nil
	}
	hash := sha256.Sum256([]byte(text))
	for i := range g.tokens {
		if subtle.ConstantTimeCompare(hash[:], g.tokens[i].hash[:]) == 1 {
			found = &g.tokens[i]
		}
	}
	return found
}

// credential returns the token in the values of Authorization: as Bearer, or as the
// password of Basic, for which browsers show a dialog.
func credential(values []string) (token string) {
	if len(values) != 1 {
		return ""
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	token = strings.TrimLeft(token, " ")
	switch strings.ToLower(scheme) {
	case "bearer":
		return token
	case "basic":
		pair, _ := base64.StdEncoding.DecodeString(token)
		_, token, _ = strings.Cut(string(pair), ":")
		return token
	}
	return ""
}

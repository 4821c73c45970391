package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strings"

	"mcpx/internal/policy"
)

// Callers knows the callers who have names. Its methods may be called concurrently.
type Callers interface {
	// Find returns the caller that the token of a request belongs to, or why the token is
	// refused. If it does not know the token, it returns neither.
	Find(r *http.Request, token string) (*policy.Caller, *Refusal)
	// MissingScope returns a scope that would let a caller use a profile that it may not use;
	// "" if there is none.
	MissingScope(caller *policy.Caller, profile string) string
}

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
	return caller == nil || caller.HasProfile(profile)
}

// MayUseAll reports whether the sender of a request may use everything.
func MayUseAll(ctx context.Context) bool {
	caller := CallerOf(ctx)
	return caller == nil || caller.Rules == nil
}

// callerKey is the key of the caller in a request's context.
type callerKey struct{}

// caller returns who sent a request, or why it is refused.
func (g *gate) caller(r *http.Request) (*policy.Caller, *Refusal) {
	if !g.NeedsToken() {
		return nil, nil
	}
	values := r.Header["Authorization"]
	if len(values) == 0 || len(values) == 1 && values[0] == "" {
		return nil, &Refusal{Status: http.StatusUnauthorized, Text: "Unauthorized: " + tokenHelp}
	}
	text := credential(values)
	if g.isToken(text) {
		return nil, nil
	}
	if g.Callers != nil && text != "" {
		if caller, why := g.Callers.Find(r, text); caller != nil || why != nil {
			return caller, why
		}
	}
	return nil, InvalidToken("mcpx does not know this token")
}

// tokenHelp says what a request without a valid token must have.
const tokenHelp = `send "Authorization: Bearer TOKEN", where TOKEN is what server.token, server.auth, MCPX_TOKEN or --token-file gave mcpx`

// isToken reports whether a text is server.token. It compares hashes, so that its duration
// does not reveal anything about the token, not even the length.
func (g *gate) isToken(text string) bool {
	if text == "" || g.Token == "" {
		return false
	}
	hash := sha256.Sum256([]byte(text))
	return subtle.ConstantTimeCompare(hash[:], g.hash[:]) == 1
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

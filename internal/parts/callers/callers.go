// Package callers adds callers with names to the HTTP front: the holders of the tokens in
// server.auth, and of the access tokens of an OpenID Connect issuer. It says who a caller is, and
// which profiles, servers and tools it may use.
//
// Hooks: access.Callers and the metadata of access.Guard say who sends a request and how to get a
// token. policy.Rules, in each caller, says what exists for it. The rules are no executor.Gate:
// every path from a client to a tool goes through registry.View, which asks them, so a call
// cannot even find, and no error names, what they do not grant. Config: Section (server.auth) and
// Check.
//
// Tests: here, with an issuer in the package callerstest; FuzzPolicy in internal/app, over every
// path from a client to a tool, with the tools of other parts; e2e/teams_test.go.
package callers

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
	"time"

	"mcpx/config"
	"mcpx/internal/policy"
	"mcpx/server/access"
)

// Callers are the callers of a config. Its methods may be called concurrently.
type Callers struct {
	tokens   []token
	issuer   *issuer         // nil: there is none
	profiles func() []string // the names of the profiles that are served
}

// New returns the callers of a config, nil if it names none.
func New(s config.Server, profiles func() []string) *Callers {
	return newCallers(Section.Of(s.Parts), s.PublicURL, profiles)
}

func newCallers(settings Settings, public string, profiles func() []string) *Callers {
	if len(settings.Tokens) == 0 && settings.OIDC.Issuer == "" {
		return nil
	}
	c := &Callers{profiles: profiles}
	for _, t := range settings.Tokens {
		caller := &policy.Caller{ID: t.Name, Name: t.Name, Rules: Union(t.Grant)}
		c.tokens = append(c.tokens, token{sha256.Sum256([]byte(t.Token)), caller, t.expires()})
	}
	if settings.OIDC.Issuer != "" {
		c.issuer = newIssuer(settings.OIDC, public)
	}
	return c
}

// Guard adds the callers to a guard.
func (c *Callers) Guard(g *access.Guard) {
	if c == nil {
		return
	}
	g.Callers = c
	if c.issuer != nil {
		g.Metadata = http.HandlerFunc(c.issuer.serveMetadata)
	}
}

// token is one of server.auth.tokens.
type token struct {
	hash    [sha256.Size]byte
	caller  *policy.Caller
	expires time.Time // zero: never
}

// Find implements access.Callers.
func (c *Callers) Find(r *http.Request, text string) (*policy.Caller, *access.Refusal) {
	known := c.token(text)
	switch {
	case known != nil && !known.expires.IsZero() && !time.Now().Before(known.expires):
		return nil, access.InvalidToken("the token has expired")
	case known != nil:
		return known.caller, nil
	case c.issuer != nil && strings.Count(text, ".") == 2:
		return c.issuer.find(r.Context(), text, requestedProfile(r.URL.Path, c.profiles()))
	}
	return nil, nil
}

// token returns the token with that text, nil if there is none; of several, the last. It
// compares hashes, and all of them, so that its duration does not reveal anything about a
// token, not even the length.
func (c *Callers) token(text string) (found *token) {
	hash := sha256.Sum256([]byte(text))
	for i := range c.tokens {
		if subtle.ConstantTimeCompare(hash[:], c.tokens[i].hash[:]) == 1 {
			found = &c.tokens[i]
		}
	}
	return found
}

// requestedProfile returns the profile that a request is for; "" if it is for none.
func requestedProfile(path string, profiles []string) string {
	for _, route := range []string{"/mcp", "/sse"} {
		rest, ok := strings.CutPrefix(path, route)
		switch name := strings.Trim(rest, "/"); {
		case !ok || rest != "" && rest[0] != '/':
		case name == "" && len(profiles) == 1:
			return profiles[0]
		case name == "":
			return "default"
		default:
			return name
		}
	}
	return ""
}

// MissingScope implements access.Callers. Only tokens of the issuer have scopes.
func (c *Callers) MissingScope(caller *policy.Caller, profile string) string {
	if c.issuer == nil || !strings.Contains(caller.ID, "\x00") {
		return ""
	}
	for _, scope := range c.issuer.config.Scopes {
		if union([]Grant{scope.Value}).HasProfile(profile) {
			return scope.Name
		}
	}
	return ""
}

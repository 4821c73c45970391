package access

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
)

// Refusal is why a request is not let in.
type Refusal struct {
	Status int
	Text   string // for people
	Detail string // what is wrong with the token; empty for a request without one
}

// InvalidToken refuses a token. The detail has no quotes.
func InvalidToken(detail string) *Refusal {
	return &Refusal{Status: http.StatusUnauthorized, Text: "Unauthorized: " + detail + "; " + tokenHelp, Detail: detail}
}

// MetadataPath is the path of the protected resource metadata (RFC 9728).
const MetadataPath = "/.well-known/oauth-protected-resource"

// refuse writes a refusal, with the headers that let a client get a token.
func (g *gate) refuse(w http.ResponseWriter, r *http.Request, why *Refusal) {
	h := w.Header()
	switch {
	case why.Status == http.StatusServiceUnavailable:
		h.Set("Retry-After", "5")
	case why.Detail == "":
		h.Set("WWW-Authenticate", g.challenge(r))
	default:
		h.Set("WWW-Authenticate", g.challenge(r, `error="invalid_token"`, fmt.Sprintf("error_description=%q", why.Detail)))
	}
	if why.Status == http.StatusUnauthorized && isNavigation(r) { // browsers let people enter a password, but no bearer token
		h.Add("WWW-Authenticate", `Basic realm="mcpx: any name, the token as password", charset="UTF-8"`)
	}
	Refuse(w, why.Status, why.Text)
}

// challenge returns the value of WWW-Authenticate, with these parameters and, if there is
// metadata, its address.
func (g *Guard) challenge(r *http.Request, parameters ...string) string {
	if g.Metadata != nil {
		place := PublicURL(g.PublicURL, r) + MetadataPath + ResourcePath(r.URL.EscapedPath())
		parameters = append([]string{fmt.Sprintf("resource_metadata=%q", place)}, parameters...)
	}
	return strings.TrimSpace("Bearer " + strings.Join(parameters, ", "))
}

// ResourcePath returns the path of the resource that a request is for: /mcp, /mcp/SCHEMA,
// or nothing for mcpx as a whole.
func ResourcePath(path string) string {
	path = strings.TrimSuffix(path, "/")
	if profile, ok := strings.CutPrefix(path, "/mcp/"); path == "/mcp" || ok && !strings.Contains(profile, "/") {
		return path
	}
	return ""
}

// PublicURL returns the address of mcpx that clients use: as configured, or as this
// request was sent.
func PublicURL(configured string, r *http.Request) string {
	return cmp.Or(configured, "http://"+r.Host)
}

// isMetadata reports whether a request is for the metadata, which everybody may read.
func (g *gate) isMetadata(r *http.Request) bool {
	rest, ok := strings.CutPrefix(r.URL.Path, MetadataPath)
	return ok && g.Metadata != nil && (rest == "" || rest[0] == '/')
}

// CheckProfile refuses a request for a profile that its caller may not use, and reports
// whether it did. If a scope would grant the profile, the response names it; otherwise the
// profile does not exist for the caller, and the front responds.
func (g *Guard) CheckProfile(w http.ResponseWriter, r *http.Request, profile string) (refused bool) {
	if g.Callers == nil || MayUse(r.Context(), profile) {
		return false
	}
	scope := g.Callers.MissingScope(CallerOf(r.Context()), profile)
	if scope == "" {
		return false
	}
	w.Header().Set("WWW-Authenticate", g.challenge(r, `error="insufficient_scope"`, fmt.Sprintf("scope=%q", scope)))
	Refuse(w, http.StatusForbidden, fmt.Sprintf("Forbidden: the token lacks the scope %q", scope))
	return true
}

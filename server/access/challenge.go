package access

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"mcpx/internal/policy"
)

// refusal is why a request is not let in.
type refusal struct {
	status int
	text   string // for people
	detail string // what is wrong with the token; empty for a request without one
}

// invalidToken refuses a token. The detail has no quotes.
func invalidToken(detail string) *refusal {
	return &refusal{status: http.StatusUnauthorized, text: "Unauthorized: " + detail + "; " + tokenHelp, detail: detail}
}

// metadataPath is the path of the protected resource metadata (RFC 9728).
const metadataPath = "/.well-known/oauth-protected-resource"

// refuse writes a refusal, with the headers that let a client get a token.
func (g *gate) refuse(w http.ResponseWriter, r *http.Request, why *refusal) {
	h := w.Header()
	switch {
	case why.status == http.StatusServiceUnavailable:
		h.Set("Retry-After", "5")
	case why.detail == "":
		h.Set("WWW-Authenticate", g.challenge(r))
	default:
		h.Set("WWW-Authenticate", g.challenge(r, `error="invalid_token"`, fmt.Sprintf("error_description=%q", why.detail)))
	}
	if why.status == http.StatusUnauthorized && isNavigation(r) { // browsers let people enter a password, but no bearer token
		h.Add("WWW-Authenticate", `Basic realm="mcpx: any name, the token as password", charset="UTF-8"`)
	}
	Refuse(w, why.status, why.text)
}

// challenge returns the value of WWW-Authenticate, with these parameters and, if there is
// an issuer, the address of the metadata that names it.
func (g *Guard) challenge(r *http.Request, parameters ...string) string {
	if g.Auth.OIDC.Issuer != "" {
		place := g.publicURL(r) + metadataPath + resourcePath(r.URL.EscapedPath())
		parameters = append([]string{fmt.Sprintf("resource_metadata=%q", place)}, parameters...)
	}
	return strings.TrimSpace("Bearer " + strings.Join(parameters, ", "))
}

// resourcePath returns the path of the resource that a request is for: /mcp, /mcp/SCHEMA,
// or nothing for mcpx as a whole.
func resourcePath(path string) string {
	path = strings.TrimSuffix(path, "/")
	if profile, ok := strings.CutPrefix(path, "/mcp/"); path == "/mcp" || ok && !strings.Contains(profile, "/") {
		return path
	}
	return ""
}

// publicURL returns the address of mcpx that clients use: as configured, or as this
// request was sent.
func (g *Guard) publicURL(r *http.Request) string { return cmp.Or(g.PublicURL, "http://"+r.Host) }

// isMetadata reports whether a request is for the metadata, which everybody may read. It
// is the same for profiles that do not exist, so that it reveals none.
func (g *gate) isMetadata(r *http.Request) bool {
	rest, ok := strings.CutPrefix(r.URL.Path, metadataPath)
	return ok && g.issuer != nil && (rest == "" || rest[0] == '/')
}

// serveMetadata responds with the protected resource metadata.
func (g *gate) serveMetadata(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		Refuse(w, http.StatusMethodNotAllowed, "the metadata can only be read")
		return
	}
	rest := strings.TrimPrefix(r.URL.EscapedPath(), metadataPath)
	path := resourcePath(rest)
	if path == "" && strings.Trim(rest, "/") != "" {
		Refuse(w, http.StatusNotFound, "there is no such resource; resources: /mcp, /mcp/SCHEMA")
		return
	}
	m := oauthex.ProtectedResourceMetadata{
		Resource: g.publicURL(r) + path, AuthorizationServers: []string{g.Auth.OIDC.Issuer}, BearerMethodsSupported: []string{"header"}, ResourceName: "mcpx",
	}
	for _, s := range g.Auth.OIDC.Scopes {
		m.ScopesSupported = append(m.ScopesSupported, s.Name)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(m)
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

// CheckProfile refuses a request for a profile that its caller may not use, and reports
// whether it did. If a scope would grant the profile, the response names it; otherwise the
// profile does not exist for the caller, and the front responds.
func (g *Guard) CheckProfile(w http.ResponseWriter, r *http.Request, profile string) (refused bool) {
	caller := CallerOf(r.Context())
	if caller == nil || caller.Rules.HasProfile(profile) || !strings.Contains(caller.ID, "\x00") {
		return false
	}
	for _, scope := range g.Auth.OIDC.Scopes {
		if policy.Union(scope.Value).HasProfile(profile) {
			w.Header().Set("WWW-Authenticate", g.challenge(r, `error="insufficient_scope"`, fmt.Sprintf("scope=%q", scope.Name)))
			Refuse(w, http.StatusForbidden, fmt.Sprintf("Forbidden: the token lacks the scope %q", scope.Name))
			return true
		}
	}
	return false
}

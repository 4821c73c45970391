package access

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"mcpx/config"
	"mcpx/internal/policy"
)

// refusal is why a request is not let in.
type refusal struct {
	status int
	text   string // for people
	code   string // the error of RFC 6750; empty for a request without a token
	detail string // its description
}

// invalidToken refuses a token. The detail has no quotes.
func invalidToken(detail string) *refusal {
	return &refusal{status: http.StatusUnauthorized, text: "Unauthorized: " + detail + "; " + tokenHelp, code: "invalid_token", detail: detail}
}

// metadataPath is the path of the protected resource metadata (RFC 9728).
const metadataPath = "/.well-known/oauth-protected-resource"

// challenge writes a refusal, with the headers that let a client get a token.
func (g *gate) challenge(w http.ResponseWriter, r *http.Request, why *refusal) {
	h := w.Header()
	if why.status == http.StatusServiceUnavailable {
		h.Set("Retry-After", "5")
		Refuse(w, why.status, why.text)
		return
	}
	var parts []string
	if g.callers.issuer != nil {
		parts = append(parts, fmt.Sprintf("resource_metadata=%q", publicURL(g.public, r)+metadataPath+resourcePath(r.URL.EscapedPath())))
	}
	if why.code != "" {
		parts = append(parts, fmt.Sprintf("error=%q, error_description=%q", why.code, why.detail))
	}
	h.Set("WWW-Authenticate", strings.TrimSpace("Bearer "+strings.Join(parts, ", ")))
	if isNavigation(r) { // browsers let people enter a password, but no bearer token
		h.Add("WWW-Authenticate", `Basic realm="mcpx: any name, the token as password", charset="UTF-8"`)
	}
	Refuse(w, why.status, why.text)
}

// resourcePath returns the path of the resource that a request is for: /mcp, /mcp/SCHEMA,
// or nothing for mcpx as a whole.
func resourcePath(path string) string {
	path = strings.TrimSuffix(path, "/")
	if schema, ok := strings.CutPrefix(path, "/mcp/"); path == "/mcp" || ok && !strings.Contains(schema, "/") {
		return path
	}
	return ""
}

// publicURL returns the address of mcpx that clients use: as configured, or as this
// request was sent.
func publicURL(configured string, r *http.Request) string {
	return cmp.Or(configured, "http://"+r.Host)
}

// metadata is the response to a request of metadataPath.
type metadata struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	ScopesSupported      []string `json:"scopes_supported,omitempty"`
	BearerMethods        []string `json:"bearer_methods_supported"`
	ResourceName         string   `json:"resource_name"`
}

// isMetadata reports whether a request is for the metadata, which everybody may read. It
// is the same for schemas that do not exist, so that it reveals none.
func (g *gate) isMetadata(r *http.Request) bool {
	rest, ok := strings.CutPrefix(r.URL.Path, metadataPath)
	return ok && g.callers.issuer != nil && (rest == "" || rest[0] == '/')
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
	m := metadata{Resource: publicURL(g.public, r) + path, AuthorizationServers: []string{g.callers.issuer.config.Issuer}, BearerMethods: []string{"header"}, ResourceName: "mcpx"}
	for _, s := range g.callers.issuer.config.Scopes {
		m.ScopesSupported = append(m.ScopesSupported, s.Name)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(m)
}

// requestedSchema returns the schema that a request is for; "" if it is for none.
func requestedSchema(path string, schemas []string) string {
	for _, route := range []string{"/mcp", "/sse"} {
		rest, ok := strings.CutPrefix(path, route)
		switch name := strings.Trim(rest, "/"); {
		case !ok || rest != "" && rest[0] != '/':
		case name == "" && len(schemas) == 1:
			return schemas[0]
		case name == "":
			return "default"
		default:
			return name
		}
	}
	return ""
}

// CheckSchema refuses a request for a schema that its caller may not use, and reports
// whether it did. If a scope would grant the schema, the response names it; otherwise the
// schema does not exist for the caller, and the front responds.
func (g *Guard) CheckSchema(w http.ResponseWriter, r *http.Request, schema string) (refused bool) {
	caller := CallerOf(r.Context())
	if caller == nil || caller.Rules.HasSchema(schema) || !strings.Contains(caller.ID, "\x00") {
		return false
	}
	scope := scopeFor(g.Auth.OIDC.Scopes, schema)
	if scope == "" {
		return false
	}
	w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer resource_metadata=%q, error="insufficient_scope", scope=%q`, publicURL(g.PublicURL, r)+metadataPath+resourcePath(r.URL.EscapedPath()), scope))
	Refuse(w, http.StatusForbidden, fmt.Sprintf("Forbidden: the token lacks the scope %q", scope))
	return true
}

// scopeFor returns the first scope that grants a schema, "" if none does.
func scopeFor(scopes config.Grants, schema string) string {
	for _, s := range scopes {
		if policy.Union(s.Value).HasSchema(schema) {
			return s.Name
		}
	}
	return ""
}

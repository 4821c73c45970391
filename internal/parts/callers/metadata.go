package callers

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"mcpx/server/access"
)

// serveMetadata responds with the protected resource metadata (RFC 9728), which names the
// issuer. It is the same for profiles that do not exist, so that it reveals none.
func (i *issuer) serveMetadata(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		access.Refuse(w, http.StatusMethodNotAllowed, "the metadata can only be read")
		return
	}
	rest := strings.TrimPrefix(r.URL.EscapedPath(), access.MetadataPath)
	path := access.ResourcePath(rest)
	if path == "" && strings.Trim(rest, "/") != "" {
		access.Refuse(w, http.StatusNotFound, "there is no such resource; resources: /mcp, /mcp/SCHEMA")
		return
	}
	m := oauthex.ProtectedResourceMetadata{
		Resource: access.PublicURL(i.public, r) + path, AuthorizationServers: []string{i.config.Issuer}, BearerMethodsSupported: []string{"header"}, ResourceName: "mcpx",
	}
	for _, s := range i.config.Scopes {
		m.ScopesSupported = append(m.ScopesSupported, s.Name)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(m)
}

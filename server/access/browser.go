package access

import (
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"mcpx/internal/origin"
)

// ClientRoutes are the routes for MCP clients. Pages of other origins may use them and
// Guard.Shared, with everything below them. All other routes are for mcpx's own pages, so that a
// new route is safe.
var ClientRoutes = []string{"/mcp", "/sse", "/message", MetadataPath}

// isShared reports whether pages of other origins may use a path.
func (g *Guard) isShared(path string) bool {
	isWithin := func(route string) bool {
		rest, ok := strings.CutPrefix(path, route)
		return ok && (rest == "" || rest[0] == '/')
	}
	return slices.ContainsFunc(ClientRoutes, isWithin) || slices.ContainsFunc(g.Shared, isWithin)
}

// originProblem returns why the page that makes a request may not do so, "" if it may.
// Clients other than browsers send no Origin.
func (g *gate) originProblem(r *http.Request) string {
	values := r.Header["Origin"]
	if len(values) == 0 {
		return g.noOriginProblem(r)
	}
	o, ok := origin.Parse(values[0])
	if !ok || len(values) > 1 {
		return "Forbidden: the Origin header is null or not an origin; use a page whose origin is on localhost or in server.allowed_origins"
	}
	isWeb := o.Scheme == "http" || o.Scheme == "https"
	isLocal, isListed := isWeb && o.IsLoopback(), slices.Contains(g.origins, o)
	isOwn := isWeb && o.IsOf(r.Host) || o == g.public
	switch site := r.Header.Get("Sec-Fetch-Site"); {
	case !isOwn && !isListed && !isLocal:
		return fmt.Sprintf("Forbidden: the origin %q is not allowed; add it to server.allowed_origins in the config of mcpx", values[0])
	case isOwn && site == "", (isOwn || isListed) && site == "same-origin": // a proxy may change the Host header
		return ""
	case !g.isShared(r.URL.Path):
		return fmt.Sprintf("Forbidden: only the pages of mcpx may use this address, and the origin %q is another one; if a proxy is in front of mcpx, set server.public_url", values[0])
	case isSentByBrowsers(r.Header):
		return "Forbidden: a page of another origin may not use a password or cookies of the browser; send Authorization: Bearer TOKEN"
	}
	return ""
}

// noOriginProblem returns why a request without an Origin is refused. Browsers send such
// requests for pages of other origins, for example for images and frames. It allows
// only those that follow a link. Browsers send an Origin with every request that changes
// something. So a request without an Origin must not have credentials that a browser adds by
// itself.
func (g *Guard) noOriginProblem(r *http.Request) string {
	h := r.Header
	site := h.Get("Sec-Fetch-Site")
	isForeign := site == "cross-site" || site == "same-site" // same-site: another port or a sibling domain
	isRead := r.Method == http.MethodGet || r.Method == http.MethodHead
	isLink := isRead && h.Get("Sec-Fetch-Mode") == "navigate" && h.Get("Sec-Fetch-Dest") == "document" && h.Get("Sec-Purpose") == "" // not a prefetch
	changes := !isRead && r.Method != http.MethodOptions
	switch {
	case isForeign && !isLink:
		return "Forbidden: a page of another origin made this request without an Origin; use fetch from an origin in server.allowed_origins"
	case changes && site == "none":
		return "Forbidden: a browser made this request without an Origin; use the console of mcpx, or a program that is not a browser"
	case changes && !g.isShared(r.URL.Path) && isSentByBrowsers(h):
		return "Forbidden: the Origin header is missing, and browsers send passwords and cookies by themselves; send Authorization: Bearer TOKEN"
	}
	return ""
}

// isSentByBrowsers reports whether a request has credentials that a browser adds by itself,
// without the page: a password, or cookies, which a proxy in front of mcpx may check.
func isSentByBrowsers(h http.Header) bool {
	isBasic := func(value string) bool {
		scheme, _, _ := strings.Cut(value, " ")
		return strings.EqualFold(scheme, "basic")
	}
	return len(h["Cookie"]) > 0 || slices.ContainsFunc(h["Authorization"], isBasic)
}

// isJSON reports whether a request says that its body is JSON. A page of another origin cannot
// say that without a CORS preflight request.
func isJSON(h http.Header) bool {
	kind := h.Get("Content-Type")
	if kind == "application/json" {
		return true
	}
	media, _, err := mime.ParseMediaType(kind)
	return err == nil && media == "application/json"
}

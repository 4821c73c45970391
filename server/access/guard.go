// Package access decides which HTTP requests reach mcpx: from which hosts and pages, and with
// which token. Who else may use the front is a hook, [Callers]. Without it there is only
// server.token, whose holders may use everything.
package access

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"mcpx/config"
	"mcpx/internal/origin"
	"mcpx/internal/rpc"
)

// Guard decides which requests reach mcpx, for every route and method.
type Guard struct {
	config.Server        // the hosts and origins that are allowed besides loopback, and server.token
	Bind          string // host:port of the listener; this host and the configured one are allowed, unless they are wildcards

	Shared []string // paths that pages of other origins may use too, besides ClientRoutes
	Public []string // paths that need no token

	Callers  Callers         // who may use the front besides the holders of server.token; nil: nobody
	Metadata http.Handler    // serves MetadataPath and what is below it, to everybody; nil: there is no metadata
	Headers  func() []string // that upstreams get, so that pages may send them; nil: none
}

// Wrap returns a handler that calls next for the requests that are allowed, and refuses
// all others.
func (g *Guard) Wrap(next http.Handler) http.Handler {
	wrapped := &gate{Guard: g, next: next, hash: sha256.Sum256([]byte(g.Token))}
	allow := func(host string, except ...string) {
		if a, ok := origin.ParseWrittenHost(host); ok && !slices.Contains(except, a.Name) {
			wrapped.hosts = append(wrapped.hosts, a)
		}
	}
	for _, host := range g.AllowedHosts {
		allow(host)
	}
	if u, err := url.Parse(g.PublicURL); err == nil && u.Host != "" {
		allow(u.Host)
		wrapped.public, _ = origin.Parse(u.Scheme + "://" + u.Host)
	}
	bind, _, _ := net.SplitHostPort(g.Bind)
	allow(bind, "0.0.0.0", "::")
	allow(g.Host, "0.0.0.0", "::")
	for _, text := range g.AllowedOrigins {
		if o, ok := origin.ParseWritten(text); ok {
			wrapped.origins = append(wrapped.origins, o)
		}
	}
	return wrapped
}

// CheckBind returns an error if mcpx must not listen on the host of the config: without
// any token, only loopback is allowed.
func (g *Guard) CheckBind() error {
	if a, ok := origin.ParseWrittenHost(g.Host); g.NeedsToken() || ok && a.IsLoopback() {
		return nil
	}
	return fmt.Errorf("%q can be reached from other machines, so a token is needed: set server.token, server.auth, MCPX_TOKEN or --token-file, or bind 127.0.0.1", g.Host)
}

// NeedsToken reports whether a request must have a token.
func (g *Guard) NeedsToken() bool { return g.Token != "" || g.Callers != nil }

// gate is the handler that a Guard returns.
type gate struct {
	*Guard
	next    http.Handler
	hosts   []origin.Host
	origins []origin.Origin
	public  origin.Origin     // of the address that people use; zero: not configured
	hash    [sha256.Size]byte // of server.token
}

// corsHeaders are the headers that a page of an allowed origin may always send.
const corsHeaders = "Content-Type, Accept, Authorization, Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID"

// commonHeaders are the headers of every response, and pageHeaders those of one that a
// browser or a cache could keep, which no response to a POST is. Their values are shared
// and must not be changed.
var (
	commonHeaders = http.Header{"X-Content-Type-Options": {"nosniff"}}
	pageHeaders   = http.Header{
		"Referrer-Policy": {"no-referrer"},
		"Cache-Control":   {"no-store"},
		"Vary":            {"Origin"},
	}
)

// ServeHTTP implements http.Handler.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	maps.Copy(h, commonHeaders)
	if r.Method != http.MethodPost {
		maps.Copy(h, pageHeaders)
	}
	if reason := cmp.Or(g.hostProblem(r.Host), g.originProblem(r)); reason != "" {
		Refuse(w, http.StatusForbidden, reason)
		return
	}
	if from := r.Header.Get("Origin"); from != "" {
		h.Set("Access-Control-Allow-Origin", from)
		h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate")
	}
	if isPreflight(r) { // before the token is checked, since browsers send none with it
		h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS")
		h.Set("Access-Control-Allow-Headers", g.allowedHeaders())
		h.Set("Access-Control-Max-Age", "600")
		w.WriteHeader(http.StatusNoContent)
		return
	}
	switch {
	case slices.Contains(g.Public, r.URL.Path):
	case g.isMetadata(r):
		g.Metadata.ServeHTTP(w, r)
		return
	default:
		caller, why := g.caller(r)
		if why != nil {
			g.refuse(w, r, why)
			return
		}
		if caller != nil {
			r = r.WithContext(context.WithValue(r.Context(), callerKey{}, caller))
		}
	}
	if r.Method == http.MethodPost && !isJSON(r.Header) {
		Refuse(w, http.StatusUnsupportedMediaType, "Content-Type must be application/json")
		return
	}
	g.next.ServeHTTP(w, r)
}

// hostProblem returns why a Host is refused, "" if it is allowed. This stops DNS
// rebinding: a page whose host name resolves to this machine has mcpx's origin in the
// browser, and only the Host header shows it.
func (g *gate) hostProblem(text string) string {
	a, ok := origin.ParseHost(text)
	if !ok {
		return "Forbidden: the Host header is missing or is not a host name; connect to localhost, or to a host in server.allowed_hosts"
	}
	if a.IsLoopback() || slices.ContainsFunc(g.hosts, a.IsWithin) {
		return ""
	}
	return fmt.Sprintf("Forbidden: the host %q is not allowed; add it to server.allowed_hosts in the config of mcpx, or connect to localhost", a.Name)
}

// isPreflight reports whether a request is a CORS preflight.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}

// allowedHeaders returns the headers that a page of an allowed origin may send.
func (g *gate) allowedHeaders() string {
	if g.Headers == nil {
		return corsHeaders
	}
	return strings.Join(append([]string{corsHeaders}, g.Headers()...), ", ")
}

// isNavigation reports whether a person opens a page in a browser. Browsers send
// Sec-Fetch-Mode only to loopback and over HTTPS; otherwise the Accept header decides, in
// which every browser names HTML first.
func isNavigation(r *http.Request) bool {
	mode := r.Header.Get("Sec-Fetch-Mode")
	first, _, _ := strings.Cut(r.Header.Get("Accept"), ",")
	return mode == "navigate" || mode == "" && r.Method == http.MethodGet && strings.EqualFold(first, "text/html")
}

// Refuse writes an HTTP error whose body is a JSON-RPC error without an ID.
func Refuse(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(rpc.AppendError(nil, nil, &rpc.Error{Code: rpc.CodeInvalidRequest, Message: text}))
}

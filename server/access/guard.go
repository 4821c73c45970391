// Package access decides which HTTP requests reach mcpx.
package access

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"maps"
	"mime"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"mcpx/internal/jsonrpc"
	"mcpx/internal/origin"
)

// Guard lets only requests through that may reach mcpx: it stands in front of
// every route and method.
type Guard struct {
	Token          string   // bearer token; empty: none is asked for
	AllowedHosts   []string // besides loopback names; a host, or a host and the one port it may have
	AllowedOrigins []string // besides loopback origins: https://app.example.com
	Bind           string   // the address that is listened on, host:port: its host is allowed too unless it is a wildcard
}

// Wrap returns the handler that calls next for what is let through, and only then.
func (g *Guard) Wrap(next http.Handler) http.Handler {
	at := &gate{next: next, open: g.Token == "", token: sha256.Sum256([]byte(g.Token))}
	for _, text := range g.AllowedHosts {
		if a, ok := origin.ParseWrittenHost(text); ok {
			at.hosts = append(at.hosts, a)
		}
	}
	bind, _, _ := net.SplitHostPort(g.Bind)
	if a, ok := origin.ParseWrittenHost(bind); ok && a.Name != "0.0.0.0" && a.Name != "::" {
		at.hosts = append(at.hosts, a)
	}
	for _, text := range g.AllowedOrigins {
		if o, ok := origin.ParseWritten(text); ok {
			at.origins = append(at.origins, o)
		}
	}
	return at
}

// CheckBind says why an address may not be bound: anything but loopback needs a
// token.
func CheckBind(host, token string) error {
	if a, ok := origin.ParseWrittenHost(host); token != "" || ok && a.IsLoopback() {
		return nil
	}
	return fmt.Errorf("%q can be reached from other machines, so a token is needed: set server.token, MCPX_TOKEN or --token-file, or bind 127.0.0.1", host)
}

// gate is a Guard at work.
type gate struct {
	next    http.Handler
	hosts   []origin.Host
	origins []origin.Origin
	open    bool // without a token
	token   [sha256.Size]byte
}

// corsHeaders are what a page of an allowed origin may send.
const corsHeaders = "Content-Type, Accept, Authorization, Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID"

// always are the headers of every answer. Nobody changes their values.
var always = http.Header{
	"X-Content-Type-Options": {"nosniff"},
	"Referrer-Policy":        {"no-referrer"},
	"Cache-Control":          {"no-store"},
	"Vary":                   {"Origin"},
}

// ServeHTTP implements http.Handler.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	maps.Copy(h, always)
	if reason := cmp.Or(g.hostProblem(r.Host), g.originProblem(r)); reason != "" {
		refuse(w, http.StatusForbidden, reason)
		return
	}
	if from := r.Header.Get("Origin"); from != "" {
		h.Set("Access-Control-Allow-Origin", from)
		h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id")
	}
	if isPreflight(r) { // before the token: browsers send none with it
		h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS")
		h.Set("Access-Control-Allow-Headers", corsHeaders)
		h.Set("Access-Control-Max-Age", "600")
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if r.URL.Path != "/health" && !g.open && !g.hasToken(r.Header["Authorization"]) {
		h.Set("WWW-Authenticate", "Bearer")
		if isPerson(r) { // in a browser, which can send no Bearer
			h.Add("WWW-Authenticate", `Basic realm="mcpx: any name, the token as password", charset="UTF-8"`)
		}
		refuse(w, http.StatusUnauthorized, `Unauthorized: send "Authorization: Bearer TOKEN", where TOKEN is what server.token, MCPX_TOKEN or --token-file gave mcpx`)
		return
	}
	g.next.ServeHTTP(w, r)
}

// hostProblem says why a Host is refused. A page whose own name was made to
// resolve to this machine (DNS rebinding) is of our origin to its browser: only
// the Host still tells.
func (g *gate) hostProblem(text string) string {
	a, ok := origin.ParseHost(text)
	if !ok {
		return "Forbidden: the Host header is missing or is no host name; connect to localhost, or to a host in server.allowed_hosts"
	}
	if a.IsLoopback() || slices.ContainsFunc(g.hosts, a.IsWithin) {
		return ""
	}
	return fmt.Sprintf("Forbidden: the host %q is not allowed; add it to server.allowed_hosts in the config of mcpx, or connect to localhost", a.Name)
}

// originProblem says why a request is refused for the page that makes it.
// Clients that are no browsers have no Origin.
func (g *gate) originProblem(r *http.Request) string {
	values := r.Header["Origin"]
	if len(values) == 0 {
		return strayProblem(r)
	}
	o, ok := origin.Parse(values[0])
	if !ok || len(values) > 1 {
		return "Forbidden: the Origin header is null or no origin; use a page whose origin is on localhost or in server.allowed_origins"
	}
	isWeb := o.Scheme == "http" || o.Scheme == "https"
	if isWeb && (o.IsLoopback() || o.IsOf(r.Host)) || slices.Contains(g.origins, o) {
		return ""
	}
	return fmt.Sprintf("Forbidden: the origin %q is not allowed; add it to server.allowed_origins in the config of mcpx", values[0])
}

// strayProblem refuses what a browser sends without an Origin for a page of
// another site, images and frames of an event stream among it: only a link that
// was followed passes.
func strayProblem(r *http.Request) string {
	h := r.Header
	followed := (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		h.Get("Sec-Fetch-Mode") == "navigate" && h.Get("Sec-Fetch-Dest") == "document"
	if h.Get("Sec-Fetch-Site") != "cross-site" || followed {
		return ""
	}
	return "Forbidden: a page of another site made this request without an Origin; use fetch from an origin in server.allowed_origins"
}

// isPreflight reports whether a browser asks what a page may send.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}

// isPerson reports whether a browser opens a page for somebody. It says so itself
// to loopback and over https alone; elsewhere only what it likes to get tells.
func isPerson(r *http.Request) bool {
	mode := r.Header.Get("Sec-Fetch-Mode")
	return mode == "navigate" || mode == "" && r.Method == http.MethodGet && favourite(r.Header["Accept"]) == "text/html"
}

// favourite is the media type that the values of Accept like best: of those with
// the highest weight the first.
func favourite(accept []string) (best string) {
	highest := 0.0
	for text := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		kind, parameters, err := mime.ParseMediaType(text)
		if err != nil {
			continue
		}
		weight := 1.0
		if q, ok := parameters["q"]; ok {
			weight, _ = strconv.ParseFloat(q, 64)
		}
		if weight > highest {
			best, highest = kind, weight
		}
	}
	return best
}

// hasToken reports whether the values of Authorization are the token: as Bearer,
// or as the password of Basic, which is what a browser asks a person for. Hashes
// are compared, so that the time it takes tells nothing, not even the length.
func (g *gate) hasToken(values []string) bool {
	if len(values) != 1 {
		return false
	}
	scheme, given, _ := strings.Cut(values[0], " ")
	given = strings.TrimLeft(given, " ")
	isBasic := strings.EqualFold(scheme, "Basic")
	if isBasic {
		pair, _ := base64.StdEncoding.DecodeString(given)
		_, given, _ = strings.Cut(string(pair), ":")
	}
	hash := sha256.Sum256([]byte(given))
	return (isBasic || strings.EqualFold(scheme, "Bearer")) && subtle.ConstantTimeCompare(hash[:], g.token[:]) == 1
}

// refuse answers with a JSON-RPC error that belongs to no request.
func refuse(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(jsonrpc.AppendError(nil, nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: text}))
}

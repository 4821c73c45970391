// Package signintest is an MCP server that requires OAuth, together with its authorization
// server, on one loopback address. Tests use it to sign in without a person: the
// authorization endpoint agrees at once.
package signintest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Server is the two servers. Set its exported fields before the first request; its
// methods may be called concurrently.
type Server struct {
	URL    string // of the MCP server
	Issuer string // the authorization server

	Life      int                         // seconds that access tokens live; 0: the reply does not say
	CallScope string                      // that tools/call needs
	Handlers  map[string]http.HandlerFunc // replace the handlers of paths
	Resource  func(m map[string]any)      // changes the protected resource metadata
	Metadata  func(m map[string]any)      // changes the metadata of the authorization server
	Redirect  func(q url.Values)          // changes the query of the redirect
	Device    int                         // requests until a device is approved

	server *httptest.Server

	mu               sync.Mutex
	counts           map[string]int
	forms            map[string][]url.Values
	codes            map[string]url.Values // authorization requests by code
	access           map[string][]string   // valid access tokens and their scopes
	refresh          map[string][]string   // valid refresh tokens and their scopes
	pending          int                   // device requests so far
	reused           int                   // refresh tokens that came twice
	lastRegistration map[string]any
}

// New starts the servers; they stop with the test.
func New(t testing.TB) *Server {
	s := &Server{
		counts: map[string]int{}, forms: map[string][]url.Values{}, codes: map[string]url.Values{},
		access: map[string][]string{}, refresh: map[string][]string{},
	}
	s.server = httptest.NewServer(s)
	t.Cleanup(s.server.Close)
	s.URL, s.Issuer = s.server.URL+"/mcp", s.server.URL
	return s
}

// ServeHTTP serves both servers.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	handlers := map[string]http.HandlerFunc{
		"/mcp": s.MCP,
		"/.well-known/oauth-protected-resource/mcp": s.resource,
		"/.well-known/oauth-authorization-server":   s.metadata,
		"/register":  s.register,
		"/authorize": s.authorize,
		"/token":     s.Token,
		"/device":    s.device,
		"/revoke":    s.revoke,
	}
	s.mu.Lock()
	s.counts[r.URL.Path]++
	if r.URL.Path != "/mcp" {
		s.forms[r.URL.Path] = append(s.forms[r.URL.Path], r.Form)
	}
	handle := s.Handlers[r.URL.Path]
	s.mu.Unlock()
	if handle == nil {
		handle = handlers[r.URL.Path]
	}
	if handle == nil {
		http.NotFound(w, r)
		return
	}
	handle(w, r)
}

// Replace replaces the handler of a path, also while requests come.
func (s *Server) Replace(path string, h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Handlers == nil {
		s.Handlers = map[string]http.HandlerFunc{}
	}
	s.Handlers[path] = h
}

// Count returns how many requests a path got.
func (s *Server) Count(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[path]
}

// Forms returns the parameters of the requests to a path.
func (s *Server) Forms(path string) []url.Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.forms[path])
}

// Grants returns how many token requests of a grant type there were.
func (s *Server) Grants(kind string) (count int) {
	for _, form := range s.Forms("/token") {
		if form.Get("grant_type") == kind {
			count++
		}
	}
	return count
}

// Reused returns how many refresh tokens came twice.
func (s *Server) Reused() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reused
}

// Registration returns the last registration.
func (s *Server) Registration() map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastRegistration
}

// Expire makes all access tokens invalid.
func (s *Server) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.access)
}

// Revoke makes all tokens invalid.
func (s *Server) Revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.access)
	clear(s.refresh)
}

// Browse opens an authorization URL like a browser, and returns where it was redirected.
func Browse(ctx context.Context, address string) (*url.URL, error) {
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	r.Close = true
	response, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	_ = response.Body.Close()
	return response.Location()
}

func (s *Server) resource(w http.ResponseWriter, _ *http.Request) {
	m := map[string]any{"resource": s.URL, "authorization_servers": []string{s.Issuer}}
	if s.Resource != nil {
		s.Resource(m)
	}
	reply(w, http.StatusOK, m)
}

func (s *Server) metadata(w http.ResponseWriter, _ *http.Request) {
	m := map[string]any{
		"issuer":                                s.Issuer,
		"authorization_endpoint":                s.Issuer + "/authorize",
		"token_endpoint":                        s.Issuer + "/token",
		"registration_endpoint":                 s.Issuer + "/register",
		"revocation_endpoint":                   s.Issuer + "/revoke",
		"device_authorization_endpoint":         s.Issuer + "/device",
		"code_challenge_methods_supported":      []string{"S256"},
		"token_endpoint_auth_methods_supported": []string{"none", "client_secret_basic", "private_key_jwt"},
		"response_types_supported":              []string{"code"},
	}
	if s.Metadata != nil {
		s.Metadata(m)
	}
	reply(w, http.StatusOK, m)
}

func (s *Server) register(w http.ResponseWriter, r *http.Request) {
	var m map[string]any
	_ = json.NewDecoder(r.Body).Decode(&m)
	s.mu.Lock()
	s.lastRegistration = m
	m["client_id"] = fmt.Sprintf("client-%d", s.counts["/register"])
	s.mu.Unlock()
	reply(w, http.StatusCreated, m)
}

func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.Form
	back, err := url.Parse(q.Get("redirect_uri"))
	if err != nil || q.Get("code_challenge_method") != "S256" || q.Get("resource") == "" {
		http.Error(w, "bad authorization request", http.StatusBadRequest)
		return
	}
	code := rand.Text()
	s.mu.Lock()
	s.codes[code] = q
	s.mu.Unlock()
	answer := url.Values{"code": {code}, "state": {q.Get("state")}}
	if s.Redirect != nil {
		s.Redirect(answer)
	}
	back.RawQuery = answer.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

// Token is the token endpoint.
func (s *Server) Token(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := r.Form
	var scopes []string
	switch f.Get("grant_type") {
	case "authorization_code":
		asked, ok := s.codes[f.Get("code")]
		delete(s.codes, f.Get("code"))
		sum := sha256.Sum256([]byte(f.Get("code_verifier")))
		if !ok || asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) || asked.Get("redirect_uri") != f.Get("redirect_uri") || f.Get("resource") != asked.Get("resource") {
			refuse(w, "invalid_grant")
			return
		}
		scopes = strings.Fields(asked.Get("scope"))
	case "refresh_token":
		known, ok := s.refresh[f.Get("refresh_token")]
		if !ok || f.Get("resource") == "" {
			s.reused++
			clear(s.refresh) // as servers with rotation do: the family is revoked
			clear(s.access)
			refuse(w, "invalid_grant")
			return
		}
		delete(s.refresh, f.Get("refresh_token"))
		scopes = known
	case "client_credentials":
		id, secret, _ := r.BasicAuth()
		if (id != "machine" || secret != "machine-secret") && f.Get("client_assertion") == "" {
			refuse(w, "invalid_client")
			return
		}
		scopes = strings.Fields(f.Get("scope"))
	case "urn:ietf:params:oauth:grant-type:device_code":
		if s.pending++; s.pending < s.Device {
			refuse(w, "authorization_pending")
			return
		}
	default:
		refuse(w, "unsupported_grant_type")
		return
	}
	s.grant(w, scopes)
}

// grant replies with new tokens.
func (s *Server) grant(w http.ResponseWriter, scopes []string) {
	access, refresh := "access-"+rand.Text(), "refresh-"+rand.Text()
	s.access[access], s.refresh[refresh] = scopes, scopes
	m := map[string]any{"access_token": access, "token_type": "Bearer", "refresh_token": refresh}
	if s.Life > 0 {
		m["expires_in"] = s.Life
	}
	reply(w, http.StatusOK, m)
}

func (s *Server) device(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, map[string]any{
		"device_code": rand.Text(), "user_code": "ABCD-EFGH", "verification_uri": s.Issuer + "/activate", "interval": 1, "expires_in": 60,
	})
}

func (s *Server) revoke(_ http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.refresh, r.Form.Get("token"))
}

// MCP is the MCP server. It has one tool, "hello".
func (s *Server) MCP(w http.ResponseWriter, r *http.Request) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&m) != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	scopes, ok := s.access[token]
	s.mu.Unlock()
	metadata := fmt.Sprintf("resource_metadata=%q", s.Issuer+"/.well-known/oauth-protected-resource/mcp")
	switch {
	case !ok:
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token", scope="basic", `+metadata)
		w.WriteHeader(http.StatusUnauthorized)
		return
	case m.Method == "tools/call" && s.CallScope != "" && !slices.Contains(scopes, s.CallScope):
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer error="insufficient_scope", scope=%q, %s`, s.CallScope, metadata))
		w.WriteHeader(http.StatusForbidden)
		return
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
		return
	}
	result := `{}`
	switch m.Method {
	case "initialize":
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"locked","version":"1"}}`
	case "tools/list":
		result = `{"tools":[{"name":"hello","description":"Says hello.","inputSchema":{"type":"object"}}]}`
	case "tools/call":
		result = `{"content":[{"type":"text","text":"hello"}]}`
	}
	reply(w, http.StatusOK, map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": json.RawMessage(result)})
}

func refuse(w http.ResponseWriter, code string) {
	reply(w, http.StatusBadRequest, map[string]any{"error": code, "error_description": "refused on purpose"})
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

package callers

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"mcpx/config"
	"mcpx/internal/parts/callers/callerstest"
	"mcpx/internal/policy"
	"mcpx/server/access"
)

// public is the address of mcpx in these tests.
const public = "https://mcpx.example.com"

const serverToken = "s3cret-token-of-the-test"

// team has everything that server.auth can have.
func team(i *callerstest.Issuer) Settings {
	day := func(hours time.Duration) string { return time.Now().UTC().Add(hours * time.Hour).Format(time.DateOnly) }
	return Settings{
		Tokens: []Token{
			{Name: "ci", Token: "token-of-ci", Grant: Grant{Allow: []string{"work/*/get_*"}}},
			{Name: "late", Token: "token-of-late", Grant: Grant{Allow: []string{"*"}}, LastDay: day(-24)},
			{Name: "soon", Token: "token-of-soon", Grant: Grant{Allow: []string{"*"}}, LastDay: day(24)},
		},
		OIDC: OIDC{
			Issuer: i.URL,
			Scopes: Grants{{Name: "mcp", Value: Grant{Allow: []string{"default"}}}, {Name: "mcp:work", Value: Grant{Allow: []string{"work"}}}},
			Claims: []config.Named[Grants]{{Name: "groups", Value: Grants{{Name: "dev", Value: Grant{Allow: []string{"work"}, ReadOnly: true}}}}},
		},
	}
}

// who is a handler behind a guard that keeps the last caller.
type who struct {
	http.Handler
	callers *Callers
	last    *policy.Caller
	reached bool
}

func whoIs(s Settings) *who {
	h := &who{callers: newCallers(s, public, func() []string { return []string{"default", "work"} })}
	g := &access.Guard{Server: config.Server{Token: serverToken, PublicURL: public}}
	h.callers.Guard(g)
	h.Handler = g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.last, h.reached = access.CallerOf(r.Context()), true
		if !g.CheckProfile(w, r, requestedProfile(r.URL.Path, nil)) {
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	return h
}

// ask sends a request with a token, none if it is empty.
func (h *who) ask(method, path, token string) *http.Response {
	r := httptest.NewRequest(method, "http://localhost"+path, nil)
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	h.last, h.reached = nil, false
	h.ServeHTTP(w, r)
	return w.Result()
}

func TestNamedTokens(t *testing.T) {
	h := whoIs(team(callerstest.NewIssuer(t)))
	for _, row := range []struct {
		name, token, caller string
		status              int
	}{
		{"server.token", serverToken, "", http.StatusTeapot},
		{"named", "token-of-ci", "ci", http.StatusTeapot},
		{"valid for some time", "token-of-soon", "soon", http.StatusTeapot},
		{"expired", "token-of-late", "", http.StatusUnauthorized},
		{"longer", "token-of-ci2", "", http.StatusUnauthorized},
		{"shorter", "token-of-c", "", http.StatusUnauthorized},
		{"a name", "ci", "", http.StatusUnauthorized},
	} {
		got := h.ask("POST", "/status", row.token)
		if got.StatusCode != row.status || h.reached != (row.status == http.StatusTeapot) || (h.last == nil) != (row.caller == "") || h.last != nil && h.last.ID != row.caller {
			t.Errorf("%s: %d, caller %+v", row.name, got.StatusCode, h.last)
		}
	}
	if h.ask("GET", "/", "token-of-soon"); h.last.Rules != nil {
		t.Error("* is not everything")
	}
}

// TestLastDay: a token is valid until its last day is over.
func TestLastDay(t *testing.T) {
	for day, want := range map[string]time.Time{"": {}, "2027-01-31": time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC)} {
		if got := (Token{LastDay: day}).expires(); !got.Equal(want) {
			t.Errorf("%q: %s, want %s", day, got, want)
		}
	}
}

// badTokens are tokens that mcpx must refuse, by what is wrong with them.
func badTokens(t *testing.T, i *callerstest.Issuer) map[string]string {
	t.Helper()
	stranger, valid := callerstest.NewIssuer(t), callerstest.Claims{"aud": public + "/mcp", "scope": "mcp mcp:work"}
	with := func(key string, value any) callerstest.Claims {
		return callerstest.Claims{"aud": valid["aud"], "scope": valid["scope"], key: value}
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i.Add(key)
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	shared := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	hmac := jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: shared, KeyID: i.Key().KeyID}}
	rs := jose.SigningKey{Algorithm: jose.RS256, Key: i.Key()}
	parts := strings.Split(i.Sign(rs, valid), ".")
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`))
	other := strings.Split(i.Sign(rs, with("sub", "mallory")), ".")
	return map[string]string{
		"garbage":                 "garbage",
		"not a JWT":               "a.b.c",
		"expired":                 i.Sign(rs, with("exp", time.Now().Add(-time.Minute).Unix())),
		"without an expiry":       i.Sign(rs, with("exp", nil)),
		"not valid yet":           i.Sign(rs, with("nbf", time.Now().Add(time.Hour).Unix())),
		"wrong audience":          i.Sign(rs, with("aud", "https://other.example.com/mcp")),
		"no audience":             i.Sign(rs, with("aud", nil)),
		"the audience of another": i.Sign(rs, with("aud", []string{public + "/mcp/other/", public + "2/mcp", public + "/sse"})),
		"wrong issuer":            i.Sign(rs, with("iss", "https://other.example.com")),
		"another issuer":          stranger.Token(valid),
		"no subject":              i.Sign(rs, with("sub", "")),
		"alg none":                none + "." + parts[1] + ".",
		"alg none, signed":        none + "." + parts[1] + "." + parts[2],
		"HS256 with a public key": i.Sign(hmac, valid),
		"unknown key":             i.Sign(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: "unknown"}}, valid),
		"another payload":         parts[0] + "." + other[1] + "." + parts[2],
		"without a signature":     parts[0] + "." + parts[1] + ".",
		"a typed ID token":        i.Typed(rs, "id_token+jwt", valid),
		"a logout token":          i.Typed(rs, "application/logout+jwt", valid),
		"an ID token of Keycloak": i.Typed(rs, "JWT", with("typ", "ID")),
		"a refresh token":         i.Typed(rs, "JWT", with("typ", "Refresh")),
		"an ID token of Cognito":  i.Sign(rs, with("token_use", "id")),
		"at+jwt, but an ID token": i.Typed(rs, "at+jwt", with("typ", "ID")),
	}
}

// TestTokenMatrix: a bad token gets the same 401 on every route and method, and nothing
// is reached. A request without a token gets no error.
func TestTokenMatrix(t *testing.T) {
	i := callerstest.NewIssuer(t)
	h := whoIs(team(i))
	bad := badTokens(t, i)
	bad[""] = ""
	for name, token := range bad {
		for _, route := range []string{"/", "/mcp", "/mcp/work", "/mcp/nope", "/sse", "/sse/work", "/message", "/status", "/metrics", "/assets/x"} {
			for _, method := range []string{"GET", "POST", "DELETE", "HEAD", "PUT", "OPTIONS"} {
				got := h.ask(method, route, token)
				challenge := got.Header.Get("WWW-Authenticate")
				resource := ""
				if strings.HasPrefix(route, "/mcp") {
					resource = route
				}
				want := `Bearer resource_metadata="` + public + access.MetadataPath + resource + `"`
				if name == "" && challenge != want || name != "" && !strings.HasPrefix(challenge, want+`, error="invalid_token", error_description="`) {
					t.Fatalf("%s: %s %s: %s", name, method, route, challenge)
				}
				if got.StatusCode != http.StatusUnauthorized || h.reached {
					t.Fatalf("%s: %s %s: %d, reached %t", name, method, route, got.StatusCode, h.reached)
				}
			}
		}
	}
	if n := i.Fetches.Load(); n > 2 {
		t.Errorf("the keys were fetched %d times", n)
	}
}

func TestOIDCCallers(t *testing.T) {
	i := callerstest.NewIssuer(t)
	h := whoIs(team(i))
	for _, row := range []struct {
		name   string
		claims callerstest.Claims
		path   string
		status int
	}{
		{"a scope", callerstest.Claims{"aud": public + "/mcp", "scope": "openid mcp"}, "/mcp", http.StatusTeapot},
		{"an array of scopes", callerstest.Claims{"aud": []string{"x", public + "/mcp"}, "scp": []string{"mcp"}}, "/mcp", http.StatusTeapot},
		{"the whole of mcpx", callerstest.Claims{"aud": public, "scope": "mcp"}, "/sse", http.StatusTeapot},
		{"one profile", callerstest.Claims{"aud": public + "/mcp/work", "scope": "mcp mcp:work"}, "/mcp/work", http.StatusTeapot},
		{"another profile", callerstest.Claims{"aud": public + "/mcp/work", "scope": "mcp mcp:work"}, "/mcp/default", http.StatusUnauthorized},
		{"another profile without its name", callerstest.Claims{"aud": public + "/mcp/work", "scope": "mcp mcp:work"}, "/mcp", http.StatusUnauthorized},
		{"another profile of legacy SSE", callerstest.Claims{"aud": public + "/mcp/work", "scope": "mcp mcp:work"}, "/sse", http.StatusUnauthorized},
		{"a profile that no scope grants", callerstest.Claims{"aud": public + "/mcp", "scope": "mcp"}, "/mcp/work", http.StatusForbidden},
		{"no scope at all", callerstest.Claims{"aud": public + "/mcp"}, "/mcp", http.StatusForbidden},
		{"a claim", callerstest.Claims{"aud": public + "/mcp", "groups": []string{"ops", "dev"}}, "/mcp/work", http.StatusTeapot},
		{"a claim as text", callerstest.Claims{"aud": public + "/mcp", "groups": "dev"}, "/mcp/work", http.StatusTeapot},
		{"a part of a claim", callerstest.Claims{"aud": public + "/mcp", "groups": "dev ops"}, "/mcp/work", http.StatusForbidden},
	} {
		got := h.ask("POST", row.path, i.Token(row.claims))
		if got.StatusCode != row.status {
			t.Errorf("%s: %d %s", row.name, got.StatusCode, got.Header.Get("WWW-Authenticate"))
		}
		if row.status == http.StatusTeapot && h.last.ID != i.URL+"\x00alice" {
			t.Errorf("%s: %q", row.name, h.last.ID)
		}
	}
	got := h.ask("GET", "/mcp/work", i.Token(callerstest.Claims{"aud": public + "/mcp", "scope": "mcp"}))
	if want := `Bearer resource_metadata="` + public + access.MetadataPath + `/mcp/work", error="insufficient_scope", scope="mcp:work"`; got.Header.Get("WWW-Authenticate") != want {
		t.Errorf("%s, want %s", got.Header.Get("WWW-Authenticate"), want)
	}
	h.ask("GET", "/status", i.Token(callerstest.Claims{"aud": public + "/mcp/work", "scope": "mcp mcp:work"}))
	if h.last == nil || h.last.Rules.HasProfile("default") || !h.last.Rules.HasProfile("work") {
		t.Error("the audience of a profile grants another")
	}
	first := h.last.Rules
	if h.ask("GET", "/status", i.Token(callerstest.Claims{"sub": "bob", "aud": public + "/mcp/work", "scope": "mcp:work mcp"})); h.last.Rules != first {
		t.Error("equal grants are not one value")
	}
}

// TestAccessTokens: access tokens of common issuers are accepted, whatever they say about
// their type.
func TestAccessTokens(t *testing.T) {
	i := callerstest.NewIssuer(t)
	h, es := whoIs(team(i)), jose.SigningKey{Algorithm: jose.ES256, Key: i.Key()}
	with := func(key string, value any) callerstest.Claims {
		return callerstest.Claims{"aud": public + "/mcp", "scope": "mcp", key: value}
	}
	for name, token := range map[string]string{
		"without a type":                            i.Token(with("cid", "x")),
		"RFC 9068":                                  i.Typed(es, "at+jwt", with("client_id", "x")),
		"RFC 9068, the long form":                   i.Typed(es, "application/at+jwt", with("client_id", "x")),
		"RFC 9068, in capitals":                     i.Typed(es, "AT+JWT", with("client_id", "x")),
		"a JWT, as of Entra or Auth0":               i.Typed(es, "JWT", with("azp", "x")),
		"a JWT in lower case":                       i.Typed(es, "jwt", with("azp", "x")),
		"Keycloak":                                  i.Typed(es, "JWT", with("typ", "Bearer")),
		"Keycloak with DPoP":                        i.Typed(es, "JWT", with("typ", "DPoP")),
		"Cognito":                                   i.Token(with("token_use", "access")),
		"Dex, whose access tokens have a hash":      i.Token(with("at_hash", "x")),
		"a claim typ that is not a text":            i.Typed(es, "JWT", with("typ", 7)),
		"authentik, whose access tokens have nonce": i.Typed(es, "JWT", with("nonce", "x")),
	} {
		if got := h.ask("POST", "/mcp", token); got.StatusCode != http.StatusTeapot {
			t.Errorf("%s: %d %s", name, got.StatusCode, got.Header.Get("WWW-Authenticate"))
		}
	}
}

// TestIssuerTokenAsPassword: a person opens a page in a browser, which has no other way to
// send a token of the issuer.
func TestIssuerTokenAsPassword(t *testing.T) {
	i := callerstest.NewIssuer(t)
	h := whoIs(team(i))
	for _, row := range []struct {
		name, token string
		status      int
	}{
		{"valid", i.Token(callerstest.Claims{"aud": public + "/mcp", "scope": "mcp"}), http.StatusTeapot},
		{"for somebody else", i.Token(callerstest.Claims{"aud": "https://other.example.com/mcp", "scope": "mcp"}), http.StatusUnauthorized},
	} {
		r := httptest.NewRequest(http.MethodGet, "http://localhost/signin/default/jira", nil)
		r.SetBasicAuth("any", row.token)
		w := httptest.NewRecorder()
		h.last = nil
		h.ServeHTTP(w, r)
		if isAlice := h.last != nil && h.last.ID == i.URL+"\x00alice"; w.Code != row.status || isAlice != (row.status == http.StatusTeapot) {
			t.Errorf("%s: %d, caller %+v", row.name, w.Code, h.last)
		}
	}
}

// TestAlgorithms: every kind of public key is accepted.
func TestAlgorithms(t *testing.T) {
	i := callerstest.NewIssuer(t)
	h := whoIs(team(i))
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i.Add(ed)
	i.Add(key)
	keys := i.Key()
	for _, algorithm := range []jose.SignatureAlgorithm{jose.RS256, jose.PS512} {
		if got := h.ask("POST", "/mcp", i.Sign(jose.SigningKey{Algorithm: algorithm, Key: keys}, callerstest.Claims{"aud": public + "/mcp", "scope": "mcp"})); got.StatusCode != http.StatusTeapot {
			t.Errorf("%s: %d", algorithm, got.StatusCode)
		}
	}
	i = callerstest.NewIssuer(t)
	i.Add(ed)
	h = whoIs(team(i))
	if got := h.ask("POST", "/mcp", i.Sign(jose.SigningKey{Algorithm: jose.EdDSA, Key: i.Key()}, callerstest.Claims{"aud": public + "/mcp", "scope": "mcp"})); got.StatusCode != http.StatusTeapot {
		t.Errorf("EdDSA: %d", got.StatusCode)
	}
}

// TestKeys: mcpx starts without the issuer. Keys that were never reached are not the
// client's fault. A new key is fetched, but not for every token.
func TestKeys(t *testing.T) {
	i := callerstest.NewIssuer(t)
	i.Down.Store(true)
	clock := time.Now()
	h := whoIs(team(i))
	h.callers.issuer.keys.now = func() time.Time { return clock }
	token := func() string { return i.Token(callerstest.Claims{"aud": public + "/mcp", "scope": "mcp"}) }
	ask := func(step string, want int, fetches int32) {
		t.Helper()
		got := h.ask("POST", "/mcp", token())
		for range 1000 {
			if got.StatusCode == want && i.Fetches.Load() >= fetches {
				break
			}
			runtime.Gosched() // go-oidc may still give a new token the keys of the last request
			got = h.ask("POST", "/mcp", token())
		}
		if got.StatusCode != want || i.Fetches.Load() != fetches {
			t.Fatalf("%s: %d after %d fetches, want %d after %d", step, got.StatusCode, i.Fetches.Load(), want, fetches)
		}
	}
	if got := h.ask("POST", "/mcp", token()); got.StatusCode != http.StatusServiceUnavailable || got.Header.Get("Retry-After") == "" || got.Header.Get("WWW-Authenticate") != "" {
		t.Fatalf("%d %v", got.StatusCode, got.Header)
	}
	for name, bad := range badTokens(t, callerstest.NewIssuer(t)) { // whatever the keys are
		if strings.Contains(name, "alg none") || strings.HasPrefix(name, "HS256") || name == "not a JWT" {
			if got := h.ask("POST", "/mcp", bad); got.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s while the issuer is down: %d", name, got.StatusCode)
			}
		}
	}
	i.Down.Store(false)
	ask("too soon", http.StatusServiceUnavailable, 0)
	clock = clock.Add(fetchPause)
	ask("reached", http.StatusTeapot, 1)
	i.Rotate()
	for range 20 {
		ask("a new key, too soon", http.StatusUnauthorized, 1)
	}
	clock = clock.Add(fetchPause)
	ask("a new key", http.StatusTeapot, 2)
	i.Down.Store(true)
	clock = clock.Add(time.Hour)
	ask("down", http.StatusTeapot, 2)
	i.Rotate()
	ask("a new key while it is down", http.StatusUnauthorized, 3)
	i.Down.Store(false)
	clock = clock.Add(fetchPause)
	ask("up again", http.StatusTeapot, 4)
}

func TestMetadata(t *testing.T) {
	i := callerstest.NewIssuer(t)
	h := whoIs(team(i))
	for path, resource := range map[string]string{
		"": public, "/": public, "/mcp": public + "/mcp", "/mcp/": public + "/mcp", "/mcp/work": public + "/mcp/work", "/mcp/a%20b": public + "/mcp/a%20b",
	} {
		got := h.ask("GET", access.MetadataPath+path, "")
		var m oauthex.ProtectedResourceMetadata
		if err := json.NewDecoder(got.Body).Decode(&m); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if got.StatusCode != http.StatusOK || m.Resource != resource || !slices.Equal(m.AuthorizationServers, []string{i.URL}) || !slices.Equal(m.ScopesSupported, []string{"mcp", "mcp:work"}) {
			t.Errorf("%s: %d %+v", path, got.StatusCode, m)
		}
	}
	for path, want := range map[string]int{"/other": http.StatusNotFound, "/mcp/a/b": http.StatusNotFound} {
		if got := h.ask("GET", access.MetadataPath+path, ""); got.StatusCode != want {
			t.Errorf("%s: %d", path, got.StatusCode)
		}
	}
	if got := h.ask("POST", access.MetadataPath, ""); got.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", got.StatusCode)
	}
	if got := whoIs(Settings{}).ask("GET", access.MetadataPath, ""); got.StatusCode != http.StatusUnauthorized {
		t.Errorf("without an issuer: %d", got.StatusCode)
	}
}

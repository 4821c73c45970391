package signin

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"mcpx/config"
	"mcpx/internal/parts/signin/signintest"
	"mcpx/registry/link"
)

// TestIssuerOfAnswer: the parameter iss is compared byte for byte (RFC 9207).
func TestIssuerOfAnswer(t *testing.T) {
	for name, row := range map[string]struct {
		announced bool
		iss       func(issuer string) string
		ok        bool
	}{
		"announced and equal":       {true, func(i string) string { return i }, true},
		"announced and missing":     {true, func(string) string { return "" }, false},
		"announced and different":   {true, func(string) string { return "https://evil.example" }, false},
		"announced with a slash":    {true, func(i string) string { return i + "/" }, false},
		"unannounced and equal":     {false, func(i string) string { return i }, true},
		"unannounced and missing":   {false, func(string) string { return "" }, true},
		"unannounced and different": {false, func(string) string { return "https://evil.example" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := signintest.New(t)
			s.Metadata = func(m map[string]any) { m["authorization_response_iss_parameter_supported"] = row.announced }
			s.Redirect = func(q url.Values) {
				if iss := row.iss(s.Issuer); iss != "" {
					q.Set("iss", iss)
				}
			}
			a := newAccount(t, Settings{URL: s.URL})
			address, err := a.Begin(t.Context(), redirect, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := complete(t, a, address); (err == nil) != row.ok {
				t.Errorf("%v, want success: %v", err, row.ok)
			}
			if got := s.Count("/token"); (got == 1) != row.ok {
				t.Errorf("%d token requests", got)
			}
		})
	}
}

// TestComplete: an answer counts once, for the caller that began, for ten minutes.
func TestComplete(t *testing.T) {
	s := signintest.New(t)
	a := newAccount(t, Settings{URL: s.URL})
	now := time.Now()
	a.now = func() time.Time { return now }
	begin := func() url.Values {
		now = now.Add(time.Second)
		address, err := a.Begin(t.Context(), redirect, nil)
		if err != nil {
			t.Fatal(err)
		}
		back, err := signintest.Browse(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		return back.Query()
	}
	check := func(name, caller string, query url.Values, want string) {
		t.Helper()
		_, err := a.accounts.Complete(t.Context(), caller, query)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	query := begin()
	check("another caller", "alice", query, "no sign-in is open")
	check("the caller", "", query, "")
	check("again", "", query, "no sign-in is open")
	check("nothing", "", url.Values{}, "no sign-in is open")
	query = begin()
	now = now.Add(pendingTime + time.Second)
	check("too late", "", query, "no sign-in is open")
	query = begin()
	check("refused", "", url.Values{"state": query["state"], "error": {"access_denied"}, "error_description": {"no\n\x1b[31m"}}, `access_denied: no\n\u001b[31m`)
	query = begin()
	check("no code", "", url.Values{"state": query["state"]}, "has no code")
	first := begin()
	for range pendingPerAccount {
		query = begin()
	}
	check("the oldest made room", "", first, "no sign-in is open")
	check("the newest", "", query, "")
}

// TestPendingBound: the sign-ins of all accounts together are bounded.
func TestPendingBound(t *testing.T) {
	x := newAccount(t, Settings{URL: "http://127.0.0.1:1/mcp"}).accounts
	for i := range maxPending {
		a := x.account(Settings{URL: "http://127.0.0.1:1/mcp"}, fmt.Sprint(i))
		if err := x.addPending(&pending{state: fmt.Sprint(i), account: a, until: time.Now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	a := x.account(Settings{URL: "http://127.0.0.1:1/mcp"}, "one more")
	if err := x.addPending(&pending{account: a}); err == nil {
		t.Error("there is no bound")
	}
}

// TestClientChoice: a configured client goes before a metadata document, and that before
// registration.
func TestClientChoice(t *testing.T) {
	const document = "https://example.com/client.json"
	supportsDocuments := func(m map[string]any) { m["client_id_metadata_document_supported"] = true }
	for name, row := range map[string]struct {
		settings Settings
		metadata func(m map[string]any)
		client   string
		err      string
	}{
		"configured":      {Settings{Auth: config.Auth{ClientID: "mine", ClientMetadataURL: document}}, supportsDocuments, "mine", ""},
		"document":        {Settings{Auth: config.Auth{ClientMetadataURL: document}}, supportsDocuments, document, ""},
		"no documents":    {Settings{Auth: config.Auth{ClientMetadataURL: document}}, nil, "client-1", ""},
		"registered":      {Settings{}, supportsDocuments, "client-1", ""},
		"no registration": {Settings{}, func(m map[string]any) { delete(m, "registration_endpoint") }, "", "auth.client_id"},
	} {
		t.Run(name, func(t *testing.T) {
			s := signintest.New(t)
			s.Metadata = row.metadata
			row.settings.URL = s.URL
			address, err := newAccount(t, row.settings).Begin(t.Context(), redirect, nil)
			if row.err != "" {
				if err == nil || !strings.Contains(err.Error(), row.err) {
					t.Errorf("%v, want %q", err, row.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			u, _ := url.Parse(address)
			if got := u.Query().Get("client_id"); got != row.client {
				t.Errorf("client_id=%q, want %q", got, row.client)
			}
		})
	}
}

// TestScopes: which scopes are asked for.
func TestScopes(t *testing.T) {
	for name, row := range map[string]struct {
		settings  []string
		more      []string
		resource  func(m map[string]any)
		metadata  func(m map[string]any)
		challenge string
		want      string
	}{
		"challenge":      {challenge: `Bearer scope="a b"`, want: "a b"},
		"supported":      {challenge: `Bearer`, resource: func(m map[string]any) { m["scopes_supported"] = []string{"r"} }, want: "r"},
		"none":           {challenge: `Bearer`},
		"configured":     {settings: []string{"x"}, challenge: `Bearer scope="a"`, want: "x"},
		"more":           {settings: []string{"x"}, more: []string{"y", "x"}, want: "x y"},
		"offline access": {challenge: `Bearer scope="a"`, metadata: func(m map[string]any) { m["scopes_supported"] = []string{"offline_access"} }, want: "a offline_access"},
		"not a scope":    {challenge: `Bearer scope="a é b"`, want: "a b"},
	} {
		t.Run(name, func(t *testing.T) {
			s := signintest.New(t)
			s.Resource, s.Metadata = row.resource, row.metadata
			s.Handlers = map[string]http.HandlerFunc{"/mcp": func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("WWW-Authenticate", row.challenge)
				w.WriteHeader(http.StatusUnauthorized)
			}}
			address, err := newAccount(t, Settings{URL: s.URL, Auth: config.Auth{Scopes: row.settings}}).Begin(t.Context(), redirect, row.more)
			if err != nil {
				t.Fatal(err)
			}
			u, _ := url.Parse(address)
			if got := u.Query().Get("scope"); got != row.want {
				t.Errorf("scope=%q, want %q", got, row.want)
			}
		})
	}
}

// TestMovedServer: credentials of one authorization server are not used with another.
func TestMovedServer(t *testing.T) {
	s, other := signintest.New(t), signintest.New(t)
	a := newAccount(t, Settings{URL: s.URL})
	signIn(t, a)
	s.Resource = func(m map[string]any) { m["authorization_servers"] = []string{other.Issuer} }
	address, err := a.Begin(t.Context(), redirect, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(address, other.Issuer) || other.Count("/register") != 1 || s.Count("/register") != 1 {
		t.Errorf("%s; %d registrations", address, other.Count("/register"))
	}
}

func TestDevice(t *testing.T) {
	s := signintest.New(t)
	s.Device = 2
	a := newAccount(t, Settings{URL: s.URL})
	d, err := a.Device(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if d.UserCode != "ABCD-EFGH" || d.Address != s.Issuer+"/activate" || d.interval != time.Second {
		t.Errorf("%+v", d)
	}
	d.interval = time.Millisecond
	if err := d.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustCall(t, a)
	if grants := fmt.Sprint(s.Registration()["grant_types"]); !strings.Contains(grants, deviceGrant) {
		t.Errorf("registered for %s", grants)
	}
	s.Metadata = func(m map[string]any) { delete(m, "device_authorization_endpoint") }
	if _, err := a.Device(t.Context(), nil); !errors.Is(err, ErrNoDevice) {
		t.Errorf("without an endpoint: %v", err)
	}
}

func TestDeviceEnds(t *testing.T) {
	s := signintest.New(t)
	s.Device = 1 << 30
	d, err := newAccount(t, Settings{URL: s.URL}).Device(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	d.interval = time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	d.until = time.Now()
	if err := d.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("expired: %v", err)
	}
}

// TestClientCredentials: mcpx signs in by itself when the server asks for it.
func TestClientCredentials(t *testing.T) {
	s := signintest.New(t)
	s.CallScope = "write"
	a := newAccount(t, Settings{URL: s.URL, Auth: config.Auth{Flow: config.FlowClientCredentials, ClientID: "machine", ClientSecret: "machine-secret"}})
	if status, err := call(t, a, "tools/list"); err != nil || status != http.StatusOK {
		t.Fatalf("%d, %v", status, err)
	}
	mustCall(t, a) // it needs another scope
	form := s.Forms("/token")[0]
	if form.Get("resource") != s.URL || s.Count("/register") != 0 {
		t.Errorf("token request: %v", form)
	}
	s.Expire()
	mustCall(t, a)

	wrong := newAccount(t, Settings{URL: s.URL, Auth: config.Auth{Flow: config.FlowClientCredentials, ClientID: "machine", ClientSecret: "wrong-secret"}})
	var denied *link.Denied
	_, err := call(t, wrong, "tools/list")
	if !errors.As(err, &denied) || denied.Cause != "" || !strings.Contains(denied.Reason, "its sign-in cannot be used") || !strings.Contains(err.Error(), "invalid_client") || strings.Contains(err.Error(), "wrong-secret") {
		t.Errorf("with a wrong secret: %v", err)
	}
	if err := newAccount(t, Settings{URL: s.URL, Auth: config.Auth{Flow: config.FlowClientCredentials}}).SignIn(t.Context(), nil); err == nil {
		t.Error("without a client_id")
	}
}

// TestAssertion: each algorithm signs what its public key verifies.
func TestAssertion(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p256, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	_, edKey, _ := ed25519.GenerateKey(rand.Reader)
	for name, row := range map[string]struct {
		key any
		alg string
		ok  bool
	}{
		"ES256 by default": {p256, "", true},
		"ES256":            {p256, "ES256", true},
		"RS256 by default": {rsaKey, "", true},
		"PS256":            {rsaKey, "PS256", true},
		"EdDSA":            {edKey, "", true},
		"a foreign alg":    {p256, "RS256", false},
		"a foreign curve":  {p256, "ES384", false},
		"no such alg":      {rsaKey, "HS256", false},
	} {
		t.Run(name, func(t *testing.T) {
			der, err := x509.MarshalPKCS8PrivateKey(row.key)
			if err != nil {
				t.Fatal(err)
			}
			a := newAccount(t, Settings{URL: "https://server.example/mcp", Auth: config.Auth{SigningAlg: row.alg, PrivateKey: string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))}})
			jwt, err := a.assertion(&credentials{Issuer: "https://issuer.example", Client: client{ID: "me"}})
			if (err == nil) != row.ok {
				t.Fatalf("%v, want success: %v", err, row.ok)
			}
			if !row.ok {
				return
			}
			parts := strings.Split(jwt, ".")
			payload, _ := base64.RawURLEncoding.DecodeString(parts[1])
			var claims map[string]any
			if err := json.Unmarshal(payload, &claims); err != nil || claims["iss"] != "me" || claims["sub"] != "me" || claims["aud"] != "https://issuer.example" || claims["jti"] == "" {
				t.Errorf("claims: %s", payload)
			}
			signature, _ := base64.RawURLEncoding.DecodeString(parts[2])
			if key, ok := row.key.(*ecdsa.PrivateKey); ok {
				sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
				if !ecdsa.Verify(&key.PublicKey, sum[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])) {
					t.Error("the signature is wrong")
				}
			}
		})
	}
	if _, err := parseKey("secret-key-text"); err == nil || strings.Contains(err.Error(), "secret-key-text") {
		t.Errorf("a key that is no key: %v", err)
	}
}

// TestSignedClient: a client with a key instead of a secret signs in.
func TestSignedClient(t *testing.T) {
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	der, _ := x509.MarshalPKCS8PrivateKey(key)
	s := signintest.New(t)
	a := newAccount(t, Settings{URL: s.URL, Auth: config.Auth{Flow: config.FlowClientCredentials, ClientID: "signed", PrivateKey: string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))}})
	mustCall(t, a)
	form := s.Forms("/token")[0]
	if form.Get("client_assertion") == "" || form.Get("client_secret") != "" || form.Get("client_id") != "signed" {
		t.Errorf("token request: %v", form)
	}
}

// TestLoopbackIsForOneSignIn: the browser of another sign-in gets an error and ends nothing.
func TestLoopbackIsForOneSignIn(t *testing.T) {
	a := newAccount(t, Settings{URL: signintest.New(t).URL})
	l, err := a.BeginLoopback(t.Context(), "server", nil)
	if err != nil {
		t.Fatal(err)
	}
	begun, _ := url.Parse(l.Address)
	other, err := a.Begin(t.Context(), redirect, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		address string
		status  int
	}{{other, http.StatusBadRequest}, {l.Address, http.StatusOK}} {
		back, err := signintest.Browse(t.Context(), c.address)
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.Get(begun.Query().Get("redirect_uri") + "?" + back.RawQuery)
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		if r.StatusCode != c.status {
			t.Errorf("%s: %s, want %d", c.address, r.Status, c.status)
		}
	}
	if err := l.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestPortInUse: if another program uses the configured port, a person can still paste the
// address.
func TestPortInUse(t *testing.T) {
	s := signintest.New(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	a := newAccount(t, Settings{URL: s.URL, Auth: config.Auth{RedirectPort: listener.Addr().(*net.TCPAddr).Port}})
	if _, err := a.BeginLoopback(t.Context(), "server", nil); err == nil || !strings.Contains(err.Error(), "sign in with --paste") {
		t.Errorf("a loopback redirect: %v", err)
	}
	address, err := a.Begin(t.Context(), a.PasteRedirect(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := complete(t, a, address); err != nil {
		t.Error(err)
	}
	if got, want := s.Forms("/authorize")[0].Get("redirect_uri"), "http://"+listener.Addr().String()+"/callback"; got != want {
		t.Errorf("redirect_uri=%s, want %s", got, want)
	}
}

// Package callerstest is an OpenID Connect issuer, for tests.
package callerstest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Issuer is an OpenID Connect issuer on this machine. It signs whatever tokens a test
// wants. Its methods may be called concurrently.
type Issuer struct {
	URL     string
	Fetches atomic.Int32 // requests of its keys
	Down    atomic.Bool  // it responds with 503

	t    testing.TB
	mu   sync.Mutex
	keys []jose.JSONWebKey // the last one signs
}

// NewIssuer starts an issuer with one key, until the test ends.
func NewIssuer(t testing.TB) *Issuer {
	i := &Issuer{t: t}
	i.Rotate()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		i.respond(w, map[string]any{
			"issuer": i.URL, "jwks_uri": i.URL + "/keys", "authorization_endpoint": i.URL + "/auth", "token_endpoint": i.URL + "/token",
			"id_token_signing_alg_values_supported": []string{"ES256", "HS256", "none"},
		})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		i.Fetches.Add(1)
		i.respond(w, i.published())
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	i.URL = server.URL
	return i
}

func (i *Issuer) respond(w http.ResponseWriter, value any) {
	if i.Down.Load() {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value)
}

// published returns the public keys.
func (i *Issuer) published() jose.JSONWebKeySet {
	i.mu.Lock()
	defer i.mu.Unlock()
	var set jose.JSONWebKeySet
	for _, k := range i.keys {
		set.Keys = append(set.Keys, k.Public())
	}
	return set
}

// Rotate replaces the key.
func (i *Issuer) Rotate() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	i.Add(key)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = i.keys[len(i.keys)-1:]
}

// Add adds a private key, which signs from now on.
func (i *Issuer) Add(key crypto.Signer) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = append(i.keys, jose.JSONWebKey{Key: key, KeyID: rand.Text()})
}

// Key returns the private key that signs, with its ID.
func (i *Issuer) Key() jose.JSONWebKey {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.keys[len(i.keys)-1]
}

// Claims are the claims of a token. Those that a test leaves out are valid: of this
// issuer, for an hour, for alice.
type Claims map[string]any

// Token returns a signed token.
func (i *Issuer) Token(claims Claims) string {
	return i.Sign(jose.SigningKey{Algorithm: jose.ES256, Key: i.Key()}, claims)
}

// Typed is Sign for a token with a typ in its header.
func (i *Issuer) Typed(key jose.SigningKey, typ string, claims Claims) string {
	return i.sign(key, (&jose.SignerOptions{}).WithType(jose.ContentType(typ)), claims)
}

// Sign returns a token that is signed with any key.
func (i *Issuer) Sign(key jose.SigningKey, claims Claims) string { return i.sign(key, nil, claims) }

func (i *Issuer) sign(key jose.SigningKey, options *jose.SignerOptions, claims Claims) string {
	i.t.Helper()
	all := Claims{"iss": i.URL, "sub": "alice", "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix()}
	maps.Copy(all, claims)
	payload, err := json.Marshal(all)
	if err != nil {
		i.t.Fatal(err)
	}
	signer, err := jose.NewSigner(key, options)
	if err != nil {
		i.t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		i.t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		i.t.Fatal(err)
	}
	return text
}

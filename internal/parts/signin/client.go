package signin

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"mcpx/internal/plain"
)

// client is mcpx as an authorization server knows it.
type client struct {
	ID          string     `json:"id"`
	Secret      string     `json:"secret,omitempty"` // of a registered client; the config has the other ones
	Method      authMethod `json:"method"`
	Redirect    string     `json:"redirect,omitempty"`      // that a registered client may use
	SecretUntil time.Time  `json:"secret_expires,omitzero"` // zero: it does not expire
	Registered  bool       `json:"registered,omitempty"`    // by dynamic registration
}

// authMethod is how a client authenticates at the token endpoint.
type authMethod string

const (
	methodNone   authMethod = "none"
	methodPost   authMethod = "client_secret_post"
	methodBasic  authMethod = "client_secret_basic"
	methodSigned authMethod = "private_key_jwt"
)

// choose returns the client to sign in with: the configured one, else the client ID
// metadata document, else one that mcpx registers.
func (a *Account) choose(ctx context.Context, p *provider, redirect string) (client, error) {
	supported := p.server.TokenEndpointAuthMethodsSupported
	switch {
	case a.settings.PrivateKey != "":
		return client{ID: a.settings.ClientID, Method: methodSigned}, nil
	case a.settings.ClientSecret != "":
		return client{ID: a.settings.ClientID, Method: secretMethod(supported)}, nil
	case a.settings.ClientID != "":
		return client{ID: a.settings.ClientID, Method: methodNone}, nil
	case a.settings.ClientMetadataURL != "" && p.server.ClientIDMetadataDocumentSupported:
		return client{ID: a.settings.ClientMetadataURL, Method: methodNone}, nil
	}
	if old, err := a.load(ctx); err == nil && old != nil && old.Issuer == p.server.Issuer && old.Client.canRepeat(redirect, a.now()) {
		return old.Client, nil
	}
	if p.server.RegistrationEndpoint == "" {
		return client{}, fmt.Errorf("%s does not register clients by itself; register mcpx there, with the redirect URL %s, and set auth.client_id",
			shown(p.server.Issuer), redirect)
	}
	return a.register(ctx, p, redirect)
}

// canRepeat reports whether a registered client may be used for another sign-in.
func (c client) canRepeat(redirect string, now time.Time) bool {
	return c.Registered && c.Redirect == redirect && (c.SecretUntil.IsZero() || now.Before(c.SecretUntil))
}

// secretMethod returns how a client with a secret authenticates. Basic is the default.
func secretMethod(supported []string) authMethod {
	if slices.Contains(supported, string(methodPost)) && !slices.Contains(supported, string(methodBasic)) {
		return methodPost
	}
	return methodBasic
}

// register registers mcpx at the authorization server (RFC 7591).
func (a *Account) register(ctx context.Context, p *provider, redirect string) (client, error) {
	metadata := &oauthex.ClientRegistrationMetadata{
		RedirectURIs:            []string{redirect},
		TokenEndpointAuthMethod: string(methodNone),
		GrantTypes:              []string{"authorization_code", "refresh_token"},
		ResponseTypes:           []string{"code"},
		ClientName:              "mcpx",
		ApplicationType:         "web",
	}
	if u, err := url.Parse(redirect); err == nil && isLoopbackName(u.Hostname()) {
		metadata.ApplicationType = "native"
	}
	if p.server.DeviceEndpoint != "" {
		metadata.GrantTypes = append(metadata.GrantTypes, deviceGrant)
	}
	supported := p.server.TokenEndpointAuthMethodsSupported
	if len(supported) > 0 && !slices.Contains(supported, string(methodNone)) {
		metadata.TokenEndpointAuthMethod = string(secretMethod(supported))
	}
	got, err := oauthex.RegisterClient(ctx, p.server.RegistrationEndpoint, metadata, a.client)
	if err != nil {
		return client{}, registrationError(p.server.Issuer, err)
	}
	c := client{ID: got.ClientID, Secret: got.ClientSecret, Redirect: redirect, SecretUntil: got.ClientSecretExpiresAt, Registered: true}
	c.Method = cmp.Or(authMethod(got.TokenEndpointAuthMethod), secretMethod(supported))
	if c.Secret == "" || c.Method == methodNone {
		c.Secret, c.Method = "", methodNone
	}
	return c, nil
}

// registrationError explains a failed registration without the reply, which may have a
// secret.
func registrationError(issuer string, err error) error {
	issuer = shown(issuer)
	if refused, ok := errors.AsType[*oauthex.ClientRegistrationError](err); ok {
		return fmt.Errorf("%s refused to register mcpx: %s", issuer, describe(refused.ErrorCode, refused.ErrorDescription))
	}
	if sent, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("%s did not register mcpx: %w", issuer, failure(sent))
	}
	return fmt.Errorf("%s did not register mcpx; if it needs an app that is registered by hand, set auth.client_id", issuer)
}

// authenticate adds the client's assertion to a request, or returns its secret.
func (a *Account) authenticate(c *credentials, form url.Values) (secret string, err error) {
	switch {
	case c.Client.Method == methodSigned:
		assertion, err := a.assertion(c)
		if err != nil {
			return "", err
		}
		form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
		form.Set("client_assertion", assertion)
		return "", nil
	case c.Client.Registered:
		return c.Client.Secret, nil
	}
	return a.settings.ClientSecret, nil
}

// assertionLife is how long a client assertion is valid.
const assertionLife = time.Minute

// assertion returns a signed JWT that authenticates the client (RFC 7523).
func (a *Account) assertion(c *credentials) (string, error) {
	key, err := parseKey(a.settings.PrivateKey)
	if err != nil {
		return "", err
	}
	algorithm := cmp.Or(jose.SignatureAlgorithm(a.settings.SigningAlg), defaultAlgorithm(key))
	now := a.now()
	claims, _ := json.Marshal(map[string]any{
		"iss": c.Client.ID, "sub": c.Client.ID, "aud": c.Issuer, "jti": rand.Text(),
		"iat": now.Unix(), "exp": now.Add(assertionLife).Unix(),
	})
	var signed *jose.JSONWebSignature
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, new(jose.SignerOptions).WithType("JWT"))
	if err == nil {
		signed, err = signer.Sign(claims)
	}
	if err != nil {
		return "", fmt.Errorf("auth.private_key cannot sign with %s", algorithm)
	}
	return signed.CompactSerialize()
}

// parseKey reads a private key. Its errors do not repeat the key.
func parseKey(text string) (key any, err error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("auth.private_key is not a PEM file")
	}
	switch block.Type {
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	default:
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	}
	if err != nil {
		return nil, fmt.Errorf("auth.private_key has a %s that cannot be read; encrypted keys are not supported", block.Type)
	}
	return key, nil
}

func defaultAlgorithm(key any) jose.SignatureAlgorithm {
	switch k := key.(type) {
	case *rsa.PrivateKey:
		return jose.RS256
	case ed25519.PrivateKey:
		return jose.EdDSA
	case *ecdsa.PrivateKey:
		switch k.Curve.Params().BitSize {
		case 384:
			return jose.ES384
		case 521:
			return jose.ES512
		}
	}
	return jose.ES256
}

// post posts a form to an endpoint other than the token endpoint, as the client.
func (a *Account) post(ctx context.Context, c *credentials, address string, form url.Values) (*http.Response, error) {
	secret, err := a.authenticate(c, form)
	if err != nil {
		return nil, err
	}
	if c.Client.Method != methodBasic {
		form.Set("client_id", c.Client.ID)
		if secret != "" {
			form.Set("client_secret", secret)
		}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json")
	if c.Client.Method == methodBasic {
		r.SetBasicAuth(url.QueryEscape(c.Client.ID), url.QueryEscape(secret))
	}
	return a.client.Do(r)
}

// describe joins an OAuth error and its description in a line of bounded length.
func describe(code, description string) string {
	text := plain.Line(code)
	if description != "" {
		text += ": " + plain.Line(description)
	}
	return plain.Cut(text, 300)
}

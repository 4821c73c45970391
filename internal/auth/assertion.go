package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"

	_ "crypto/sha256" // for crypto.SHA256
	_ "crypto/sha512" // for crypto.SHA384 and crypto.SHA512
)

// assertionLife is how long a client assertion is valid.
const assertionLife = time.Minute

// assertion returns a signed JWT that authenticates the client (RFC 7523). It is written
// by hand: a JWT library would be larger than these few signatures.
func (a *Account) assertion(c *credentials) (string, error) {
	key, err := parseKey(a.settings.PrivateKey)
	if err != nil {
		return "", err
	}
	algorithm := a.settings.SigningAlg
	if algorithm == "" {
		algorithm = defaultAlgorithm(key)
	}
	header, _ := json.Marshal(map[string]string{"alg": algorithm, "typ": "JWT"})
	now := a.now()
	claims, _ := json.Marshal(map[string]any{
		"iss": c.Client.ID, "sub": c.Client.ID, "aud": c.Issuer, "jti": rand.Text(),
		"iat": now.Unix(), "exp": now.Add(assertionLife).Unix(),
	})
	text := base64.RawURLEncoding.EncodeToString(header) + "." + base64.RawURLEncoding.EncodeToString(claims)
	signature, err := sign(key, algorithm, []byte(text))
	if err != nil {
		return "", err
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

// parseKey reads a private key. Its errors do not repeat the key.
func parseKey(text string) (crypto.Signer, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("auth.private_key is not a PEM file")
	}
	var key any
	var err error
	switch block.Type {
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	default:
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	}
	signer, ok := key.(crypto.Signer)
	if err != nil || !ok {
		return nil, fmt.Errorf("auth.private_key has a %s that cannot be read; encrypted keys are not supported", block.Type)
	}
	return signer, nil
}

func defaultAlgorithm(key crypto.Signer) string {
	switch k := key.(type) {
	case *rsa.PrivateKey:
		return "RS256"
	case ed25519.PrivateKey:
		return "EdDSA"
	case *ecdsa.PrivateKey:
		switch k.Curve.Params().BitSize {
		case 384:
			return "ES384"
		case 521:
			return "ES512"
		}
	}
	return "ES256"
}

// sign signs a text with an algorithm of RFC 7518 or RFC 8037.
func sign(key crypto.Signer, algorithm string, text []byte) ([]byte, error) {
	hash := map[string]crypto.Hash{"256": crypto.SHA256, "384": crypto.SHA384, "512": crypto.SHA512}[algorithm[max(len(algorithm)-3, 0):]]
	digest := func() []byte {
		h := hash.New()
		h.Write(text)
		return h.Sum(nil)
	}
	switch k := key.(type) {
	case ed25519.PrivateKey:
		if algorithm == "EdDSA" {
			return ed25519.Sign(k, text), nil
		}
	case *rsa.PrivateKey:
		if algorithm[:2] == "RS" && hash != 0 {
			return rsa.SignPKCS1v15(rand.Reader, k, hash, digest())
		}
		if algorithm[:2] == "PS" && hash != 0 {
			return rsa.SignPSS(rand.Reader, k, hash, digest(), &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash})
		}
	case *ecdsa.PrivateKey:
		if algorithm == defaultAlgorithm(k) {
			r, s, err := ecdsa.Sign(rand.Reader, k, digest())
			if err != nil {
				return nil, err
			}
			return fixed(r, s, (k.Curve.Params().BitSize+7)/8), nil
		}
	}
	return nil, fmt.Errorf("auth.private_key cannot sign with %s", algorithm)
}

// fixed returns two numbers with the same number of bytes each.
func fixed(r, s *big.Int, size int) []byte {
	b := make([]byte, 2*size)
	r.FillBytes(b[:size])
	s.FillBytes(b[size:])
	return b
}

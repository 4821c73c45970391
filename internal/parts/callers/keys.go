package callers

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// keyClient fetches the configuration and the keys of an issuer. It implements
// http.RoundTripper under go-oidc, which fetches the keys again for every token with an
// unknown key: anybody could have mcpx flood the issuer. So each address is fetched at
// most every fetchPause, and in between has the last response.
type keyClient struct {
	base    http.RoundTripper
	now     func() time.Time
	reached atomic.Bool // the keys were fetched

	mu   sync.Mutex
	last map[string]fetched // by URL
}

// fetched is the result of a request.
type fetched struct {
	at   time.Time
	body []byte
	err  error
}

const (
	fetchPause = 5 * time.Second
	fetchTime  = 10 * time.Second
	fetchBytes = 1 << 20
)

func newKeyClient() *keyClient {
	return &keyClient{base: http.DefaultTransport, now: time.Now, last: map[string]fetched{}}
}

// RoundTrip implements http.RoundTripper.
func (k *keyClient) RoundTrip(r *http.Request) (*http.Response, error) {
	url := r.URL.String()
	k.mu.Lock()
	last, ok := k.last[url]
	k.mu.Unlock()
	if !ok || k.now().Sub(last.at) >= fetchPause {
		body, err := k.fetch(r)
		last = fetched{k.now(), body, err}
		k.mu.Lock()
		k.last[url] = last
		k.mu.Unlock()
	}
	if last.err != nil {
		return nil, last.err
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(last.body)), ContentLength: int64(len(last.body)),
	}, nil
}

// fetch makes a request and reads its response.
func (k *keyClient) fetch(r *http.Request) ([]byte, error) {
	response, err := k.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, errors.New("the issuer responded with " + response.Status)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, fetchBytes+1))
	switch {
	case err != nil:
		return nil, err
	case len(body) > fetchBytes:
		return nil, errors.New("the issuer's response is too long")
	}
	var set struct{ Keys []json.RawMessage }
	if !strings.HasSuffix(r.URL.Path, "/.well-known/openid-configuration") && json.Unmarshal(body, &set) == nil && set.Keys != nil {
		k.reached.Store(true)
	}
	return body, nil
}

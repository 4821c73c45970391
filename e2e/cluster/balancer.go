package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"time"
)

// backendHeader has the name of the backend that a request was sent to. Responses of the
// balancer have it, errors too.
const backendHeader = "X-Backend"

// healthInterval is the time between two checks of a backend.
const healthInterval = 50 * time.Millisecond

// balancer sends requests to its backends in turn. Like a Kubernetes service it leaves
// out a backend whose /health fails. It tries the next backend only if it could not
// connect to the first: a request that was sent is never sent again.
type balancer struct {
	proxy     *httputil.ReverseProxy
	transport *http.Transport

	mu       sync.Mutex
	backends []*backend
	turn     int
}

// backend is one run of a replica.
type backend struct {
	name string
	url  *url.URL

	// Guarded by the balancer's mutex.
	ready   bool
	pending int // requests without a response
}

func newBalancer() *balancer {
	b := &balancer{transport: &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}}
	b.proxy = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.Out.Host = r.In.Host },
		Transport:     b,
		FlushInterval: -1, // streams pass at once
		ErrorHandler:  b.fail,
	}
	return b
}

// add adds a backend, which gets requests from now on.
func (b *balancer) add(name, address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return fmt.Errorf("%q is not the URL of a replica; use one such as http://127.0.0.1:8001", address)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.backends = append(b.backends, &backend{name: name, url: u, ready: true})
	return nil
}

// remove removes a backend, which gets no more requests. isDone reports whether it has
// responded to all requests that it got.
func (b *balancer) remove(name string) (isDone func() bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var removed []*backend
	b.backends = slices.DeleteFunc(b.backends, func(to *backend) bool {
		if to.name == name {
			removed = append(removed, to)
		}
		return to.name == name
	})
	return func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return !slices.ContainsFunc(removed, func(to *backend) bool { return to.pending > 0 })
	}
}

// isReady reports whether a backend gets requests.
func (b *balancer) isReady(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.backends, func(to *backend) bool { return to.name == name && to.ready })
}

// next picks the ready backend for the next request, in turn; nil if none is ready. The
// request counts as pending there until done is called.
func (b *balancer) next() *backend {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range b.backends {
		b.turn++
		if to := b.backends[b.turn%len(b.backends)]; to.ready {
			to.pending++
			return to
		}
	}
	return nil
}

func (b *balancer) done(to *backend) {
	b.mu.Lock()
	defer b.mu.Unlock()
	to.pending--
}

func (b *balancer) setReady(to *backend, ready bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	to.ready = ready
}

// checkHealth checks the backends until the context ends.
func (b *balancer) checkHealth(ctx context.Context) {
	tick := time.NewTicker(healthInterval)
	defer tick.Stop()
	defer b.transport.CloseIdleConnections()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		b.mu.Lock()
		backends := slices.Clone(b.backends)
		b.mu.Unlock()
		for _, to := range backends {
			b.setReady(to, b.isHealthy(ctx, to))
		}
	}
}

// isHealthy reports whether the /health of a backend responds with 200.
func (b *balancer) isHealthy(ctx context.Context, to *backend) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, to.url.JoinPath("health").String(), http.NoBody)
	if err != nil {
		return false
	}
	answer, err := b.transport.RoundTrip(r)
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// ServeHTTP implements http.Handler.
func (b *balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "the body could not be read", http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	b.proxy.ServeHTTP(w, r)
}

// RoundTrip implements http.RoundTripper: it sends a request to the next backend that can
// be connected to.
func (b *balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	for to := b.next(); to != nil; to = b.next() {
		r.URL.Scheme, r.URL.Host = to.url.Scheme, to.url.Host
		answer, err := b.transport.RoundTrip(r)
		b.done(to)
		if err == nil {
			answer.Header.Set(backendHeader, to.name)
			return answer, nil
		}
		if connect, ok := errors.AsType[*net.OpError](err); !ok || connect.Op != "dial" {
			return nil, backendError{to.name, err}
		}
		b.setReady(to, false)
		if r.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
	return nil, errors.New("no replica is ready")
}

// backendError is the failure of a request that was sent to a backend.
type backendError struct {
	backend string
	err     error
}

func (e backendError) Error() string {
	return fmt.Sprintf("replica %s failed: %v; the request may have been handled, and is not sent again", e.backend, e.err)
}

// fail responds to a request that failed.
func (b *balancer) fail(w http.ResponseWriter, _ *http.Request, err error) {
	if sent, ok := errors.AsType[backendError](err); ok {
		w.Header().Set(backendHeader, sent.backend)
	}
	http.Error(w, err.Error(), http.StatusBadGateway)
}

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

// instanceHeader has the name of the instance that a request was sent to. Responses of the
// balancer have it, errors too.
const instanceHeader = "X-Instance"

// healthInterval is the time between two checks of an instance.
const healthInterval = 50 * time.Millisecond

// balancer sends requests to instances of mcpx in turn. Like a Kubernetes service it leaves
// out an instance whose /health fails. It tries the next instance only if it could not
// connect to the first: a request that was sent is never sent again.
type balancer struct {
	proxy     *httputil.ReverseProxy
	transport *http.Transport

	mu        sync.Mutex
	instances []*instance
	turn      int
}

// instance is one run of a replica.
type instance struct {
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

// add lets an instance take requests.
func (b *balancer) add(name, address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return fmt.Errorf("%q is not the URL of a replica: %w", address, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.instances = append(b.instances, &instance{name: name, url: u, ready: true})
	return nil
}

// remove lets an instance take no more requests. isDone reports whether it has responded to
// all that it got.
func (b *balancer) remove(name string) (isDone func() bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var removed []*instance
	b.instances = slices.DeleteFunc(b.instances, func(i *instance) bool {
		if i.name == name {
			removed = append(removed, i)
		}
		return i.name == name
	})
	return func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return !slices.ContainsFunc(removed, func(i *instance) bool { return i.pending > 0 })
	}
}

// isReady reports whether an instance takes requests.
func (b *balancer) isReady(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.instances, func(i *instance) bool { return i.name == name && i.ready })
}

// next returns the ready instance whose turn it is, nil if there is none. A request is
// pending there until done is called.
func (b *balancer) next() *instance {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range b.instances {
		b.turn++
		if i := b.instances[b.turn%len(b.instances)]; i.ready {
			i.pending++
			return i
		}
	}
	return nil
}

func (b *balancer) done(i *instance) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i.pending--
}

func (b *balancer) setReady(i *instance, ready bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i.ready = ready
}

// checkHealth checks the instances until the context ends.
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
		instances := slices.Clone(b.instances)
		b.mu.Unlock()
		for _, i := range instances {
			b.setReady(i, b.isHealthy(ctx, i))
		}
	}
}

// isHealthy reports whether an instance wants requests.
func (b *balancer) isHealthy(ctx context.Context, i *instance) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, i.url.JoinPath("health").String(), http.NoBody)
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

// RoundTrip implements http.RoundTripper: it sends a request to the next instance that can
// be connected to.
func (b *balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	for i := b.next(); i != nil; i = b.next() {
		r.URL.Scheme, r.URL.Host = i.url.Scheme, i.url.Host
		answer, err := b.transport.RoundTrip(r)
		b.done(i)
		if err == nil {
			answer.Header.Set(instanceHeader, i.name)
			return answer, nil
		}
		var connect *net.OpError
		if !errors.As(err, &connect) || connect.Op != "dial" {
			return nil, instanceError{i.name, err}
		}
		b.setReady(i, false)
		if r.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
	return nil, errors.New("no replica is ready")
}

// instanceError is the failure of a request that was sent to an instance.
type instanceError struct {
	instance string
	err      error
}

func (e instanceError) Error() string {
	return fmt.Sprintf("replica %s failed: %v; the request may have been handled, and is not sent again", e.instance, e.err)
}

// fail responds to a request that failed.
func (b *balancer) fail(w http.ResponseWriter, _ *http.Request, err error) {
	var sent instanceError
	if errors.As(err, &sent) {
		w.Header().Set(instanceHeader, sent.instance)
	}
	http.Error(w, err.Error(), http.StatusBadGateway)
}

package registry

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"golang.org/x/sync/errgroup"

	"mcpx/internal/policy"
	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/registry/live"
	"mcpx/registry/upstream"
)

// subscription is a resource that clients subscribed to on one upstream session.
type subscription struct {
	known map[string]string // the URI as each client knows it, by client ID
	made  *live.Session     // the session that has accepted it; only for who has the turn
	turn  chan struct{}     // serializes subscribe and unsubscribe requests for this URI
	using int               // users that have the turn or wait for it
}

// errNoStream is returned to clients that have no stream for updates.
var errNoStream = rpc.Errorf(rpc.CodeInvalidRequest, "resources/subscribe needs a session: without one there is no stream for updates")

// Limits of one client.
const (
	maxSubscriptions = 1000
	maxURI           = 8 << 10 // bytes
)

var (
	errTooManySubscriptions = rpc.Errorf(rpc.CodeInvalidRequest, "a client can subscribe to %d resources; unsubscribe from some first", maxSubscriptions)
	errLongURI              = rpc.Errorf(rpc.CodeInvalidParams, "the URI of a subscription has at most %d bytes", maxURI)
)

// Subscribe subscribes a client to updates of a resource. known is the URI by which the
// client knows the resource. The upstream gets a request only for the first subscriber.
func (r *Registry) Subscribe(ctx context.Context, c upstream.Client, server, uri, known string) error {
	if len(uri) > maxURI {
		return errLongURI
	}
	key := r.keyFor(server, c)
	s := r.clients.subscription(key, uri)
	defer r.clients.release(key, uri, s)
	return r.inTurn(ctx, server, s, func() error {
		again, err := r.clients.join(s, c, known) // before the request: an update may follow at once
		if err != nil || s.made != nil && !s.made.IsOver() {
			return err
		}
		q, span := r.startSpan(ctx, server, resourceRequest("resources/subscribe", uri, c))
		session, _, err := r.callWhenReady(ctx, server, q, failedTry{})
		endSpan(ctx, span, nil, err)
		switch {
		case err == nil:
			s.made = session
		case !again:
			r.clients.leave(s, c)
		}
		return err
	})
}

// Unsubscribe ends a subscription at once. When no subscriber is left, the upstream
// gets a request, unless it would have to be started for that.
func (r *Registry) Unsubscribe(ctx context.Context, c upstream.Client, server, uri string) error {
	return r.leave(c, r.keyFor(server, c), uri)(ctx)
}

// leave ends a client's subscription to a session without waiting. unsubscribe, which the
// caller must call, sends the request to the upstream if no subscriber is left then.
func (r *Registry) leave(c upstream.Client, key sessionKey, uri string) (unsubscribe func(ctx context.Context) error) {
	s := r.clients.subscription(key, uri)
	was := r.clients.leave(s, c)
	return func(ctx context.Context) error {
		defer r.clients.release(key, uri, s)
		if !was {
			return nil
		}
		return r.inTurn(ctx, key.server, s, func() error {
			session := s.made
			if r.clients.isWanted(s) || session == nil || session.IsOver() {
				return nil
			}
			s.made = nil
			q, span := r.startSpan(ctx, key.server, resourceRequest("resources/unsubscribe", uri, c))
			result, err := session.Call(ctx, q, r.limits(key.server))
			result.Free()
			endSpan(ctx, span, nil, err)
			if errors.Is(err, rpc.ErrClosed) {
				return nil
			}
			return err
		})
	}
}

// resubscribeAtOnce bounds the concurrent requests that subscribe a new session.
const resubscribeAtOnce = 8

// resubscribe subscribes a new session to the resources that clients subscribed to, a few at
// a time.
func (r *Registry) resubscribe(s *live.Session) {
	key := keyOfSession(s)
	var group errgroup.Group
	group.SetLimit(resubscribeAtOnce)
	for _, uri := range r.clients.uris(key) {
		group.Go(func() error {
			subscription := r.clients.subscription(key, uri)
			defer r.clients.release(key, uri, subscription)
			select {
			case subscription.turn <- struct{}{}:
				defer func() { <-subscription.turn }()
			case <-s.Done():
				return nil
			}
			if subscription.made == s || !r.clients.isWanted(subscription) {
				return nil
			}
			subscription.made = nil // if this fails, the next subscriber sends the request again
			if r.requestAndLog(s, "resources/subscribe", uriParams(uri)) == nil {
				subscription.made = s
			}
			return nil
		})
	}
	_ = group.Wait()
}

// inTurn runs do when no other request for this resource is pending. It waits for that
// within the time limit of a call.
func (r *Registry) inTurn(ctx context.Context, server string, s *subscription, do func() error) error {
	if u := r.Catalog().Upstream(server); u != nil && u.Config.Timeout > 0 {
		var cancel context.CancelFunc
		wait := u.Config.Timeout
		ctx, cancel = context.WithTimeoutCause(ctx, wait, &upstream.Timeout{Server: server, Key: "timeout", Limit: wait})
		defer cancel()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
		return do()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// subscription returns the subscription to a resource, which may be new. It is kept
// until release at least.
func (c *clients) subscription(key sessionKey, uri string) *subscription {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.subscribed[key] == nil {
		c.subscribed[key] = map[string]*subscription{}
	}
	s := c.subscribed[key][uri]
	if s == nil {
		s = &subscription{known: map[string]string{}, turn: make(chan struct{}, 1)}
		c.subscribed[key][uri] = s
	}
	s.using++
	return s
}

// release drops one use of a subscription, and removes the subscription if it has neither
// users nor subscribers.
func (c *clients) release(key sessionKey, uri string, s *subscription) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.using--; s.using > 0 || len(s.known) > 0 {
		return
	}
	delete(c.subscribed[key], uri)
	if len(c.subscribed[key]) == 0 {
		delete(c.subscribed, key)
	}
}

// join adds a subscriber and reports whether it was one already. It fails for a client
// that has no stream, has disconnected, or has too many subscriptions.
func (c *clients) join(s *subscription, client upstream.Client, known string) (again bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.attached[client.ID()]
	_, again = s.known[client.ID()]
	switch {
	case a == nil:
		return again, errNoStream
	case !again && a.subscriptions >= maxSubscriptions:
		return again, errTooManySubscriptions
	case !again:
		a.subscriptions++
	}
	s.known[client.ID()] = known
	return again, nil
}

// leave removes a subscriber and reports whether it was one.
func (c *clients) leave(s *subscription, client upstream.Client) (was bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, was = s.known[client.ID()]; !was {
		return false
	}
	delete(s.known, client.ID())
	if a := c.attached[client.ID()]; a != nil {
		a.subscriptions--
	}
	return true
}

func (c *clients) isWanted(s *subscription) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(s.known) > 0
}

// Subscriptions implements live.Host.
func (r *Registry) Subscriptions(s *live.Session) []string { return r.clients.uris(keyOfSession(s)) }

// resourceRequest returns a client's request about a resource.
func resourceRequest(method, uri string, c upstream.Client) upstream.Request {
	return upstream.Request{Method: method, Params: uriParams(uri), Meta: []byte("{}"), Client: c}
}

func uriParams(uri string) []byte { return append(rawjson.AppendString([]byte(`{"uri":`), uri), '}') }

// uris returns the resources with subscribers on an upstream session.
func (c *clients) uris(key sessionKey) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var uris []string
	for uri, s := range c.subscribed[key] {
		if len(s.known) > 0 {
			uris = append(uris, uri)
		}
	}
	slices.Sort(uris)
	return uris
}

// updated notifies the subscribers of a resource. An upstream may name a part of the
// resource that was subscribed to.
func (r *Registry) updated(key sessionKey, params []byte) {
	uri, _ := rawjson.String(rawjson.Get(params, "uri"))
	type notice struct {
		client upstream.Client
		uri    string
	}
	var notices []notice
	r.clients.mu.Lock()
	for subscribed, s := range r.clients.subscribed[key] {
		rest, ok := strings.CutPrefix(uri, subscribed)
		if !ok || rest != "" && !strings.HasSuffix(subscribed, "/") && !strings.ContainsAny(rest[:1], "/?#") {
			continue
		}
		for id, known := range s.known {
			if c := r.clients.attached[id]; c != nil && upstream.CallerOf(c).Extent(r.profile, key.server) >= policy.AllButSomeTools {
				notices = append(notices, notice{c, known + rest})
			}
		}
	}
	r.clients.mu.Unlock()
	own := params
	if meta := rawjson.Get(params, "_meta"); meta != nil { // the subscription ID is between mcpx and the upstream
		own = rawjson.With(params, "_meta", rawjson.With(meta, mcp.MetaKeySubscriptionID, nil))
	}
	for _, n := range notices {
		n.client.Notify("notifications/resources/updated", rawjson.With(own, "uri", rawjson.AppendString(nil, n.uri)))
	}
}

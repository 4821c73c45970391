package registry

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	"golang.org/x/sync/errgroup"

	"mcpx/config"
	"mcpx/internal/jsonrpc"
	"mcpx/internal/rawjson"
)

// subscription is one resource that clients want to hear of.
type subscription struct {
	known map[string]string // its URI as each client knows it
	made  atomic.Bool       // the upstream has taken it: a new session gets it again
	turn  chan struct{}     // holds one while the upstream is asked, which so hears of begins and ends in their order
	using int               // who has a turn or waits for one
}

// errNoStream is of a client that would never hear of an update.
var errNoStream = jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "resources/subscribe needs a session: without one there is no stream to tell of updates on")

// What one client may subscribe to.
const (
	maxSubscriptions = 1000
	maxURI           = 8 << 10 // bytes
)

var (
	errTooManySubscriptions = jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "a client can subscribe to %d resources; unsubscribe from some first", maxSubscriptions)
	errLongURI              = jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the URI of a subscription has at most %d bytes", maxURI)
)

// Subscribe makes a client hear of updates of a resource, which it knows by the
// URI known. The upstream is asked only for the first of its subscribers.
func (r *Registry) Subscribe(ctx context.Context, c Client, server, uri, known string) error {
	if len(uri) > maxURI {
		return errLongURI
	}
	scope := r.scope(server, c)
	s := r.clients.subscription(scope, uri)
	defer r.clients.release(scope, uri, s)
	return r.inTurn(ctx, server, s, func() error {
		again, err := r.clients.join(s, c, known) // before the upstream is asked: it may have news at once
		if err != nil || s.made.Load() {
			return err
		}
		_, err = r.Call(ctx, server, Request{Method: "resources/subscribe", Params: uriParams(uri), Meta: []byte("{}"), Client: c})
		switch {
		case err == nil:
			s.made.Store(true)
		case !again:
			r.clients.leave(s, c)
		}
		return err
	})
}

// Unsubscribe ends that at once. The upstream is told when nobody is left, unless
// it would have to be started for it.
func (r *Registry) Unsubscribe(ctx context.Context, c Client, server, uri string) error {
	scope := r.scope(server, c)
	s := r.clients.subscription(scope, uri)
	defer r.clients.release(scope, uri, s)
	if !r.clients.leave(s, c) {
		return nil
	}
	return r.inTurn(ctx, server, s, func() error {
		if r.clients.isWanted(s) || !s.made.Swap(false) || !r.isUp(server, c) {
			return nil
		}
		_, err := r.Call(ctx, server, Request{Method: "resources/unsubscribe", Params: uriParams(uri), Meta: []byte("{}"), Client: c})
		return err
	})
}

// restore returns what subscribes a new session to all that the one before it was
// subscribed to. It is asked for before clients can reach the session, and done
// when they can.
func (r *Registry) restore(s *Session, scope string) (restore func()) {
	r.clients.mu.Lock()
	defer r.clients.mu.Unlock()
	taken := map[string]*subscription{}
	for uri, subscription := range r.clients.subscribed[scope] {
		if subscription.made.Load() {
			subscription.using++
			taken[uri] = subscription
		}
	}
	return func() {
		if !s.tasks.Go(func() { r.resubscribe(s, scope, taken) }) {
			r.resubscribe(s, scope, taken) // the session is over: they are only released
		}
	}
}

// resubscribeAtOnce bounds the requests with which a new session is subscribed.
const resubscribeAtOnce = 8

// resubscribe subscribes a session to resources, a few at a time.
func (r *Registry) resubscribe(s *Session, scope string, taken map[string]*subscription) {
	var group errgroup.Group
	group.SetLimit(resubscribeAtOnce)
	for uri, subscription := range taken {
		group.Go(func() error {
			defer r.clients.release(scope, uri, subscription)
			select {
			case subscription.turn <- struct{}{}:
				defer func() { <-subscription.turn }()
			case <-s.ctx.Done():
				return nil
			}
			if !subscription.made.Load() { // unsubscribed meanwhile
				return nil
			}
			var lost *Lost
			if err := r.tell(s, "resources/subscribe", uriParams(uri)); err != nil && !errors.Is(err, errOver) && !errors.As(err, &lost) && s.ctx.Err() == nil {
				subscription.made.Store(false) // the next subscriber asks again
			}
			return nil
		})
	}
	_ = group.Wait()
}

// inTurn does something when nobody else asks the upstream for this resource. It
// waits for that as long as a call would.
func (r *Registry) inTurn(ctx context.Context, server string, s *subscription, do func() error) error {
	if u := r.Catalog().Upstream(server); u != nil && u.config.Timeout > 0 {
		var cancel context.CancelFunc
		wait := u.config.Timeout
		ctx, cancel = context.WithTimeoutCause(ctx, wait, &Timeout{Server: server, Key: "timeout", Limit: wait})
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

// isUp reports whether a call of the client would start nothing.
func (r *Registry) isUp(server string, c Client) bool {
	u := r.Catalog().Upstream(server)
	return u != nil && u.State == Ready && (u.config.Isolation != config.PerClient || r.isolated.has(c, server))
}

func (r *Registry) scope(server string, c Client) string {
	if u := r.Catalog().Upstream(server); u != nil {
		return scope(u.config, c)
	}
	return server
}

// subscription is that of a resource, a new one if there is none. It is kept until
// release at least.
func (c *clients) subscription(scope, uri string) *subscription {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.subscribed[scope] == nil {
		c.subscribed[scope] = map[string]*subscription{}
	}
	s := c.subscribed[scope][uri]
	if s == nil {
		s = &subscription{known: map[string]string{}, turn: make(chan struct{}, 1)}
		c.subscribed[scope][uri] = s
	}
	s.using++
	return s
}

// release forgets a subscription that nobody has, once nobody is at it.
func (c *clients) release(scope, uri string, s *subscription) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.using--; s.using > 0 || len(s.known) > 0 {
		return
	}
	delete(c.subscribed[scope], uri)
	if len(c.subscribed[scope]) == 0 {
		delete(c.subscribed, scope)
	}
}

// join adds a subscriber, and reports whether it was one. It fails for a client
// that could not be told, or has just left, or has too many subscriptions.
func (c *clients) join(s *subscription, client Client, known string) (again bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := client.ID()
	_, again = s.known[id]
	switch {
	case c.find(id) == nil:
		return again, errNoStream
	case !again && c.subscriptions[id] >= maxSubscriptions:
		return again, errTooManySubscriptions
	case !again:
		c.subscriptions[id]++
	}
	s.known[id] = known
	return again, nil
}

// leave takes a subscriber out, and reports whether it was one.
func (c *clients) leave(s *subscription, client Client) (was bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := client.ID()
	if _, was = s.known[id]; !was {
		return false
	}
	delete(s.known, id)
	if c.subscriptions[id]--; c.subscriptions[id] == 0 {
		delete(c.subscriptions, id)
	}
	return true
}

func (c *clients) isWanted(s *subscription) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(s.known) > 0
}

func uriParams(uri string) []byte { return append(rawjson.AppendString([]byte(`{"uri":`), uri), '}') }

// uris are the resources that clients want to hear of.
func (c *clients) uris(scope string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var uris []string
	for uri, s := range c.subscribed[scope] {
		if len(s.known) > 0 {
			uris = append(uris, uri)
		}
	}
	slices.Sort(uris)
	return uris
}

// updated tells the subscribers of a resource that it has changed. An upstream
// may name a part of what was subscribed to.
func (r *Registry) updated(scope string, params []byte) {
	uri, _ := rawjson.String(rawjson.Get(params, "uri"))
	type notice struct {
		client Client
		uri    string
	}
	var notices []notice
	r.clients.mu.Lock()
	for subscribed, s := range r.clients.subscribed[scope] {
		rest, ok := strings.CutPrefix(uri, subscribed)
		if !ok || rest != "" && !strings.HasSuffix(subscribed, "/") && !strings.ContainsAny(rest[:1], "/?#") {
			continue
		}
		for id, known := range s.known {
			if c := r.clients.find(id); c != nil {
				notices = append(notices, notice{c, known + rest})
			}
		}
	}
	r.clients.mu.Unlock()
	own := params
	if meta := rawjson.Get(params, "_meta"); meta != nil { // whose stream it came on is between mcpx and the upstream
		own = rawjson.With(params, "_meta", rawjson.With(meta, mcp.MetaKeySubscriptionID, nil))
	}
	for _, n := range notices {
		n.client.Notify("notifications/resources/updated", rawjson.With(own, "uri", rawjson.AppendString(nil, n.uri)))
	}
}

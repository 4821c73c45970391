package registry

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/rawjson"
)

// subscription is one resource that clients want to hear of.
type subscription struct {
	known map[string]string // its URI as each client knows it
	made  atomic.Bool       // the upstream has taken it: a new session gets it again
	turn  chan struct{}     // holds one while the upstream is asked, which so hears of begins and ends in their order
	using int               // who has a turn or waits for one
}

// Subscribe makes a client hear of updates of a resource, which it knows by the
// URI known. The upstream is asked only for the first of its subscribers.
func (r *Registry) Subscribe(ctx context.Context, c Client, server, uri, known string) error {
	scope := r.scope(server, c)
	s := r.clients.join(scope, uri, c, known) // before the upstream is asked: it may have news at once
	defer r.clients.release(scope, uri, s)
	err := s.inTurn(ctx, func() error {
		if s.made.Load() {
			return nil
		}
		_, err := r.Call(ctx, server, Request{Method: "resources/subscribe", Params: uriParams(uri), Meta: []byte("{}"), Client: c})
		if err == nil {
			s.made.Store(true)
		}
		return err
	})
	if err != nil {
		r.clients.drop(s, c)
	}
	return err
}

// Unsubscribe ends that. The upstream is told when nobody is left.
func (r *Registry) Unsubscribe(ctx context.Context, c Client, server, uri string) error {
	scope := r.scope(server, c)
	s := r.clients.leave(scope, uri, c)
	if s == nil {
		return nil
	}
	defer r.clients.release(scope, uri, s)
	return s.inTurn(ctx, func() error {
		if r.clients.isWanted(s) || !s.made.Load() {
			return nil
		}
		s.made.Store(false)
		_, err := r.Call(ctx, server, Request{Method: "resources/unsubscribe", Params: uriParams(uri), Meta: []byte("{}"), Client: c})
		return err
	})
}

// inTurn waits until nobody else asks the upstream for this resource.
func (s *subscription) inTurn(ctx context.Context, do func() error) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
		return do()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *Registry) scope(server string, c Client) string {
	if u := r.Catalog().Upstream(server); u != nil {
		return scope(u.config, c)
	}
	return server
}

// join adds a subscriber of a resource.
func (c *clients) join(scope, uri string, client Client, known string) *subscription {
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
	s.known[client.ID()] = known
	s.using++
	return s
}

// leave takes a subscriber out. It returns nil if it was none.
func (c *clients) leave(scope, uri string, client Client) *subscription {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.subscribed[scope][uri]
	if s == nil || s.known[client.ID()] == "" {
		return nil
	}
	delete(s.known, client.ID())
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

func (c *clients) drop(s *subscription, client Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(s.known, client.ID())
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

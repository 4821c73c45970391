package registry

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/rawjson"
)

// subscription is one resource that clients want to hear of.
type subscription struct {
	known map[string]string // its URI as each client knows it
	made  bool              // the upstream has taken it
}

// Subscribe makes a client hear of updates of a resource, which it knows by the
// URI known. The upstream is asked only for the first of its subscribers.
func (r *Registry) Subscribe(ctx context.Context, c Client, server, uri, known string) error {
	key := r.scope(server, c)
	if first := r.clients.subscribe(c.ID(), key, uri, known); !first {
		return nil
	}
	_, err := r.Call(ctx, server, Request{Method: "resources/subscribe", Params: uriParams(uri), Meta: []byte("{}"), Client: c})
	if err != nil {
		r.clients.unsubscribe(c.ID(), key, uri)
		return err
	}
	r.clients.confirm(key, uri)
	return nil
}

// Unsubscribe ends that. The upstream is told when nobody is left.
func (r *Registry) Unsubscribe(ctx context.Context, c Client, server, uri string) error {
	if last := r.clients.unsubscribe(c.ID(), r.scope(server, c), uri); !last {
		return nil
	}
	_, err := r.Call(ctx, server, Request{Method: "resources/unsubscribe", Params: uriParams(uri), Meta: []byte("{}"), Client: c})
	return err
}

func (r *Registry) scope(server string, c Client) string {
	if u := r.Catalog().Upstream(server); u != nil {
		return scope(u.config, c)
	}
	return server
}

// subscribe reports whether that was the first subscriber.
func (c *clients) subscribe(client, scope, uri, known string) (first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.subscribed[scope] == nil {
		c.subscribed[scope] = map[string]*subscription{}
	}
	s := c.subscribed[scope][uri]
	if s == nil {
		s = &subscription{known: map[string]string{}}
		c.subscribed[scope][uri] = s
	}
	first = len(s.known) == 0
	s.known[client] = known
	return first
}

// confirm notes that the upstream has taken a subscription: a new session gets
// it again.
func (c *clients) confirm(scope, uri string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.subscribed[scope][uri]; s != nil {
		s.made = true
	}
}

func uriParams(uri string) []byte { return append(rawjson.AppendString([]byte(`{"uri":`), uri), '}') }

// uris are the resources that clients want to hear of.
func (c *clients) uris(scope string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.subscribed[scope]))
}

// unsubscribe reports whether that was the last subscriber.
func (c *clients) unsubscribe(client, scope, uri string) (last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.subscribed[scope][uri]
	if s == nil || s.known[client] == "" {
		return false
	}
	delete(s.known, client)
	if len(s.known) == 0 {
		delete(c.subscribed[scope], uri)
	}
	return len(s.known) == 0
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

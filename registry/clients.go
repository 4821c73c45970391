package registry

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"mcpx/internal/rawjson"
	"mcpx/registry/live"
	"mcpx/registry/upstream"
)

// clients holds the clients of the fronts and what they subscribed to.
type clients struct {
	mu         sync.Mutex
	attached   map[string]*attached                    // by ID
	subscribed map[sessionKey]map[string]*subscription // by upstream session and URI
}

// attached is a client or a subscription stream that upstreams can reach until Remove.
type attached struct {
	upstream.Client
	isStream      bool   // upstreams can send it notifications, but no requests
	level         string // the log level that it has set; "" if none
	subscriptions int
}

// Times between two announcements of changed lists. Changes in between are announced
// together.
const (
	announcePause = 100 * time.Millisecond
	startPause    = 2 * time.Second // at most, while upstreams start for the first time: each of them has changes
)

// Attach makes a client known, so that upstreams can reach it until Remove.
func (r *Registry) Attach(c upstream.Client) { r.clients.attach(&attached{Client: c}) }

// AttachStream makes a subscription stream known until Remove. Upstreams can send it
// notifications, but no requests.
func (r *Registry) AttachStream(c upstream.Client) {
	r.clients.attach(&attached{Client: c, isStream: true})
}

func (c *clients) attach(a *attached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attached[a.ID()] = a
}

// Remove removes a client or a subscription stream: its subscriptions and its per-client
// upstream sessions end. It does not wait, so that a client with the same ID can be attached
// next. unsubscribe sends the requests to upstreams, and may wait for them.
func (r *Registry) Remove(c upstream.Client) (unsubscribe func(ctx context.Context)) {
	before := r.clients.level()
	r.clients.mu.Lock()
	delete(r.clients.attached, c.ID())
	held := map[sessionKey][]string{}
	for key, uris := range r.clients.subscribed {
		for uri, s := range uris {
			if _, ok := s.known[c.ID()]; ok {
				held[key] = append(held[key], uri)
			}
		}
	}
	r.clients.mu.Unlock()
	var requests []func(ctx context.Context)
	for key, uris := range held {
		for _, uri := range uris {
			end := r.leave(c, key, uri)
			requests = append(requests, func(ctx context.Context) {
				if err := end(ctx); err != nil {
					r.log.Debug().Err(err).Str("server", key.server).Msg("could not end a subscription")
				}
			})
		}
	}
	r.endClient(c)
	r.Left(c)
	return func(ctx context.Context) {
		for _, request := range requests {
			request(ctx)
		}
		if r.clients.level() != before {
			r.sendLevel(r.loggingSessions(c)...)
		}
	}
}

// Left is called when a client has left: it has closed its streams, or is removed.
func (r *Registry) Left(c upstream.Client) {
	for _, u := range r.Catalog().Upstreams {
		for _, s := range r.openSessions(u) {
			s.Left(c)
		}
	}
}

// all returns all clients and subscription streams.
func (c *clients) all() []*attached {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.attached))
}

// has reports whether a client is known, which means that Remove will be called.
func (c *clients) has(client upstream.Client) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.attached[client.ID()] != nil
}

// only returns the attached client that could use a session, if there is exactly one.
func (c *clients) only(could func(c upstream.Client) bool) (only upstream.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, client := range c.attached {
		switch {
		case client.isStream || !could(client.Client):
		case only != nil:
			return nil
		default:
			only = client.Client
		}
	}
	return only
}

// OnlyClient implements live.Host.
func (r *Registry) OnlyClient(s *live.Session) upstream.Client {
	if s.Owner != nil {
		return s.Owner
	}
	return r.clients.only(func(c upstream.Client) bool {
		return r.mayUse(c, s.Config.Name) && keyOf(s.Config, c) == keyOfSession(s)
	})
}

// announce notifies clients of changed lists until ctx ends.
func (r *Registry) announce(ctx context.Context) {
	for {
		capabilities, err := r.changed.Wait(ctx, nil, nil)
		if err != nil {
			return
		}
		for capability := range capabilities {
			for _, c := range r.clients.all() {
				c.Notify(upstream.ListChanged(capability), nil)
			}
		}
		select {
		case <-time.After(announcePause):
		case <-ctx.Done():
		}
		r.SettleAll(ctx, startPause)
	}
}

// ListsChanged implements live.Host.
func (r *Registry) ListsChanged(capabilities ...string) { r.changed.Note(capabilities...) }

// Notified implements live.Host.
func (r *Registry) Notified(s *live.Session, method string, params []byte, to []upstream.Client) {
	if s.Owner != nil && len(to) == 0 {
		to = []upstream.Client{s.Owner}
	}
	switch method {
	case "notifications/resources/updated":
		r.updated(keyOfSession(s), params)
		return
	case "notifications/message":
		if len(to) > 0 {
			params = withLogger(params, s.Config.Name)
		}
	}
	for _, c := range to {
		c.Notify(method, params)
	}
}

// Opened implements live.Host.
func (r *Registry) Opened(s *live.Session, capabilities []byte) (ready func()) {
	hasLogging, level := !rawjson.IsNull(rawjson.Get(capabilities, "logging")), r.clients.level()
	if hasLogging {
		r.sendLevel(s)
	}
	if s.Owner != nil { // before the client's next call, which may change a resource
		s.Background(func() { r.resubscribe(s) })
	}
	return func() {
		if hasLogging && r.clients.level() != level { // SetLevel could not find the session yet
			s.Background(func() { r.sendLevelTo(s) })
		}
		if s.Owner == nil {
			s.Background(func() { r.resubscribe(s) })
		}
	}
}

// HasUsers implements live.Host. Clients use a shared session even without calls if they have
// subscriptions, or upstream sessions of their own.
func (r *Registry) HasUsers(s *live.Session) bool {
	isClients := func(own *live.Session) bool { return own.Owner != nil }
	isShared := s.Supervisor().Owner() == ""
	return len(r.clients.uris(keyOfSession(s))) > 0 || isShared && slices.ContainsFunc(r.owned.sessionsOf(s.Config.Name), isClients)
}

// withLogger returns a log message whose logger begins with the server's name.
func withLogger(params []byte, server string) []byte {
	logger := server
	if own, ok := rawjson.String(rawjson.Get(params, "logger")); ok && own != "" {
		logger += "/" + own
	}
	return rawjson.With(params, "logger", rawjson.AppendString(nil, logger))
}

// openSessions returns an upstream's open sessions: the shared one and those of owners.
func (r *Registry) openSessions(u *live.Upstream) []*live.Session {
	sessions := r.owned.sessionsOf(u.Name)
	if u.State == live.Ready {
		sessions = append(sessions, u.Session)
	}
	return sessions
}

// Broadcast sends a client's notification, such as a change of its roots, to all open
// sessions of the upstreams that it may use. It skips sessions of 2026-07-28,
// which has no such notifications.
func (r *Registry) Broadcast(c upstream.Client, method string, params []byte) {
	for _, u := range r.Catalog().Upstreams {
		if !r.mayUse(c, u.Name) {
			continue
		}
		for _, s := range r.openSessions(u) {
			if s.Supervisor().Owner() != "" && keyOfSession(s) != keyOf(s.Config, c) {
				continue
			}
			if s.Is2026() {
				continue
			}
			if err := s.Notify(method, params); err != nil {
				r.log.Debug().Err(err).Str("server", u.Name).Msg("could not pass a notification on")
			}
		}
	}
}

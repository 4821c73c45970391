package registry

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"mcpx/internal/rawjson"
)

// clients are the clients of the fronts, and what they asked to hear of.
type clients struct {
	mu         sync.Mutex
	attached   map[string]Client
	listeners  map[string]Client                   // they are told things, but never asked
	levels     map[string]string                   // of logging, by client
	subscribed map[string]map[string]*subscription // by scope of a session and URI

	subscriptions map[string]int // of each client that has any
}

// announcePause gathers the changes of lists before clients hear of them: at the
// start every upstream has some.
const announcePause = 100 * time.Millisecond

// Attach makes a client one that upstreams can reach.
func (r *Registry) Attach(c Client) {
	r.clients.mu.Lock()
	defer r.clients.mu.Unlock()
	r.clients.attached[c.ID()] = c
}

// Listen makes a client one that upstreams can tell things, but not ask.
func (r *Registry) Listen(c Client) {
	r.clients.mu.Lock()
	defer r.clients.mu.Unlock()
	r.clients.listeners[c.ID()] = c
}

// Detach forgets a client: its subscriptions end, and so do the sessions that
// are its own.
func (r *Registry) Detach(ctx context.Context, c Client) {
	r.clients.mu.Lock()
	delete(r.clients.attached, c.ID())
	delete(r.clients.listeners, c.ID())
	delete(r.clients.levels, c.ID())
	held := map[string][]string{}
	for scope, uris := range r.clients.subscribed {
		server, _, _ := strings.Cut(scope, "\x00")
		for uri, s := range uris {
			if _, ok := s.known[c.ID()]; ok {
				held[server] = append(held[server], uri)
			}
		}
	}
	r.clients.mu.Unlock()
	for server, uris := range held {
		for _, uri := range uris {
			if err := r.Unsubscribe(ctx, c, server, uri); err != nil {
				r.log.Debug().Err(err).Str("server", server).Msg("could not end a subscription")
			}
		}
	}
	r.isolated.drop(c.ID())
}

// all are the clients that can be told something.
func (c *clients) all() []Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.AppendSeq(slices.Collect(maps.Values(c.attached)), maps.Values(c.listeners))
}

// has reports whether a client is one whose end is heard of.
func (c *clients) has(client Client) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.find(client.ID()) != nil
}

// find is the client with that id, nil if it is gone. The lock is held.
func (c *clients) find(id string) Client {
	if found := c.attached[id]; found != nil {
		return found
	}
	return c.listeners[id]
}

// only implements peer.
func (s *supervisor) only() Client {
	c := &s.registry.clients
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.attached) == 1 {
		for _, only := range c.attached {
			return only
		}
	}
	return nil
}

// subscribed implements peer.
func (s *supervisor) subscribed() []string { return s.registry.clients.uris(s.config.Name) }

// level implements peer.
func (s *supervisor) level() string { return s.registry.clients.level() }

// announce tells clients which lists have changed, until ctx ends.
func (r *Registry) announce(ctx context.Context) {
	for {
		capabilities, err := r.changed.wait(ctx, nil)
		if err != nil {
			return
		}
		for capability := range capabilities {
			for _, c := range r.clients.all() {
				c.Notify(listChanged(capability), nil)
			}
		}
		pause := time.NewTimer(announcePause)
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
		pause.Stop()
	}
}

// caller implements peer. Clients without a session that share an address and a
// credential may be different programs, so they count as different callers.
func (s *supervisor) caller(c Client) string { return c.ID() }

// notified implements peer.
func (s *supervisor) notified(method string, params []byte, to []Client) {
	for _, k := range kinds {
		if method == listChanged(k.capability) {
			s.refresh.note(k.capability)
			return
		}
	}
	s.pass(method, params, to, s.config.Name)
}

// pass hands a notification to the clients it concerns, and an update to the
// subscribers in that scope.
func (s *supervisor) pass(method string, params []byte, to []Client, scope string) {
	switch method {
	case "notifications/resources/updated":
		s.registry.updated(scope, params)
		return
	case "notifications/message":
		if len(to) > 0 {
			params = named(params, s.config.Name)
		}
	}
	for _, c := range to {
		c.Notify(method, params)
	}
}

// named is a log message with its server as the logger, and the upstream's own
// logger behind it.
func named(params []byte, server string) []byte {
	logger := server
	if own, ok := rawjson.String(rawjson.Get(params, "logger")); ok && own != "" {
		logger += "/" + own
	}
	return rawjson.With(params, "logger", rawjson.AppendString(nil, logger))
}

// LogLevels are the levels of MCP, the most talkative first.
var LogLevels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// SetLevel sets the level of the messages a client wants. Upstreams that have
// logging are set to the most talkative that any client wants. They have been
// told when it returns, unless they are slow: the client's next call may be what
// it wants to hear of.
func (r *Registry) SetLevel(c Client, level string) {
	r.clients.mu.Lock()
	if r.clients.find(c.ID()) != nil { // one without a session is gone after this
		r.clients.levels[c.ID()] = level
	}
	r.clients.mu.Unlock()
	var sessions []*Session
	for _, u := range r.Catalog().Upstreams {
		if u.Has("logging") {
			sessions = append(sessions, r.sessions(u)...)
		}
	}
	r.tellLevel(sessions...)
}

// sessions are those that an upstream has now: the shared one, and those of
// single clients.
func (r *Registry) sessions(u *Upstream) []*Session {
	sessions := r.isolated.of(u.Name)
	if u.State == Ready {
		sessions = append(sessions, u.session)
	}
	return sessions
}

// tellTime bounds what mcpx itself asks of an upstream on the side.
const tellTime = 30 * time.Second

// levelTime is what upstreams get to take a log level before others go on.
const levelTime = time.Second

// tellLevel tells upstreams which messages are wanted. It waits for them, but not
// for long.
func (r *Registry) tellLevel(sessions ...*Session) {
	if r.clients.level() == "" {
		return
	}
	told := make(chan struct{}, len(sessions))
	for _, s := range sessions {
		if !s.tasks.Go(func() {
			r.tellLevelTo(s)
			told <- struct{}{}
		}) {
			told <- struct{}{} // it is over
		}
	}
	patience := time.NewTimer(levelTime)
	defer patience.Stop()
	for range sessions {
		select {
		case <-told:
		case <-patience.C:
			return
		}
	}
}

// tellLevelTo tells one session, when nobody else does: so the last that it hears is
// what is wanted in the end.
func (r *Registry) tellLevelTo(s *Session) {
	patience := time.NewTimer(tellTime)
	defer patience.Stop()
	select {
	case s.leveling <- struct{}{}:
		defer func() { <-s.leveling }()
	case <-patience.C: // who is next tells the level as it is then
		return
	case <-s.ctx.Done():
		return
	}
	level := r.clients.level()
	if level == "" {
		return
	}
	s.level.Store(&level)
	_ = r.tell(s, "logging/setLevel", append(rawjson.AppendString([]byte(`{"level":`), level), '}'))
}

// tellFirst tells a session that is new which messages are wanted, before its
// first call.
func (r *Registry) tellFirst(s *Session, capabilities []byte) {
	if !rawjson.IsNull(rawjson.Get(capabilities, "logging")) {
		r.tellLevel(s)
	}
}

// tell makes a request whose answer says nothing.
func (r *Registry) tell(s *Session, method string, params []byte) error {
	ctx, cancel := context.WithTimeout(s.ctx, tellTime)
	defer cancel()
	_, err := s.Call(ctx, Request{Method: method, Params: params})
	if err != nil {
		r.log.Warn().Str("error", s.redact(err.Error())).Str("server", s.server).Str("method", method).Msg("an upstream could not be told")
	}
	return err
}

// level is the most talkative level that a client has set, empty if none has.
func (c *clients) level() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, level := range LogLevels {
		for _, l := range c.levels {
			if l == level {
				return level
			}
		}
	}
	return ""
}

// relevel tells a session that can be found from now on which log level was set
// while it could not.
func (r *Registry) relevel(s *Session, capabilities []byte) {
	if told := s.level.Load(); told == nil || *told != r.clients.level() {
		s.tasks.Go(func() { r.tellFirst(s, capabilities) })
	}
}

// Tell sends a notification of a client to every upstream that is ready, such
// as that its roots have changed.
func (r *Registry) Tell(method string, params []byte) {
	for _, u := range r.Catalog().Upstreams {
		for _, s := range r.sessions(u) {
			if s.modern != nil {
				continue // the new way has no such notifications
			}
			if err := s.Notify(method, params); err != nil {
				r.log.Debug().Err(err).Str("server", u.Name).Msg("could not pass a notification on")
			}
		}
	}
}

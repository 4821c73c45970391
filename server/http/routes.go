package httpfront

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"mcpx/config"
	"mcpx/internal/policy"
	"mcpx/server"
	"mcpx/server/access"
)

// Handler returns the handler of all routes. It always returns the same one.
func (h *HTTP) Handler() http.Handler {
	h.build.Do(func() { h.handler = h.newHandler() })
	return h.handler
}

func (h *HTTP) newHandler() http.Handler {
	if h.times == (times{}) {
		h.times = defaultTimes
	}
	h.Limits.UnreadBytes = cmp.Or(h.Limits.UnreadBytes, defaultUnread)
	h.sessions = newSessions(h.Limits)
	h.sessions.unread.Log, h.sessions.unread.Freed = h.Log, h.Freed
	h.sessions.replicas = h.Replicas
	h.SetServers(h.Servers)
	h.stopping = make(chan struct{})
	h.callsCtx, h.cancelCalls = context.WithCancelCause(context.Background())
	mux := http.NewServeMux()
	for _, path := range []string{"/mcp", "/mcp/{$}", "/mcp/{schema}"} {
		mux.HandleFunc("POST "+path, h.withServer(h.post))
		mux.HandleFunc("GET "+path, h.withServer(h.get))
		mux.HandleFunc("HEAD "+path, noHead("GET, POST, DELETE"))
		mux.HandleFunc("DELETE "+path, h.withServer(h.delete))
	}
	for _, path := range []string{"/sse", "/sse/{$}", "/sse/{schema}"} {
		mux.HandleFunc("GET "+path, h.withServer(h.sse))
		mux.HandleFunc("HEAD "+path, noHead("GET"))
	}
	mux.HandleFunc("POST /message", h.message)
	h.addRoutes(mux)
	return h.closeWhenLeaving(h.Guard.Wrap(mux))
}

// views are the servers by profile name and the value of "expose".
type views map[string]map[string]*server.Server

// SetServers replaces the servers. Requests for a profile that is gone get 404.
func (h *HTTP) SetServers(servers map[string]*server.Server) {
	next := views{}
	for name, s := range servers {
		s.Later = func(task func(ctx context.Context)) { h.sessions.later(task) }
		next[name] = map[string]*server.Server{asConfigured: s, string(config.Lazy): s.Exposing(config.Lazy), string(config.Flat): s.Exposing(config.Flat)}
	}
	h.views.Store(&next)
}

// Profiles returns the servers by profile name, as the config exposes them. Some exist only
// for some callers (access.MayUse).
func (h *HTTP) Profiles() map[string]*server.Server {
	servers := map[string]*server.Server{}
	for name, views := range *h.views.Load() {
		servers[name] = views[asConfigured]
	}
	return servers
}

// EndSessions closes the client sessions of a server, whose profile was removed.
func (h *HTTP) EndSessions(of *server.Server) {
	for _, n := range h.sessions.all() {
		if n.server.Registry() == of.Registry() {
			h.sessions.end(n)
		}
	}
}

// granted returns the views of the profiles that exist for the sender of a request.
func granted(r *http.Request, all views) views {
	if access.MayUseAll(r.Context()) {
		return all
	}
	some := maps.Clone(all)
	maps.DeleteFunc(some, func(name string, _ map[string]*server.Server) bool { return !access.MayUse(r.Context(), name) })
	return some
}

// callerOf returns who sent a request to a server, with the headers that its upstreams get;
// nil for a caller without a name and without such headers.
func callerOf(r *http.Request, s *server.Server) *policy.Caller {
	caller := access.CallerOf(r.Context())
	names := s.ForwardedHeaders()
	if len(names) == 0 {
		return caller
	}
	own := policy.Caller{Headers: map[string]string{}}
	if caller != nil {
		own.ID, own.Name, own.Rules = caller.ID, caller.Name, caller.Rules
	}
	for _, name := range names {
		if value := r.Header.Get(name); value != "" {
			own.Headers[name] = value
		}
	}
	return &own
}

// asConfigured is the value of "expose" for clients that do not set it.
const asConfigured = ""

// noHead refuses HEAD where GET opens a stream. Nothing is written in response to HEAD,
// so mcpx would not notice that the client is gone.
func noHead(allowed string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Allow", allowed)
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

// withServer returns a handler that finds the server of the profile in the path. A
// client may choose the mode in which it sees the tools: /mcp?expose=flat.
func (h *HTTP) withServer(handle func(w http.ResponseWriter, r *http.Request, s *server.Server)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		name := cmp.Or(r.PathValue("schema"), "default")
		all := granted(r, *h.views.Load())
		if (*h.views.Load())[name] != nil && h.Guard.CheckProfile(w, r, name) {
			return
		}
		views := all[name]
		if views == nil && r.PathValue("schema") == "" && len(all) == 1 {
			for _, only := range all {
				views = only
			}
		}
		if views == nil {
			access.Refuse(w, http.StatusNotFound, fmt.Sprintf("there is no profile %q; profiles: %s", name, strings.Join(slices.Sorted(maps.Keys(all)), ", ")))
			return
		}
		s := views[asConfigured]
		if r.URL.RawQuery != "" {
			s = views[r.URL.Query().Get("expose")]
		}
		if s == nil {
			access.Refuse(w, http.StatusBadRequest, `"expose" must be lazy or flat`)
			return
		}
		handle(w, r, s)
	}
}

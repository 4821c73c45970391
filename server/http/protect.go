package httpfront

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"mcpx/config"
	"mcpx/server"
	"mcpx/server/access"
)

// Route is a route that is not for MCP clients: a page for people, or data for one. The front
// protects it before its handler is called; see Access.
type Route struct {
	Pattern string // for http.ServeMux, with the method GET or POST, such as "GET /status"
	Access  Access

	// One of the two is set. ForProfile is for a pattern with {schema}: it gets the server of that
	// profile, and is not called if there is none for the caller.
	Handler    http.Handler
	ForProfile func(w http.ResponseWriter, r *http.Request, s *server.Server)
}

// Access says who may use a route. These rules hold for every route: the Host and the Origin
// must be allowed, a caller needs a token if the config has one, and a POST must be JSON.
type Access int

const (
	// OwnPages is for programs and for mcpx's own pages.
	OwnPages Access = iota
	// AllRights is OwnPages for callers who may use everything. It is for what concerns all callers.
	AllRights
	// ConfigEdits is AllRights where the console may change the config: with server.console edit
	// and a token.
	ConfigEdits
	// AllowedPages is also for pages of other origins that the config allows, if they send the
	// token themselves. The route must only read.
	AllowedPages
	// Everybody is AllowedPages without a token.
	Everybody
)

// isOpen reports whether pages of other origins may use a route.
func (a Access) isOpen() bool { return a == AllowedPages || a == Everybody }

// addRoutes adds the routes that are not for MCP clients, and opens some of them in the guard. It
// panics if a route is wrong, as http.ServeMux does.
func (h *HTTP) addRoutes(mux *http.ServeMux) {
	routes := append([]Route{{Pattern: "GET /health", Access: Everybody, Handler: http.HandlerFunc(h.health)}}, h.Routes...)
	for _, r := range routes {
		if r.Access.isOpen() {
			h.Guard.Shared = append(h.Guard.Shared, r.path())
		}
		if r.Access == Everybody {
			h.Guard.Public = append(h.Guard.Public, r.path())
		}
	}
	open := slices.Concat(access.ClientRoutes, h.Guard.Shared)
	for _, r := range routes {
		if problem := r.problem(open); problem != "" {
			panic(fmt.Sprintf("route %q: %s", r.Pattern, problem))
		}
		mux.Handle(r.Pattern, h.protect(r))
	}
}

// path returns the path of a route's pattern.
func (r Route) path() string {
	_, path, _ := strings.Cut(r.Pattern, " ")
	return path
}

// problem returns what is wrong with a route, "" if nothing is. open are the paths that pages of
// other origins may use.
func (r Route) problem(open []string) string {
	method, path, _ := strings.Cut(r.Pattern, " ")
	isRead := method == http.MethodGet
	isOnePath := !strings.ContainsAny(path, "{}") && !strings.HasSuffix(path, "/")
	switch {
	case !isRead && method != http.MethodPost:
		return "the method must be GET or POST"
	case (r.Handler == nil) == (r.ForProfile == nil):
		return "it needs one handler"
	case r.Access.isOpen() && (!isRead || !isOnePath):
		return "only one path, to be read, can be open to pages of other origins"
	case r.Access.isOpen():
		return ""
	}
	// The guard knows only paths.
	if i := slices.IndexFunc(open, func(other string) bool { return matchesWithin(path, other) }); i >= 0 {
		return fmt.Sprintf("it is closed, but pages of other origins may use %s and what is below it", open[i])
	}
	return ""
}

// matchesWithin reports whether a pattern's path matches a path or one below it.
func matchesWithin(pattern, path string) bool {
	have, want := strings.Split(pattern, "/"), strings.Split(path, "/")
	for i, segment := range have {
		isRest := strings.HasSuffix(segment, "...}") || segment == "" && i > 0 // matches any number of segments
		isAny := strings.HasPrefix(segment, "{") && segment != "{$}"
		switch {
		case isRest || i == len(want):
			return true
		case segment != want[i] && !isAny:
			return false
		}
	}
	return len(have) == len(want)
}

// protect returns the handler of a route. The guard has let the request in.
func (h *HTTP) protect(route Route) http.Handler {
	if route.ForProfile != nil {
		return h.withServer(func(w http.ResponseWriter, r *http.Request, s *server.Server) {
			if h.admits(w, r, route.Access) {
				route.ForProfile(w, r, s)
			}
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.admits(w, r, route.Access) {
			route.Handler.ServeHTTP(w, r)
		}
	})
}

// admits reports whether the caller has the rights that a route needs. If not, it writes the
// error response.
func (h *HTTP) admits(w http.ResponseWriter, r *http.Request, a Access) bool {
	switch {
	case a == ConfigEdits && !h.MayEdit():
		access.Refuse(w, http.StatusForbidden, `the console may not change the config; set "server": {"console": "edit"} and a token, and restart mcpx`)
		return false
	case (a == ConfigEdits || a == AllRights) && !access.MayUseAll(r.Context()):
		access.Refuse(w, http.StatusForbidden, "this needs a token that may use everything")
		return false
	}
	return true
}

// MayEdit reports whether the console may change the config.
func (h *HTTP) MayEdit() bool {
	return h.Guard.Console == config.ConsoleEdit && h.Guard.NeedsToken()
}

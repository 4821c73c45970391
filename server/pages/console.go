package pages

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"mcpx/config"
	"mcpx/config/edit"
	"mcpx/executor"
	"mcpx/internal/rawjson"
	"mcpx/registry"
	"mcpx/registry/live"
	"mcpx/registry/upstream"
	"mcpx/server"
	"mcpx/server/access"
	httpfront "mcpx/server/http"
)

// addConsole adds the routes that only the console uses. Names are in the query, since
// a server or tool may be called "..". Each route sees one schema, as /mcp does.
func (p *Pages) addConsole(mux *http.ServeMux) {
	for route, handle := range map[string]func(http.ResponseWriter, *http.Request, *server.Server){
		"GET /console/{schema}/search":   p.searchTools,
		"GET /console/{schema}/server":   p.serverDetails,
		"GET /console/{schema}/tool":     toolReading,
		"GET /console/{schema}/messages": withAllRights(upstreamMessages),
		"POST /console/{schema}/preview": p.preview,
		"POST /console/{schema}/restart": withAllRights(control((*registry.Registry).Restart)),
		"POST /console/{schema}/stop":    withAllRights(control((*registry.Registry).Stop)),
		"POST /console/{schema}/start":   withAllRights(control((*registry.Registry).Start)),
		"POST /console/{schema}/check":   p.editing(p.checkServer),
		"POST /console/{schema}/add":     p.editing(p.addServer),
		"POST /console/{schema}/change":  p.editing(p.changeServer),
		"POST /console/{schema}/accept":  p.editing(p.acceptServer),
		"POST /console/{schema}/enable":  p.editing(p.switchServer((*edit.Editor).Enable)),
		"POST /console/{schema}/disable": p.editing(p.switchServer((*edit.Editor).Disable)),
	} {
		mux.HandleFunc(route, p.Front.WithServer(handle))
	}
}

// withAllRights returns a handler that is refused for callers who may not use everything:
// what it does concerns all callers.
func withAllRights(handle func(http.ResponseWriter, *http.Request, *server.Server)) func(http.ResponseWriter, *http.Request, *server.Server) {
	return func(w http.ResponseWriter, r *http.Request, s *server.Server) {
		if !access.MayUseAll(r.Context()) {
			access.Refuse(w, http.StatusForbidden, "this needs a token that may use everything")
			return
		}
		handle(w, r, s)
	}
}

// A Search returns the tools that a client may use and that fit a query, the best first.
type Search func(e *executor.Executor, c upstream.Client, query string, limit int) []Hit

// Hit is a tool that a search has found.
type Hit struct {
	Server string `json:"server"`
	Tool   string `json:"tool"`
}

// searchLimit is how many hits a search has at most.
const searchLimit = 30

// searchTools serves GET /console/SCHEMA/search: what exec("mcpx", "search") finds.
func (p *Pages) searchTools(w http.ResponseWriter, r *http.Request, s *server.Server) {
	if p.Search == nil {
		access.Refuse(w, http.StatusNotFound, "there is no search")
		return
	}
	writeConsole(w, p.Search(s.Executor(), httpfront.NewSessionlessClient(s, r), r.URL.Query().Get("q"), searchLimit))
}

// toolReading serves GET /console/SCHEMA/tool: what an agent reads about a tool.
func toolReading(w http.ResponseWriter, r *http.Request, s *server.Server) {
	client := httpfront.NewSessionlessClient(s, r)
	u := upstreamOf(s, client, r)
	if u == nil || u.Tool(r.URL.Query().Get("tool")) == nil {
		access.Refuse(w, http.StatusNotFound, "there is no such tool")
		return
	}
	writeConsole(w, s.Executor().Reading(client, u, u.Tool(r.URL.Query().Get("tool"))))
}

// upstreamOf returns the server in the query as a client sees it, nil if there is none.
func upstreamOf(s *server.Server, c *server.Client, r *http.Request) *live.Upstream {
	return s.Registry().For(c).Catalog().Upstream(r.URL.Query().Get("server"))
}

// upstreamMessages serves GET /console/SCHEMA/messages: the JSON-RPC messages between mcpx
// and a server since a number. They are recorded while somebody reads them.
func upstreamMessages(w http.ResponseWriter, r *http.Request, s *server.Server) {
	after, _ := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
	list, err := s.Registry().Messages(r.URL.Query().Get("server"), after)
	if err != nil {
		refuseConsole(w, err)
		return
	}
	writeConsole(w, list)
}

// control returns a handler that starts or stops the server in the query.
func control(change func(r *registry.Registry, name string) error) func(http.ResponseWriter, *http.Request, *server.Server) {
	return func(w http.ResponseWriter, r *http.Request, s *server.Server) {
		writeDone(w, change(s.Registry(), r.URL.Query().Get("server")))
	}
}

// preview serves POST /console/SCHEMA/preview with {"result": …, "select": "…"}: how many
// tokens an agent reads of a result, and what a select leaves of it.
func (p *Pages) preview(w http.ResponseWriter, r *http.Request, s *server.Server) {
	body, ok := p.Front.Body(w, r)
	if !ok {
		return
	}
	if rawjson.Check(body) != nil {
		access.Refuse(w, http.StatusBadRequest, "the body is not JSON")
		return
	}
	fields, _ := rawjson.String(rawjson.Get(body, "select"))
	preview, err := s.Executor().Preview(r.Context(), rawjson.Get(body, "result"), fields)
	if err != nil {
		access.Refuse(w, http.StatusUnprocessableEntity, err.Error())
		return
	}
	writeConsole(w, preview)
}

// writeConsole writes a response for the console.
func writeConsole(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// writeDone writes that a change is done, or its error.
func writeDone(w http.ResponseWriter, err error) {
	if err != nil {
		refuseConsole(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// refuseConsole writes the error of a route of the console.
func refuseConsole(w http.ResponseWriter, err error) {
	status := http.StatusUnprocessableEntity
	if _, isUnknown := errors.AsType[*edit.UnknownServerError](err); isUnknown || errors.Is(err, registry.ErrUnknown) {
		status = http.StatusNotFound
	}
	access.Refuse(w, status, err.Error())
}

// details is the response to GET /console/SCHEMA/server: what does not change every second.
// Secrets are hidden. What the config says is only for callers who may use everything.
type details struct {
	Command      string            `json:"command,omitempty"` // for a shell
	URL          string            `json:"url,omitempty"`
	Env          map[string]string `json:"env,omitempty"`
	Headers      map[string]string `json:"headers,omitempty"`
	Revision     string            `json:"revision,omitempty"` // of MCP
	Software     string            `json:"software,omitempty"` // name and version
	Instructions string            `json:"instructions,omitempty"`
	Isolation    string            `json:"isolation,omitempty"`
	Start        string            `json:"start,omitempty"`
	Settings     settings          `json:"settings"`
	SignIn       any               `json:"sign_in,omitempty"` // of Pages.SignIn
	Review       *review           `json:"review,omitempty"`
}

// settings are the keys of a server that the console can change.
type settings struct {
	Description    string   `json:"description"`
	Allow          []string `json:"allow"`
	Deny           []string `json:"deny"`
	StartupTimeout string   `json:"startup_timeout"`
	Timeout        string   `json:"timeout"`
	MaxTimeout     string   `json:"max_timeout"`
}

// serverDetails serves GET /console/SCHEMA/server.
func (p *Pages) serverDetails(w http.ResponseWriter, r *http.Request, s *server.Server) {
	name := r.URL.Query().Get("server")
	for _, c := range s.Disabled() {
		if c.Name == name && access.MayUseAll(r.Context()) {
			writeConsole(w, detailsOf(&c))
			return
		}
	}
	client := httpfront.NewSessionlessClient(s, r)
	u := upstreamOf(s, client, r)
	if u == nil {
		refuseConsole(w, registry.ErrUnknown)
		return
	}
	var d details
	if access.MayUseAll(r.Context()) {
		d = detailsOf(u.Config)
		d.Review = reviewOf(s.Schema(), u)
	}
	if p.SignIn != nil {
		d.SignIn = p.SignIn(r.Context(), s.Registry(), client, name)
	}
	d.Revision, d.Software, d.Instructions = u.Revision, u.Software, u.Instructions
	writeConsole(w, d)
}

// detailsOf returns what the config says about a server.
func detailsOf(c *config.Upstream) details {
	public := c.Public()
	return details{
		Command: live.CommandLine(c), URL: live.Address(c), Env: public.Env, Headers: public.Headers,
		Isolation: string(c.Isolation), Start: string(c.Start),
		Settings: settings{
			Description: c.Description, Allow: c.Tools.Allow, Deny: c.Tools.Deny,
			StartupTimeout: config.FormatDuration(c.StartupTimeout), Timeout: config.FormatDuration(c.Timeout), MaxTimeout: config.FormatDuration(c.MaxTimeout),
		},
	}
}

package pages

import (
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

// consoleRoutes returns the routes that only the console uses. Names are in the query, since
// a server or tool may be called "..". Each route sees one schema, as /mcp does.
func (p *Pages) consoleRoutes() []httpfront.Route {
	const all = httpfront.AllRights
	return []httpfront.Route{
		{Pattern: "GET /console/{schema}/search", ForSchema: p.searchTools},
		{Pattern: "GET /console/{schema}/server", ForSchema: p.serverDetails},
		{Pattern: "GET /console/{schema}/tool", ForSchema: toolReading},
		{Pattern: "GET /console/{schema}/messages", Access: all, ForSchema: upstreamMessages},
		{Pattern: "POST /console/{schema}/preview", ForSchema: p.preview},
		{Pattern: "POST /console/{schema}/restart", Access: all, ForSchema: control((*registry.Registry).Restart)},
		{Pattern: "POST /console/{schema}/stop", Access: all, ForSchema: control((*registry.Registry).Stop)},
		{Pattern: "POST /console/{schema}/start", Access: all, ForSchema: control((*registry.Registry).Start)},
		p.editRoute("check", p.checkServer),
		p.editRoute("add", p.addServer),
		p.editRoute("change", p.changeServer),
		p.editRoute("accept", p.acceptServer),
		p.editRoute("enable", p.switchServer((*edit.Editor).Enable)),
		p.editRoute("disable", p.switchServer((*edit.Editor).Disable)),
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
	httpfront.WriteJSON(w, p.Search(s.Executor(), httpfront.NewSessionlessClient(s, r), r.URL.Query().Get("q"), searchLimit))
}

// toolReading serves GET /console/SCHEMA/tool: what an agent reads about a tool.
func toolReading(w http.ResponseWriter, r *http.Request, s *server.Server) {
	client := httpfront.NewSessionlessClient(s, r)
	u := upstreamOf(s, client, r)
	if u == nil || u.Tool(r.URL.Query().Get("tool")) == nil {
		access.Refuse(w, http.StatusNotFound, "there is no such tool")
		return
	}
	httpfront.WriteJSON(w, s.Executor().Reading(client, u, u.Tool(r.URL.Query().Get("tool"))))
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
		httpfront.WriteError(w, err)
		return
	}
	httpfront.WriteJSON(w, list)
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
	httpfront.WriteJSON(w, preview)
}

// writeDone writes that a change is done, or its error.
func writeDone(w http.ResponseWriter, err error) {
	if _, isUnknown := errors.AsType[*edit.UnknownServerError](err); isUnknown {
		access.Refuse(w, http.StatusNotFound, err.Error())
		return
	}
	httpfront.WriteDone(w, err)
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
			httpfront.WriteJSON(w, detailsOf(&c))
			return
		}
	}
	client := httpfront.NewSessionlessClient(s, r)
	u := upstreamOf(s, client, r)
	if u == nil {
		httpfront.WriteError(w, registry.ErrUnknown)
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
	httpfront.WriteJSON(w, d)
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

// Package console adds the console: a web page to watch and test MCP servers, at / of the HTTP
// front. The page is a normal MCP client. What it needs besides MCP is at /console/SCHEMA/…:
// details of servers and tools, messages, previews of results, and with "console": "edit"
// changes of the config file. Hook: httpfront.Route.
//
// Other parts add data for the page with routes of their own below /console/{schema}/.
package console

import (
	"context"
	"net/http"
	"strconv"

	"mcpx/config"
	"mcpx/config/edit"
	"mcpx/internal/rawjson"
	"mcpx/registry"
	"mcpx/registry/live"
	"mcpx/registry/upstream"
	"mcpx/server"
	"mcpx/server/access"
	httpfront "mcpx/server/http"
)

// Console is the console of a front.
type Console struct {
	Front   *httpfront.HTTP
	Editing Editing
	// SignIn returns what is known about a client's sign-in to a server; nil if it has none. It may
	// be nil.
	SignIn func(ctx context.Context, r *registry.Registry, c upstream.Client, server string) any
	// Review returns what a person has to review about a server; nil if there is nothing. It may be
	// nil.
	Review func(profile string, u *live.Upstream) any
}

// Routes returns the routes of the console. Names are in the query, since a server or tool may
// be called "..". Each route sees one profile, as /mcp does.
func (c *Console) Routes() []httpfront.Route {
	const all, edits = httpfront.AllRights, httpfront.ConfigEdits
	return []httpfront.Route{
		{Pattern: "GET /{$}", Handler: http.HandlerFunc(servePage)},
		{Pattern: "GET /assets/", Handler: http.HandlerFunc(servePage)},
		{Pattern: "GET /console/{schema}/server", ForProfile: c.serverDetails},
		{Pattern: "GET /console/{schema}/tool", ForProfile: toolReading},
		{Pattern: "GET /console/{schema}/messages", Access: all, ForProfile: upstreamMessages},
		{Pattern: "POST /console/{schema}/preview", ForProfile: c.preview},
		{Pattern: "POST /console/{schema}/restart", Access: all, ForProfile: control((*registry.Registry).Restart)},
		{Pattern: "POST /console/{schema}/stop", Access: all, ForProfile: control((*registry.Registry).Stop)},
		{Pattern: "POST /console/{schema}/start", Access: all, ForProfile: control((*registry.Registry).Start)},
		{Pattern: "POST /console/{schema}/check", Access: edits, ForProfile: c.checkServer},
		{Pattern: "POST /console/{schema}/add", Access: edits, ForProfile: c.addServer},
		{Pattern: "POST /console/{schema}/change", Access: edits, ForProfile: c.changeServer},
		{Pattern: "POST /console/{schema}/enable", Access: edits, ForProfile: c.switchServer((*edit.Editor).Enable)},
		{Pattern: "POST /console/{schema}/disable", Access: edits, ForProfile: c.switchServer((*edit.Editor).Disable)},
	}
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
		httpfront.WriteDone(w, change(s.Registry(), r.URL.Query().Get("server")))
	}
}

// preview serves POST /console/SCHEMA/preview with {"result": …, "select": "…"}: how many
// tokens an agent reads of a result, and what a select leaves of it.
func (c *Console) preview(w http.ResponseWriter, r *http.Request, s *server.Server) {
	body, ok := c.Front.Body(w, r)
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
	SignIn       any               `json:"sign_in,omitempty"` // of Console.SignIn
	Review       any               `json:"review,omitempty"`  // of Console.Review
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
func (c *Console) serverDetails(w http.ResponseWriter, r *http.Request, s *server.Server) {
	name := r.URL.Query().Get("server")
	for _, u := range s.Disabled() {
		if u.Name == name && access.MayUseAll(r.Context()) {
			httpfront.WriteJSON(w, detailsOf(&u))
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
		if c.Review != nil {
			d.Review = c.Review(s.ProfileName(), u)
		}
	}
	if c.SignIn != nil {
		d.SignIn = c.SignIn(r.Context(), s.Registry(), client, name)
	}
	d.Revision, d.Software, d.Instructions = u.Revision, u.Software, u.Instructions
	httpfront.WriteJSON(w, d)
}

// detailsOf returns what the config says about a server.
func detailsOf(u *config.Upstream) details {
	public := u.Public()
	return details{
		Command: live.CommandLine(u), URL: live.Address(u), Env: public.Env, Headers: public.Headers,
		Isolation: string(u.Isolation), Start: string(u.Start),
		Settings: settings{
			Description: u.Description, Allow: u.Tools.Allow, Deny: u.Tools.Deny,
			StartupTimeout: config.FormatDuration(u.StartupTimeout), Timeout: config.FormatDuration(u.Timeout), MaxTimeout: config.FormatDuration(u.MaxTimeout),
		},
	}
}

package search

import (
	"context"
	"net/http"

	"mcpx/executor"
	"mcpx/registry/upstream"
	"mcpx/server"
	httpfront "mcpx/server/http"
)

// Routes returns the search of the console.
func (s *Search) Routes() []httpfront.Route {
	return []httpfront.Route{{Pattern: "GET /console/{schema}/search", ForProfile: s.serve}}
}

// consoleLimit is how many hits the search of the console has at most.
const consoleLimit = 30

// serve serves GET /console/SCHEMA/search: what exec("mcpx", "search") finds.
func (s *Search) serve(w http.ResponseWriter, r *http.Request, profile *server.Server) {
	client := httpfront.NewSessionlessClient(profile, r)
	httpfront.WriteJSON(w, s.findFor(r.Context(), profile.Executor(), client, r.URL.Query().Get("q")))
}

// toolHit is a tool that the search of the console has found.
type toolHit struct {
	Server string `json:"server"`
	Tool   string `json:"tool"`
}

// findFor returns the tools that the tool search finds for a client, the best first, without
// those of mcpx. It waits for nothing but vectors.
func (s *Search) findFor(ctx context.Context, e *executor.Executor, c upstream.Client, query string) []toolHit {
	x := indexOf(e, e.Catalog(c))
	found, _ := s.find(ctx, x, query, consoleLimit)
	hits := []toolHit{}
	for _, hit := range found {
		if t := x.tools[hit.document]; t.server != executor.Builtin {
			hits = append(hits, toolHit{Server: t.server, Tool: t.tool.Name})
		}
	}
	return hits
}

package search

import (
	"net/http"

	"mcpx/executor"
	"mcpx/registry/upstream"
	"mcpx/server"
	httpfront "mcpx/server/http"
)

// Routes returns the search of the console.
func Routes() []httpfront.Route {
	return []httpfront.Route{{Pattern: "GET /console/{schema}/search", ForProfile: serve}}
}

// consoleLimit is how many hits the search of the console has at most.
const consoleLimit = 30

// serve serves GET /console/SCHEMA/search: what exec("mcpx", "search") finds.
func serve(w http.ResponseWriter, r *http.Request, s *server.Server) {
	httpfront.WriteJSON(w, find(s.Executor(), httpfront.NewSessionlessClient(s, r), r.URL.Query().Get("q"), consoleLimit))
}

// toolHit is a tool that the search of the console has found.
type toolHit struct {
	Server string `json:"server"`
	Tool   string `json:"tool"`
}

// find returns the tools that the tool search finds for a client, the best first, without
// those of mcpx. It never waits.
func find(e *executor.Executor, c upstream.Client, query string, limit int) []toolHit {
	x := indexOf(e, e.Catalog(c))
	found, _ := x.words.search(query, limit)
	hits := []toolHit{}
	for _, hit := range found {
		if t := x.tools[hit.document]; t.server != executor.Builtin {
			hits = append(hits, toolHit{Server: t.server, Tool: t.tool.Name})
		}
	}
	return hits
}

// Package pages serves people and monitoring on the address of the HTTP front: /status and
// /reload. Parts add more pages: see httpfront.Route.
package pages

import (
	"net/http"

	httpfront "mcpx/server/http"
)

// Pages are the routes of a front that are not for MCP clients, and that every mcpx has.
type Pages struct {
	Front       *httpfront.HTTP
	Reload      func() error  // applies the config file again
	Problem     func() string // why the newest config file is not in use, empty if it is; may be nil
	AuditFailed func() int64  // counts the lines of the audit that could not be written; may be nil
}

// Routes returns the routes.
func (p *Pages) Routes() []httpfront.Route {
	return []httpfront.Route{
		{Pattern: "GET /status", Access: httpfront.AllowedPages, Handler: http.HandlerFunc(p.status)},
		{Pattern: "POST /reload", Handler: http.HandlerFunc(p.reload)},
	}
}

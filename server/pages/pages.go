// Package pages serves people and monitoring on the address of the HTTP front: the console,
// /status and /reload.
package pages

import (
	"context"
	"net/http"

	"mcpx/registry"
	"mcpx/registry/upstream"
	httpfront "mcpx/server/http"
)

// Pages are the routes of a front that are not for MCP clients.
type Pages struct {
	Front   *httpfront.HTTP
	Console http.Handler  // serves / and /assets/; may be nil
	Search  Search        // finds tools for the console; may be nil
	Reload  func() error  // applies the config file again; nil: not allowed here
	Editing *Editing      // changes the config file; nil: not allowed here
	Problem func() string // why the newest config file is not in use, empty if it is; may be nil
	// SignIn returns what is known about a client's sign-in to a server, for the console; nil if it
	// has none. It may be nil.
	SignIn      func(ctx context.Context, r *registry.Registry, c upstream.Client, server string) any
	AuditFailed func() int64 // counts the lines of the audit that could not be written; may be nil
}

// Routes returns the routes.
func (p *Pages) Routes() []httpfront.Route {
	routes := []httpfront.Route{
		{Pattern: "GET /status", Access: httpfront.AllowedPages, Handler: http.HandlerFunc(p.status)},
		{Pattern: "POST /reload", Handler: http.HandlerFunc(p.reload)},
	}
	if p.Console != nil {
		routes = append(routes, httpfront.Route{Pattern: "GET /{$}", Handler: p.Console}, httpfront.Route{Pattern: "GET /assets/", Handler: p.Console})
	}
	return append(routes, p.consoleRoutes()...)
}

// Package pages serves people and monitoring on the address of the HTTP front: the console,
// /status, /reload and /metrics.
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
	Metrics http.Handler  // serves /metrics; may be nil
	Search  Search        // finds tools for the console; may be nil
	Reload  func() error  // applies the config file again; nil: not allowed here
	Editing *Editing      // changes the config file; nil: not allowed here
	Problem func() string // why the newest config file is not in use, empty if it is; may be nil
	// SignIn returns what is known about a client's sign-in to a server, for the console; nil if it
	// has none. It may be nil.
	SignIn      func(ctx context.Context, r *registry.Registry, c upstream.Client, server string) any
	AuditFailed func() int64 // counts the lines of the audit that could not be written; may be nil
}

// AddRoutes adds the routes to those of the front.
func (p *Pages) AddRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /status", p.status)
	mux.HandleFunc("POST /reload", p.reload)
	if p.Metrics != nil {
		mux.Handle("GET /metrics", p.Metrics)
	}
	if p.Console != nil {
		mux.Handle("GET /{$}", p.Console)
		mux.Handle("GET /assets/", p.Console)
	}
	p.addConsole(mux)
}

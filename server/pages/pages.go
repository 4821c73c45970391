// Package pages serves people and monitoring on the address of the HTTP front: the console,
// the pages where people sign in to upstreams, /status, /reload and /metrics.
package pages

import (
	"net/http"

	"mcpx/internal/auth"
	"mcpx/server/front"
)

// Pages are the routes of a front that are not for MCP clients.
type Pages struct {
	Front       *front.HTTP
	Console     http.Handler // serves / and /assets/; may be nil
	Metrics     http.Handler // serves /metrics; may be nil
	Accounts    *auth.Accounts
	Callback    string        // the address of /oauth/callback, as browsers reach it
	Reload      func() error  // applies the config file again; nil: not allowed here
	Editing     *Editing      // changes the config file; nil: not allowed here
	Problem     func() string // why the newest config file is not in use, empty if it is; may be nil
	AuditFailed func() int64  // counts the lines of the audit that could not be written; may be nil
}

// AddRoutes adds the routes to those of the front.
func (p *Pages) AddRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /status", p.status)
	mux.HandleFunc("POST /reload", p.reload)
	mux.HandleFunc("GET /signin/{schema}/{server}", p.beginSignIn)
	mux.HandleFunc("POST /signout/{schema}/{server}", p.signOut)
	mux.HandleFunc("GET /oauth/callback", p.completeSignIn)
	if p.Metrics != nil {
		mux.Handle("GET /metrics", p.Metrics)
	}
	if p.Console != nil {
		mux.Handle("GET /{$}", p.Console)
		mux.Handle("GET /assets/", p.Console)
	}
	p.addConsole(mux)
}

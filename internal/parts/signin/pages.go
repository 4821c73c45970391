package signin

import (
	"fmt"
	"html/template"
	"net/http"
	"strings"

	"mcpx/internal/plain"
	"mcpx/server/access"
	httpfront "mcpx/server/http"
)

// Pages are the routes of the HTTP front where people sign in and out.
type Pages struct {
	Front    *httpfront.HTTP
	Accounts *Accounts
	Callback string // the address of /oauth/callback, as browsers reach it
}

// Routes returns the routes.
func (p *Pages) Routes() []httpfront.Route {
	return []httpfront.Route{
		{Pattern: "GET /signin/{schema}/{server}", Handler: http.HandlerFunc(p.begin)},
		{Pattern: "POST /signout/{schema}/{server}", Handler: http.HandlerFunc(p.signOut)},
		{Pattern: "GET /oauth/callback", Handler: http.HandlerFunc(p.complete)},
	}
}

// begin serves GET /signin/SCHEMA/SERVER: it sends the browser to the page where the
// person signs in to the server.
func (p *Pages) begin(w http.ResponseWriter, r *http.Request) {
	seen, name := p.view(r), r.PathValue("server")
	switch {
	case seen == nil:
		showPage(w, http.StatusNotFound, page{"Not found", fmt.Sprintf("There is no profile %q.", r.PathValue("schema"))})
		return
	case !seen.maySignIn(name):
		showPage(w, http.StatusForbidden, page{"You may not sign in to " + name, notForAll})
		return
	}
	address, err := seen.begin(r.Context(), name, p.Callback, strings.Fields(r.URL.Query().Get("scope")))
	if err != nil {
		showPage(w, http.StatusBadGateway, page{"Signing in to " + name + " cannot begin", err.Error()})
		return
	}
	http.Redirect(w, r, address, http.StatusFound)
}

// notForAll is why a caller may not sign in or out.
const notForAll = `there is no such server, or its sign-in is for everybody: only callers who may use everything can change it`

// view returns the upstreams of the profile in the path, as the sender sees them; nil if the
// profile does not exist for it.
func (p *Pages) view(r *http.Request) *view {
	name := r.PathValue("schema")
	s := p.Front.Profiles()[name]
	if s == nil || !access.MayUse(r.Context(), name) {
		return nil
	}
	seen := viewOf(s.Registry(), httpfront.NewSessionlessClient(s, r))
	return &seen
}

// complete serves GET /oauth/callback, where the browser comes back to. The sign-in
// must be of the caller who comes back, or for everybody.
func (p *Pages) complete(w http.ResponseWriter, r *http.Request) {
	var account *Account
	err := ErrNotBegun
	if caller := access.CallerOf(r.Context()); caller != nil {
		account, err = p.Accounts.Complete(r.Context(), caller.ID, r.URL.Query())
	}
	if account == nil && access.MayUseAll(r.Context()) {
		account, err = p.Accounts.Complete(r.Context(), "", r.URL.Query())
	}
	if err != nil {
		showPage(w, http.StatusBadRequest, page{"You are not signed in", err.Error()})
		return
	}
	for _, s := range p.Front.Profiles() {
		s.Registry().Resume(r.Context(), account.Is)
	}
	showPage(w, http.StatusOK, page{"You are signed in", "You can close this page."})
}

// signOut serves POST /signout/SCHEMA/SERVER.
func (p *Pages) signOut(w http.ResponseWriter, r *http.Request) {
	seen, name := p.view(r), r.PathValue("server")
	switch {
	case seen == nil:
		access.Refuse(w, http.StatusNotFound, fmt.Sprintf("there is no profile %q", r.PathValue("schema")))
		return
	case !seen.maySignIn(name):
		access.Refuse(w, http.StatusForbidden, notForAll)
		return
	}
	if err := seen.signOut(r.Context(), name); err != nil {
		access.Refuse(w, http.StatusBadGateway, err.Error())
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// page is a page with one message.
type page struct{ Title, Text string }

var pageTemplate = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{{.Title}} · mcpx</title>
<h1>{{.Title}}</h1><p>{{.Text}}</p><p><a href="/">Console</a></p></html>
`))

// showPage writes a page with one message.
func showPage(w http.ResponseWriter, status int, p page) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	w.WriteHeader(status)
	p.Title, p.Text = plain.Line(p.Title), plain.Line(p.Text)
	_ = pageTemplate.Execute(w, p)
}

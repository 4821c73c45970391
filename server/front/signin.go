package front

import (
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"strings"

	"mcpx/internal/auth"
	"mcpx/internal/plain"
	"mcpx/registry"
	"mcpx/server/access"
)

// SignIn is what the front needs to sign people in to upstreams.
type SignIn struct {
	Accounts *auth.Accounts
	Redirect string // the address of /oauth/callback, as browsers reach it
}

// beginSignIn serves GET /signin/SCHEMA/SERVER: it sends the browser to the page where the
// person signs in to the server.
func (h *HTTP) beginSignIn(w http.ResponseWriter, r *http.Request) {
	view, ok := h.viewOf(r)
	if !ok {
		showPage(w, http.StatusNotFound, page{"Not found", fmt.Sprintf("There is no schema %q.", r.PathValue("schema"))})
		return
	}
	name := r.PathValue("server")
	address, err := view.BeginSignIn(r.Context(), name, h.SignIn.Redirect, strings.Fields(r.URL.Query().Get("scope")))
	if err != nil {
		showPage(w, http.StatusBadGateway, page{"Signing in to " + name + " cannot begin", err.Error()})
		return
	}
	http.Redirect(w, r, address, http.StatusFound)
}

// viewOf returns what the sender of a request sees of the schema in the path.
func (h *HTTP) viewOf(r *http.Request) (view registry.View, ok bool) {
	s := granted(r, *h.views.Load())[r.PathValue("schema")][asConfigured]
	if s == nil {
		return view, false
	}
	return s.Registry().For(newSessionlessClient(s, r)), true
}

// completeSignIn serves GET /oauth/callback, where the browser comes back to. Only the
// caller that began a sign-in can complete it; a sign-in for everyone needs a caller that
// may do everything.
func (h *HTTP) completeSignIn(w http.ResponseWriter, r *http.Request) {
	id := ""
	if caller := access.CallerOf(r.Context()); caller != nil {
		id = caller.ID
	}
	account, err := h.SignIn.Accounts.Complete(r.Context(), id, r.URL.Query())
	if errors.Is(err, auth.ErrNotBegun) && id != "" && mayUseAll(r) {
		account, err = h.SignIn.Accounts.Complete(r.Context(), "", r.URL.Query())
	}
	if err != nil {
		showPage(w, http.StatusBadRequest, page{"You are not signed in", err.Error()})
		return
	}
	for _, views := range *h.views.Load() {
		views[asConfigured].Registry().Resume(r.Context(), account)
	}
	showPage(w, http.StatusOK, page{"You are signed in", "You can close this page."})
}

// signOut serves POST /signout/SCHEMA/SERVER.
func (h *HTTP) signOut(w http.ResponseWriter, r *http.Request) {
	view, ok := h.viewOf(r)
	if !ok {
		access.Refuse(w, http.StatusNotFound, fmt.Sprintf("there is no schema %q", r.PathValue("schema")))
		return
	}
	if err := view.SignOut(r.Context(), r.PathValue("server")); err != nil {
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
	w.Header().Set("Content-Security-Policy", "default-src 'none'")
	w.WriteHeader(status)
	p.Title, p.Text = plain.Line(p.Title), plain.Line(p.Text)
	_ = pageTemplate.Execute(w, p)
}

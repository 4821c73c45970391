package pages

import (
	"context"
	"net/http"

	"mcpx/config/edit"
	"mcpx/internal/lockfile"
	"mcpx/internal/rawjson"
	"mcpx/registry/live"
	"mcpx/server"
	"mcpx/server/access"
	httpfront "mcpx/server/http"
)

// Editing changes the config file for the console. Its functions may be called
// concurrently.
type Editing struct {
	// Edit changes the servers of the config file and applies the result.
	Edit func(change func(e *edit.Editor) error) error
	// Accept writes what a server offers to the lock file, and applies it.
	Accept func(key string, offer *lockfile.Server) error
	// Check starts a server that is not in the file yet, stops it again, and returns its last
	// state and the places that look like secrets.
	Check func(ctx context.Context, schema, name string, entry []byte) (*live.Upstream, []string, error)
}

// editRoute returns a route that changes the config. If the console may not do that, the route
// says so.
func (p *Pages) editRoute(name string, handle func(http.ResponseWriter, *http.Request, *server.Server)) httpfront.Route {
	pattern := "POST /console/{schema}/" + name
	if p.Editing == nil {
		return httpfront.Route{Pattern: pattern, ForSchema: refuseEdit}
	}
	return httpfront.Route{Pattern: pattern, Access: httpfront.AllRights, ForSchema: handle}
}

// refuseEdit serves the edit routes of a console that may not change the config.
func refuseEdit(w http.ResponseWriter, _ *http.Request, _ *server.Server) {
	access.Refuse(w, http.StatusForbidden, `the console may not change the config; set "server": {"console": "edit"} and a token, and restart mcpx`)
}

// checked is the response to POST /console/SCHEMA/check.
type checked struct {
	upstreamStatus
	Secrets []string `json:"secrets,omitempty"` // places in the entry that look like secrets
}

// checkServer serves POST /console/SCHEMA/check: it tries a server that is not saved.
func (p *Pages) checkServer(w http.ResponseWriter, r *http.Request, s *server.Server) {
	entry, ok := p.Front.Object(w, r)
	if !ok {
		return
	}
	u, secrets, err := p.Editing.Check(r.Context(), s.Schema(), r.URL.Query().Get("server"), entry)
	if err != nil {
		writeDone(w, err)
		return
	}
	c := checked{statusOf(u), secrets}
	if u.State != live.Ready {
		c.Advice = u.Advice()
	}
	httpfront.WriteJSON(w, c)
}

// addServer serves POST /console/SCHEMA/add.
func (p *Pages) addServer(w http.ResponseWriter, r *http.Request, s *server.Server) {
	entry, ok := p.Front.Object(w, r)
	if !ok {
		return
	}
	name := r.URL.Query().Get("server")
	writeDone(w, p.Editing.Edit(func(e *edit.Editor) error { return e.Add(s.Schema(), name, entry) }))
}

// changeable are the keys of a server that the console can change.
var changeable = []string{"description", "tools", "startup_timeout", "timeout", "max_timeout"}

// changeServer serves POST /console/SCHEMA/change: an object with some of the changeable
// keys, where null removes a key.
func (p *Pages) changeServer(w http.ResponseWriter, r *http.Request, s *server.Server) {
	changes, ok := p.Front.Object(w, r)
	if !ok {
		return
	}
	name := r.URL.Query().Get("server")
	writeDone(w, p.Editing.Edit(func(e *edit.Editor) error {
		for _, key := range changeable {
			value := rawjson.Get(changes, key)
			if value == nil {
				continue
			}
			if err := e.Set(s.Schema(), name, key, value); err != nil {
				return err
			}
		}
		return nil
	}))
}

// switchServer returns a handler that enables or disables the server in the query.
func (p *Pages) switchServer(change func(e *edit.Editor, schema, name string) error) func(http.ResponseWriter, *http.Request, *server.Server) {
	return func(w http.ResponseWriter, r *http.Request, s *server.Server) {
		writeDone(w, p.Editing.Edit(func(e *edit.Editor) error { return change(e, s.Schema(), r.URL.Query().Get("server")) }))
	}
}

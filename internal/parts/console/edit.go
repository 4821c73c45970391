package console

import (
	"context"
	"errors"
	"net/http"

	"mcpx/config/edit"
	"mcpx/internal/rawjson"
	"mcpx/registry/live"
	"mcpx/server"
	"mcpx/server/access"
	httpfront "mcpx/server/http"
	"mcpx/server/pages"
)

// Editing changes the config file for the console. Its functions may be called
// concurrently.
type Editing struct {
	// Edit changes the servers of the config file and applies the result.
	Edit func(change func(e *edit.Editor) error) error
	// Check starts a server that is not in the file yet, stops it again, and returns its last
	// state and the places that look like secrets.
	Check func(ctx context.Context, profile, name string, entry []byte) (*live.Upstream, []string, error)
}

// checked is the response to POST /console/SCHEMA/check.
type checked struct {
	pages.UpstreamStatus
	Secrets []string `json:"secrets,omitempty"` // places in the entry that look like secrets
}

// checkServer serves POST /console/SCHEMA/check: it tries a server that is not saved.
func (c *Console) checkServer(w http.ResponseWriter, r *http.Request, s *server.Server) {
	entry, ok := c.Front.Object(w, r)
	if !ok {
		return
	}
	u, secrets, err := c.Editing.Check(r.Context(), s.ProfileName(), r.URL.Query().Get("server"), entry)
	if err != nil {
		writeDone(w, err)
		return
	}
	state := checked{pages.StatusOf(u), secrets}
	if u.State != live.Ready {
		state.Advice = u.Advice()
	}
	httpfront.WriteJSON(w, state)
}

// addServer serves POST /console/SCHEMA/add.
func (c *Console) addServer(w http.ResponseWriter, r *http.Request, s *server.Server) {
	entry, ok := c.Front.Object(w, r)
	if !ok {
		return
	}
	name := r.URL.Query().Get("server")
	writeDone(w, c.Editing.Edit(func(e *edit.Editor) error { return e.Add(s.ProfileName(), name, entry) }))
}

// changeable are the keys of a server that the console can change.
var changeable = []string{"description", "tools", "startup_timeout", "timeout", "max_timeout"}

// changeServer serves POST /console/SCHEMA/change: an object with some of the changeable
// keys, where null removes a key.
func (c *Console) changeServer(w http.ResponseWriter, r *http.Request, s *server.Server) {
	changes, ok := c.Front.Object(w, r)
	if !ok {
		return
	}
	name := r.URL.Query().Get("server")
	writeDone(w, c.Editing.Edit(func(e *edit.Editor) error {
		for _, key := range changeable {
			value := rawjson.Get(changes, key)
			if value == nil {
				continue
			}
			if err := e.Set(s.ProfileName(), name, key, value); err != nil {
				return err
			}
		}
		return nil
	}))
}

// switchServer returns a handler that enables or disables the server in the query.
func (c *Console) switchServer(change func(e *edit.Editor, profile, name string) error) func(http.ResponseWriter, *http.Request, *server.Server) {
	return func(w http.ResponseWriter, r *http.Request, s *server.Server) {
		writeDone(w, c.Editing.Edit(func(e *edit.Editor) error { return change(e, s.ProfileName(), r.URL.Query().Get("server")) }))
	}
}

// writeDone writes that a change is done, or its error.
func writeDone(w http.ResponseWriter, err error) {
	if _, isUnknown := errors.AsType[*edit.UnknownServerError](err); isUnknown {
		access.Refuse(w, http.StatusNotFound, err.Error())
		return
	}
	httpfront.WriteDone(w, err)
}

package lock

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/http"
	"strings"

	"mcpx/internal/parts/lock/lockfile"
	"mcpx/internal/rawjson"
	"mcpx/registry"
	"mcpx/registry/live"
	"mcpx/server"
	"mcpx/server/access"
	httpfront "mcpx/server/http"
)

// reviewBytes bounds the changes that the console shows.
const reviewBytes = 256 << 10

// review is what has changed about a server since a person approved it.
type review struct {
	Text string `json:"text"` // for a person: every character can be seen
	ID   string `json:"id"`   // of the text; empty if the text is too long to be accepted here
}

// Review returns what waits for a review about a server of a profile, for the console; nil if
// nothing does.
func Review(profile string, u *live.Upstream) any {
	if r := reviewOf(profile, u); r != nil {
		return r
	}
	return nil
}

func reviewOf(profile string, u *live.Upstream) *review {
	v := viewOf(u)
	if v == nil {
		return nil
	}
	note := v.Note(u.MarkedBy(v))
	if note == "" {
		return nil
	}
	var b strings.Builder
	for _, change := range lockfile.Compare(lockfile.Key(profile, u.Name), v.approved, offerOf(u)) {
		if !change.IsNotice() {
			b.WriteString(change.Review(false) + "\n")
		}
		if b.Len() > reviewBytes {
			return &review{Text: "The changes are too long to be shown here. " + note}
		}
	}
	sum := sha256.Sum256([]byte(b.String()))
	return &review{b.String(), hex.EncodeToString(sum[:])}
}

// Reviews lets people accept in the console what has changed about a server.
type Reviews struct {
	Front *httpfront.HTTP
	// Apply calls write with the config file that is in use, and then applies the file again. It
	// may be called concurrently.
	Apply func(write func(file string) error) error
}

// Routes returns the routes of the reviews.
func (v *Reviews) Routes() []httpfront.Route {
	return []httpfront.Route{{Pattern: "POST /console/{schema}/accept", Access: httpfront.ConfigEdits, ForProfile: v.accept}}
}

// accept serves POST /console/SCHEMA/accept with {"id": …}: it approves the server as
// it is now, if that is what the person has seen.
func (v *Reviews) accept(w http.ResponseWriter, r *http.Request, s *server.Server) {
	body, ok := v.Front.Object(w, r)
	if !ok {
		return
	}
	u := s.Registry().For(httpfront.NewSessionlessClient(s, r)).Catalog().Upstream(r.URL.Query().Get("server"))
	if u == nil {
		httpfront.WriteError(w, registry.ErrUnknown)
		return
	}
	offer, waiting := offerOf(u), reviewOf(s.ProfileName(), u)
	id, _ := rawjson.String(rawjson.Get(body, "id"))
	if waiting == nil || waiting.ID == "" || waiting.ID != id {
		access.Refuse(w, http.StatusConflict, "the server is not as you have seen it; look at the changes again")
		return
	}
	httpfront.WriteDone(w, v.Apply(func(file string) error { return add(file, lockfile.Key(s.ProfileName(), u.Name), offer) }))
}

// add writes what a server offers to the lock file of a config.
func add(file, key string, offer *lockfile.Server) error {
	path := lockfile.Path(file)
	lock, err := lockfile.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("there is no lock file; run mcpx pin")
	}
	if err != nil {
		return err
	}
	lock[key] = offer
	return lock.Write(path)
}

package console

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"mcpx/internal/lockfile"
	"mcpx/internal/rawjson"
	"mcpx/registry"
	"mcpx/registry/live"
	"mcpx/server"
	"mcpx/server/access"
	httpfront "mcpx/server/http"
)

// Reviews lets people accept in the console what has changed about a server.
type Reviews struct {
	Front *httpfront.HTTP
	// Accept writes what a server offers to the lock file, and applies it. It may be called
	// concurrently.
	Accept func(key string, offer *lockfile.Server) error
}

// Routes returns the routes of the reviews.
func (v *Reviews) Routes() []httpfront.Route {
	return []httpfront.Route{{Pattern: "POST /console/{schema}/accept", Access: httpfront.ConfigEdits, ForProfile: v.accept}}
}

// ReviewOf returns what waits for a review about a server; nil if nothing does.
func ReviewOf(profile string, u *live.Upstream) any {
	if r := reviewOf(profile, u); r != nil {
		return r
	}
	return nil
}

// reviewBytes bounds the changes that the console shows.
const reviewBytes = 256 << 10

// review is what has changed about a server since a person approved it.
type review struct {
	Text string `json:"text"` // for a person: every character can be seen
	ID   string `json:"id"`   // of the text; empty if the text is too long to be accepted here
}

// reviewOf returns what waits for a review; nil if nothing does.
func reviewOf(profile string, u *live.Upstream) *review {
	if u.Review() == "" {
		return nil
	}
	var b strings.Builder
	for _, change := range lockfile.Compare(lockfile.Key(profile, u.Name), u.Config.Trust.Approved, u.Offer()) {
		if !change.IsNotice() {
			b.WriteString(change.Review(false) + "\n")
		}
		if b.Len() > reviewBytes {
			return &review{Text: "The changes are too long to be shown here. " + u.Review()}
		}
	}
	sum := sha256.Sum256([]byte(b.String()))
	return &review{b.String(), hex.EncodeToString(sum[:])}
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
	offer, waiting := u.Offer(), reviewOf(s.ProfileName(), u)
	id, _ := rawjson.String(rawjson.Get(body, "id"))
	if waiting == nil || waiting.ID == "" || waiting.ID != id {
		access.Refuse(w, http.StatusConflict, "the server is not as you have seen it; look at the changes again")
		return
	}
	httpfront.WriteDone(w, v.Accept(lockfile.Key(s.ProfileName(), u.Name), offer))
}

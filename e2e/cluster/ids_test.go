//go:build unix

package main

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"mcpx/internal/seal"
)

// TestSessionIDs: only an ID that a replica of this cluster has made works, until it
// expires. All others get the same answer.
func TestSessionIDs(t *testing.T) {
	t.Parallel()
	server := map[string]any{"session_key": newKey()}
	c := startCluster(t, options{server: server})
	c.setKeys(newKey())
	foreign := c.start(0)
	c.balance.remove(foreign.name)
	stranger := &client{cluster: c}
	if err := stranger.open(foreign.url); err != nil {
		t.Fatal(err)
	}
	v := openClient(t, c)
	if len(v.session) > 1024 || !strings.HasPrefix(v.session, "v1.") {
		t.Errorf("the session's ID has %d characters, want at most 1,024: %s", len(v.session), v.session)
	}
	for n := 1; n < replicaCount; n++ {
		if got := v.pingAt(c.replica(n).url); got != http.StatusOK {
			t.Errorf("replica %d: status %d for a session of the cluster", n, got)
		}
	}
	for name, id := range map[string]string{
		"truncated":        v.session[:len(v.session)-1],
		"longer":           v.session + "A",
		"changed at first": v.session[:3] + flip(v.session[3:4]) + v.session[4:],
		"changed at last":  v.session[:len(v.session)-8] + flip(v.session[len(v.session)-8:len(v.session)-7]) + v.session[len(v.session)-7:],
		"another version":  "v2." + v.session[3:],
		"of another key":   stranger.session,
		"expired":          expired(t, server["session_key"].(string), v.session),
		"invented":         "v1." + base64.RawURLEncoding.EncodeToString(make([]byte, 200)),
		"of one replica":   "AAAAAAAAAAAAAAAAAAAAAAAAAA",
		"much too long":    "v1." + strings.Repeat("A", 20_000),
	} {
		for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
			x, err := (&client{cluster: c, session: id}).do(method, c.url, pingLine)
			if err != nil {
				t.Fatal(err)
			}
			if got := x.text(); x.status != http.StatusNotFound || !strings.Contains(got, "there is no such session; send initialize") {
				t.Errorf("%s ID, %s: %d %s, want 404", name, method, x.status, clip(got))
			}
			x.stop()
		}
	}
	if got := v.pingAt(c.url); got != http.StatusOK {
		t.Errorf("status %d for the session in the end", got)
	}
}

// flip returns another character of base64url.
func flip(character string) string {
	if character == "A" {
		return "B"
	}
	return "A"
}

// expired returns the same session in an ID that has expired.
func expired(t *testing.T, key, id string) string {
	t.Helper()
	parsed, err := seal.ParseKey(key)
	if err != nil {
		t.Fatal(err)
	}
	box := seal.New(seal.Session, []seal.Key{parsed})
	text, _, err := box.Open(id, "default?expose=")
	if err != nil {
		t.Fatal(err)
	}
	return box.Seal(text, seal.Terms{Label: "default?expose=", Until: time.Now().Add(-time.Second)})
}

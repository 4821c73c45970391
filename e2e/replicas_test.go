package e2e

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"mcpx/internal/seal"
)

// sessionKey returns a session key of one repeated byte, as a config has it.
func sessionKey(b byte) string {
	return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, seal.KeyBytes))
}

// keyed returns a run of mcpx-sse with two profiles and these session keys.
func keyed(t *testing.T, keys ...string) *site {
	t.Helper()
	config := map[string]any{
		"schemas": map[string]any{"default": one(t), "other": one(t)},
		"server":  map[string]any{"session_key": keys},
	}
	return serveHTTP(t, config, options{flags: []string{"--log-level", "debug"}, env: []string{"MCPX_KEY_ONE=" + sessionKey(1)}})
}

// at returns the same client at another replica.
func (c *caller) at(s *site) *caller {
	return &caller{site: s, path: c.path, token: c.token, session: c.session}
}

// TestSealedSessions: with a session key, a client session that one process has opened is
// continued by another, also after the first has ended. Every other ID is answered like an
// unknown one.
func TestSealedSessions(t *testing.T) {
	t.Parallel()
	first, second := keyed(t, "${MCPX_KEY_ONE}"), keyed(t, sessionKey(1))
	c := first.client("/mcp")
	if len(c.session) > 1024 || !strings.HasPrefix(c.session, "v1.") {
		t.Errorf("the ID is %q", c.session)
	}
	there := c.at(second)
	if got := there.exec("a", "echo", `{"text":"continued"}`); got != "continued" {
		t.Errorf("the other replica answers %q", got)
	}
	expired := seal.New(seal.Session, []seal.Key{bytes.Repeat([]byte{1}, seal.KeyBytes)}).Seal(make([]byte, 100), seal.Terms{Label: "default?expose=", Until: time.Now().Add(-time.Second)})
	tampered := c.session[:50] + "A" + c.session[51:]
	if tampered == c.session {
		tampered = c.session[:50] + "B" + c.session[51:]
	}
	for _, v := range []struct{ name, path, session, token string }{
		{"tampered", "/mcp", tampered, ""},
		{"truncated", "/mcp", c.session[:len(c.session)-8], ""},
		{"expired", "/mcp", expired, ""},
		{"of another key", "/mcp", keyed(t, sessionKey(2)).client("/mcp").session, ""},
		{"of another profile", "/mcp/other", c.session, ""},
		{"of another sender", "/mcp", c.session, "someone else"},
	} {
		for _, s := range []*site{first, second} {
			stranger := s.caller("")
			stranger.session, stranger.token = v.session, v.token
			for _, method := range []string{"POST", "GET", "DELETE"} {
				stranger.try(method, v.path, pingLine).want(t, v.name+": "+method, 404, "there is no such session; send initialize")
			}
		}
	}
	c.try("DELETE", "/mcp", "").want(t, "DELETE", 204, "")
	c.try("POST", "/mcp", pingLine).want(t, "after DELETE", 404, "initialize")
	left := first.client("/mcp")
	first.stop()
	first.waitEnd(patience)
	left.at(second).try("POST", "/mcp", pingLine).want(t, "after the replica has ended", 200, "")
	for _, s := range []*site{first, second} {
		for _, secret := range []string{sessionKey(1), c.session} {
			if strings.Contains(s.errors(), secret) {
				t.Errorf("the log has %s", secret)
			}
		}
	}
}

// TestSessionKeyRotation: the first key seals, and all open.
func TestSessionKeyRotation(t *testing.T) {
	t.Parallel()
	older, both, newer := keyed(t, sessionKey(1)), keyed(t, sessionKey(2), sessionKey(1)), keyed(t, sessionKey(2))
	old, next := older.client("/mcp"), both.client("/mcp")
	for _, v := range []struct {
		name   string
		c      *caller
		site   *site
		status int
	}{
		{"an ID of the old key, both keys", old, both, 200},
		{"an ID of the old key, the new key", old, newer, 404},
		{"an ID of the new key, the new key", next, newer, 200},
		{"an ID of the new key, the old key", next, older, 404},
	} {
		v.c.at(v.site).try("POST", "/mcp", pingLine).want(t, v.name, v.status, "")
	}
}

package access

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"mcpx/config"
	"mcpx/internal/policy"
	"mcpx/internal/policy/policytest"
)

// byName are callers whose tokens are their names. Only "ann" is known, and "old" is refused.
type byName struct{}

func (byName) Find(_ *http.Request, token string) (*policy.Caller, *Refusal) {
	switch token {
	case "ann":
		return &policy.Caller{ID: "ann", Name: "ann", Rules: policytest.Allow("default")}, nil
	case "old":
		return nil, InvalidToken("the token is too old")
	case "later":
		return nil, &Refusal{Status: http.StatusServiceUnavailable, Text: "not now"}
	}
	return nil, nil
}

func (byName) MissingScope(_ *policy.Caller, profile string) string {
	if profile == "none" {
		return ""
	}
	return "mcp:" + profile
}

// TestCallersHook: the hook is asked for every token except server.token, and what it says
// becomes the response.
func TestCallersHook(t *testing.T) {
	g := &Guard{Server: config.Server{Token: guardToken}, Callers: byName{}, Metadata: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) })}
	if !(&Guard{Callers: byName{}}).NeedsToken() {
		t.Error("with callers, no token is needed")
	}
	var last *policy.Caller
	handler := g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		last = CallerOf(r.Context())
		if !g.CheckProfile(w, r, strings.TrimPrefix(r.URL.Path, "/mcp/")) {
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	const metadata = `Bearer resource_metadata="http://localhost` + MetadataPath
	for _, row := range []struct {
		name, authorization, path string
		status                    int
		caller, challenge         string
	}{
		{"server.token", "Bearer " + guardToken, "/mcp/work", http.StatusTeapot, "", ""},
		{"a caller", "Bearer ann", "/mcp/default", http.StatusTeapot, "ann", ""},
		{"as a password", "Basic eDphbm4=", "/mcp/default", http.StatusTeapot, "ann", ""},
		{"a profile that a scope grants", "Bearer ann", "/mcp/work", http.StatusForbidden, "ann", metadata + `/mcp/work", error="insufficient_scope", scope="mcp:work"`},
		{"a profile that no scope grants", "Bearer ann", "/mcp/none", http.StatusTeapot, "ann", ""},
		{"a refused token", "Bearer old", "/mcp/default", http.StatusUnauthorized, "", metadata + `/mcp/default", error="invalid_token", error_description="the token is too old"`},
		{"an unknown token", "Bearer bob", "/mcp/default", http.StatusUnauthorized, "", metadata + `/mcp/default", error="invalid_token", error_description="mcpx does not know this token"`},
		{"a token that cannot be checked", "Bearer later", "/mcp/default", http.StatusServiceUnavailable, "", ""},
		{"no token", "", "/status", http.StatusUnauthorized, "", metadata + `"`},
		{"metadata", "", MetadataPath + "/mcp", http.StatusAccepted, "", ""},
		{"beside the metadata", "", MetadataPath + "s", http.StatusUnauthorized, "", metadata + `"`},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+row.path, nil)
		if row.authorization != "" {
			r.Header.Set("Authorization", row.authorization)
		}
		w := httptest.NewRecorder()
		last = nil
		handler.ServeHTTP(w, r)
		if w.Code != row.status {
			t.Errorf("%s: %d, want %d", row.name, w.Code, row.status)
		}
		if got := w.Header().Get("WWW-Authenticate"); got != row.challenge {
			t.Errorf("%s: challenge %s, want %s", row.name, got, row.challenge)
		}
		if (last == nil) != (row.caller == "") || last != nil && last.ID != row.caller {
			t.Errorf("%s: caller %+v, want %q", row.name, last, row.caller)
		}
	}
}

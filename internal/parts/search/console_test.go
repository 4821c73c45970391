package search

import (
	"net/http/httptest"
	"strings"
	"testing"

	"mcpx/internal/policy/policytest"
	"mcpx/server"
	httpfront "mcpx/server/http"
	"mcpx/server/servertest"
)

// TestConsoleRoute: the console gets the tools that its caller may use.
func TestConsoleRoute(t *testing.T) {
	running := servertest.Start(t, server.Options{}, servertest.Upstream(t, "one"), servertest.Upstream(t, "two"))
	for _, name := range []string{"one", "two"} {
		if _, err := running.Registry.For(nil).Ready(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	web := &httpfront.HTTP{Servers: map[string]*server.Server{"default": running.Server}, Routes: new(Search).Routes()}
	web.Guard.Token = "all"
	web.Guard.Callers = servertest.Callers{"some": policytest.Allow("default/one/echo")}
	for _, row := range []struct {
		name, token, path string
		status            int
		want              string
	}{
		{"with all rights", "all", "default/search?q=echo", 200, `{"server":"two","tool":"echo"}`},
		{"a caller with rules", "some", "default/search?q=echo", 200, `[{"server":"one","tool":"echo"}]` + "\n"},
		{"nothing found", "all", "default/search?q=xyzzy", 200, "[]\n"},
		{"no profile", "all", "none/search?q=echo", 404, `there is no profile`},
		{"no token", "", "default/search?q=echo", 401, `Unauthorized`},
	} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost/console/"+row.path, nil)
		r.Header.Set("Authorization", "Bearer "+row.token)
		w := httptest.NewRecorder()
		web.Handler().ServeHTTP(w, r)
		if w.Code != row.status {
			t.Errorf("%s: status %d, want %d", row.name, w.Code, row.status)
		}
		if got := w.Body.String(); !strings.Contains(got, row.want) {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
}

package httpfront

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"mcpx/config"
	"mcpx/internal/policy/policytest"
	"mcpx/internal/rawjson"
	"mcpx/server"
	"mcpx/server/servertest"
)

// done is a handler of a route.
func done(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }

// TestRoutes: whatever a route's handler does, the front lets in only who may use the route.
func TestRoutes(t *testing.T) {
	h := &HTTP{Servers: map[string]*server.Server{"default": bare("x")}}
	h.Guard.Token, h.Guard.AllowedOrigins = "all", []string{"https://app.example.com"}
	h.Guard.Callers = servertest.Callers{"some": policytest.Allow("default/x")}
	h.Routes = []Route{
		{Pattern: "GET /own", Handler: http.HandlerFunc(done)},
		{Pattern: "POST /own", Handler: http.HandlerFunc(done)},
		{Pattern: "POST /all", Access: AllRights, Handler: http.HandlerFunc(done)},
		{Pattern: "GET /allowed", Access: AllowedPages, Handler: http.HandlerFunc(done)},
		{Pattern: "GET /public", Access: Everybody, Handler: http.HandlerFunc(done)},
		{Pattern: "GET /of/{schema}", ForProfile: func(w http.ResponseWriter, r *http.Request, s *server.Server) { done(w, r) }},
		{Pattern: "POST /of/{schema}", Access: AllRights, ForProfile: func(w http.ResponseWriter, r *http.Request, s *server.Server) { done(w, r) }},
	}
	columns := []string{"GET /own", "POST /own", "POST /all", "GET /allowed", "GET /public", "GET /of/default", "POST /of/default", "POST /of/none"}
	for _, row := range []struct {
		name, header string // with commas between headers
		want         [8]int // by column
	}{
		{"a program", "Authorization: Bearer all", [8]int{204, 204, 204, 204, 204, 204, 204, 404}},
		{"a caller with rules", "Authorization: Bearer some", [8]int{204, 204, 403, 204, 204, 204, 403, 404}},
		{"no token", "", [8]int{401, 401, 401, 401, 204, 401, 401, 401}},
		{"a wrong token", "Authorization: Bearer x", [8]int{401, 401, 401, 401, 204, 401, 401, 401}},
		{"an own page", "Origin: http://localhost,Sec-Fetch-Site: same-origin,Authorization: Basic OmFsbA==", [8]int{204, 204, 204, 204, 204, 204, 204, 404}},
		{"an allowed page", "Origin: https://app.example.com,Sec-Fetch-Site: cross-site,Authorization: Bearer all", [8]int{403, 403, 403, 204, 204, 403, 403, 403}},
		{"an allowed page with a password", "Origin: https://app.example.com,Sec-Fetch-Site: cross-site,Authorization: Basic OmFsbA==", [8]int{403, 403, 403, 403, 403, 403, 403, 403}},
		{"a page on another port", "Origin: http://localhost:3000,Sec-Fetch-Site: same-site,Authorization: Bearer all", [8]int{403, 403, 403, 204, 204, 403, 403, 403}},
		{"a foreign page", "Origin: https://evil.com,Authorization: Bearer all", [8]int{403, 403, 403, 403, 403, 403, 403, 403}},
		{"an image of a foreign page", "Sec-Fetch-Site: cross-site,Sec-Fetch-Mode: no-cors,Authorization: Bearer all", [8]int{403, 403, 403, 403, 403, 403, 403, 403}},
		{"a form", "Content-Type: text/plain,Authorization: Bearer all", [8]int{204, 415, 415, 204, 204, 204, 415, 415}},
		{"another host", "Host: evil.com,Authorization: Bearer all", [8]int{403, 403, 403, 403, 403, 403, 403, 403}},
	} {
		for i, column := range columns {
			method, path, _ := strings.Cut(column, " ")
			r := httptest.NewRequestWithContext(t.Context(), method, "http://localhost"+path, nil)
			r.Header.Set("Content-Type", "application/json")
			for header := range strings.SplitSeq(row.header, ",") {
				name, value, _ := strings.Cut(header, ": ")
				r.Header.Set(name, value)
			}
			if host := r.Header.Get("Host"); host != "" {
				r.Host = host
			}
			w := httptest.NewRecorder()
			h.Handler().ServeHTTP(w, r)
			if w.Code != row.want[i] {
				t.Errorf("%s, %s: %d %s, want %d", row.name, column, w.Code, w.Body, row.want[i])
			}
		}
	}
}

// TestConfigEdits: routes that change the config need "console": "edit", a token, and a caller
// who may use everything.
func TestConfigEdits(t *testing.T) {
	for _, row := range []struct {
		name, token, sent string
		console           config.Console
		want              string
	}{
		{"to view", "all", "all", config.ConsoleView, `403 the console may not change the config; set "server": {"console": "edit"} and a token, and restart mcpx`},
		{"to view, for a caller with rules", "all", "some", config.ConsoleView, `403 the console may not change the config; set "server": {"console": "edit"} and a token, and restart mcpx`},
		{"no token", "", "", config.ConsoleEdit, `403 the console may not change the config; set "server": {"console": "edit"} and a token, and restart mcpx`},
		{"to edit", "all", "all", config.ConsoleEdit, "204 "},
		{"to edit, for a caller with rules", "all", "some", config.ConsoleEdit, "403 this needs a token that may use everything"},
	} {
		h := &HTTP{Routes: []Route{{Pattern: "POST /x", Access: ConfigEdits, Handler: http.HandlerFunc(done)}}}
		h.Guard.Token, h.Guard.Console = row.token, row.console
		if row.token != "" {
			h.Guard.Callers = servertest.Callers{"some": policytest.Allow("default")}
		}
		r := postTo(t.Context(), "/x", nil)
		r.Header.Set("Authorization", "Bearer "+row.sent)
		w := httptest.NewRecorder()
		h.Handler().ServeHTTP(w, r)
		text, _ := rawjson.String(rawjson.Get(rawjson.Get(w.Body.Bytes(), "error"), "message"))
		if got := fmt.Sprint(w.Code, " ", text); got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
}

// TestWrongRoutes: a route that would be open by mistake does not start.
func TestWrongRoutes(t *testing.T) {
	handler := http.HandlerFunc(done)
	for _, row := range []struct {
		name   string
		routes []Route
		want   string // in the panic; empty: none
	}{
		{"no method", []Route{{Pattern: "/x", Handler: handler}}, "GET or POST"},
		{"a method that need not be JSON", []Route{{Pattern: "PUT /x", Handler: handler}}, "GET or POST"},
		{"no handler", []Route{{Pattern: "GET /x"}}, "one handler"},
		{"an open change", []Route{{Pattern: "POST /x", Access: AllowedPages, Handler: handler}}, "to be read"},
		{"a public change", []Route{{Pattern: "POST /x", Access: Everybody, Handler: handler}}, "to be read"},
		{"open with a wildcard", []Route{{Pattern: "GET /{x}", Access: AllowedPages, Handler: handler}}, "one path"},
		{"an open folder", []Route{{Pattern: "GET /x/", Access: AllowedPages, Handler: handler}}, "one path"},
		{"below an open one", []Route{{Pattern: "GET /x", Access: AllowedPages, Handler: handler}, {Pattern: "POST /x/y", Handler: handler}}, "may use /x "},
		{"before an open one", []Route{{Pattern: "POST /x", Handler: handler}, {Pattern: "GET /x", Access: AllowedPages, Handler: handler}}, "may use /x "},
		{"a wildcard that matches an open one", []Route{{Pattern: "POST /{x}", Handler: handler}}, "may use /mcp "},
		{"a wildcard below an open one", []Route{{Pattern: "POST /{x}/add", Handler: handler}}, "may use /mcp "},
		{"the rest", []Route{{Pattern: "POST /{x...}", Handler: handler}}, "may use /mcp "},
		{"a folder of all", []Route{{Pattern: "GET /", Handler: handler}}, "may use /mcp "},
		{"below /mcp", []Route{{Pattern: "POST /mcp/{schema}/add", Handler: handler}}, "may use /mcp "},
		{"below /health", []Route{{Pattern: "GET /health/all", Handler: handler}}, "may use /health "},
		{"beside open ones", []Route{{Pattern: "GET /x", Access: AllowedPages, Handler: handler}, {Pattern: "GET /{$}", Handler: handler}, {Pattern: "GET /xy", Handler: handler}, {Pattern: "POST /y/{x}", Handler: handler}}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			defer func() {
				got := ""
				if problem := recover(); problem != nil {
					got = fmt.Sprint(problem)
				}
				if (got == "") != (row.want == "") || !strings.Contains(got, row.want) {
					t.Errorf("got %q, want %q", got, row.want)
				}
			}()
			(&HTTP{Routes: row.routes}).Handler()
		})
	}
}

package pages

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"mcpx/config"
	"mcpx/internal/policy/policytest"
	"mcpx/internal/store"
	"mcpx/registry/live"
	"mcpx/server/servertest"
)

func TestStatus(t *testing.T) {
	s := serve(t, servertest.Upstream(t, "one"))
	s.Registry.Settled(t.Context(), "one")
	got := s.do(t, "GET", "/status", "")
	for _, want := range []string{
		`200 {"version":"1.2.3","sessions":0,"schemas":{"default":[{"name":"one","transport":"stdio","state":"ready","startup_ms":`,
		`"other":[{"name":"x","transport":"","state":"starting","tools":0,"prompts":0,"resources":0,"tokens":0}]},"context":{"default":{"without":`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("status has no %s: %s", want, got)
		}
	}
	w := httptest.NewRecorder()
	s.status(w, httptest.NewRequestWithContext(t.Context(), "GET", "/status", nil))
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type %q", got)
	}
}

// TestDisabledServers: the status names them.
func TestDisabledServers(t *testing.T) {
	off := servertest.Upstream(t, "off")
	off["disabled"] = true
	s := serve(t, off)
	if got := s.do(t, "GET", "/status", ""); !strings.Contains(got, `"disabled":{"default":[{"name":"off","transport":"stdio"}]}`) {
		t.Errorf("the status has no disabled server: %s", got)
	}
}

// TestReload: only a console that may change the config reloads, for callers who may use
// everything.
func TestReload(t *testing.T) {
	const refused = "403 "
	for _, row := range []struct {
		name    string
		console config.Console
		tokens  bool
		sent    string
		problem error
		want    string
	}{
		{"to read", config.ConsoleView, true, "all", nil, refused},
		{"without a token", config.ConsoleEdit, false, "", nil, refused},
		{"to edit", config.ConsoleEdit, true, "all", nil, "204 "},
		{"a caller with rules", config.ConsoleEdit, true, "some", nil, refused},
		{"a wrong file", config.ConsoleEdit, true, "all", errors.New("a comma is missing"), "422 "},
	} {
		web := front(servertest.Bare("x"))
		web.Guard.Console = row.console
		if row.tokens {
			web.Guard.Token = "all"
			web.Guard.Callers = servertest.Callers{"some": policytest.Allow("default")}
		}
		reloads := 0
		s := open(t, &Pages{Front: web, Reload: func() error { reloads++; return row.problem }}, nil)
		if got := s.do(t, "POST", "/reload", "", "Authorization", "Bearer "+row.sent); !strings.HasPrefix(got, row.want) {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
		if isRefused := row.want == refused; isRefused != (reloads == 0) {
			t.Errorf("%s: %d reloads", row.name, reloads)
		}
		if got, want := s.do(t, "GET", "/status", "", "Authorization", "Bearer "+row.sent), fmt.Sprintf(`"config":{"reload":%t`, row.want != refused); !strings.Contains(got, want) {
			t.Errorf("%s: the status has no %s: %s", row.name, want, got)
		}
	}
}

// TestAdvice: an upstream that has failed has an advice until it works again.
func TestAdvice(t *testing.T) {
	s := serve(t, servertest.Upstream(t, "one", "-exit", "3"))
	failed := s.Registry.Settled(t.Context(), "one")
	for _, row := range []struct {
		name, reason string
		state        live.State
		has          bool
	}{
		{"as it is", failed.Reason, failed.State, true},
		{"failed", "broken", live.Failed, true},
		{"waits", "broken", live.Waiting, true},
		{"is tried again", "broken", live.Starting, true},
		{"starts", "", live.Starting, false},
		{"ready", "", live.Ready, false},
		{"stopped", "stopped in the console", live.Stopped, false},
	} {
		u := *failed
		u.State, u.Reason = row.state, row.reason
		if got := StatusOf(&u).Advice; (got != "") != row.has {
			t.Errorf("%s: the advice is %q", row.name, got)
		}
	}
}

// TestStoreStatus checks what /health and /status show of the store: /health has no addresses,
// since everybody may read it.
func TestStoreStatus(t *testing.T) {
	s := serve(t)
	since := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		name           string
		reason         string
		health, status string
	}{
		{"up", "", `{"status":"ok","store":{"state":"up","since":"2026-01-31T12:00:00Z"}}`,
			`"store":{"state":"up","since":"2026-01-31T12:00:00Z","address":"redis://host","requests":7,"failures":2}`},
		{"down", "refused by 10.0.0.1", `{"status":"ok","store":{"state":"down","since":"2026-01-31T12:00:00Z"}}`,
			`"store":{"state":"down","since":"2026-01-31T12:00:00Z","address":"redis://host","reason":"refused by 10.0.0.1","requests":7,"failures":2}`},
	} {
		s.Front.StoreState = func() store.State {
			return store.State{Health: store.Health{State: row.name, Since: since}, Address: "redis://host", Reason: row.reason, Requests: 7, Failures: 2}
		}
		if got := s.do(t, "GET", "/health", ""); got != "200 "+row.health {
			t.Errorf("%s: /health: %s", row.name, got)
		}
		if got := s.do(t, "GET", "/status", ""); !strings.Contains(got, row.status) {
			t.Errorf("%s: /status: %s", row.name, got)
		}
	}
}

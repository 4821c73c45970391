package lock

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"mcpx/config"
	"mcpx/executor"
	"mcpx/internal/parts/lock/lockfile"
	"mcpx/internal/policy/policytest"
	"mcpx/registry"
	"mcpx/registry/lists"
	"mcpx/registry/live"
	"mcpx/server"
	httpfront "mcpx/server/http"
	"mcpx/server/servertest"
)

// reviewed is a front with the route of reviews, and a server "a" that nobody runs.
type reviewed struct {
	web      *httpfront.HTTP
	registry *registry.Registry
}

// newReviewed returns a front over the server "a", with nothing in its lock.
func newReviewed(apply func(write func(file string) error) error) reviewed {
	c := &config.Upstream{Name: "a", Command: "x"}
	v := &view{pin: PinBlock, approved: &lockfile.Server{Origin: Origin(c)}, command: "CMD"}
	p := &config.Profile{Name: "default", Upstreams: []config.Upstream{*c}}
	r := registry.New(p, registry.Options{Views: func(*config.Upstream) lists.Views { return viewsOf(v) }})
	e := executor.New(r, &config.Config{}, p, executor.Options{})
	web := &httpfront.HTTP{Servers: map[string]*server.Server{"default": server.New(p, r, e, server.Options{})}, Limits: config.Limits{BodyBytes: 10_000}}
	web.Guard.Token, web.Guard.Console = "all", config.ConsoleEdit
	web.Guard.Callers = servertest.Callers{"some": policytest.Allow("default/a")}
	reviews := &Reviews{Front: web, Apply: apply}
	web.Routes = reviews.Routes()
	return reviewed{web, r}
}

// list makes the server list these tools, and returns its state.
func (s reviewed) list(tools ...string) *live.Upstream {
	s.registry.Publish(s.registry.Catalog().Upstream("a").Supervisor, func(u *live.Upstream) { u.SetLists(list(lists.OfTools, named(tools...))) })
	return s.registry.Catalog().Upstream("a")
}

// accept accepts a review of a server, and returns the status of the response.
func (s reviewed) accept(server, id, token string) int {
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/console/default/accept?server="+server, strings.NewReader(`{"id":"`+id+`"}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	s.web.Handler().ServeHTTP(w, r)
	return w.Code
}

// TestAccept: a person with all rights approves what they have seen, and nothing else.
func TestAccept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mcpx.json")
	if err := (lockfile.Lock{"other": {}}).Write(lockfile.Path(file)); err != nil {
		t.Fatal(err)
	}
	writes := 0
	s := newReviewed(func(write func(file string) error) error {
		writes++
		return write(file)
	})
	if got := Review("default", s.list()); got != nil {
		t.Errorf("nothing waits, but the review is %v", got)
	}
	seen, _ := Review("default", s.list("one")).(*review)
	if seen == nil || !strings.Contains(seen.Text, `a: new tool "one"`) || seen.ID == "" {
		t.Fatalf("the review is %+v", seen)
	}
	s.list("one", "two")
	for name, got := range map[string]struct{ status, want int }{
		"it has changed":    {s.accept("a", seen.ID, "all"), http.StatusConflict},
		"no ID":             {s.accept("a", "", "all"), http.StatusConflict},
		"an unknown server": {s.accept("b", seen.ID, "all"), http.StatusNotFound},
		"not all rights":    {s.accept("a", seen.ID, "some"), http.StatusForbidden},
	} {
		if got.status != got.want {
			t.Errorf("%s: status %d, want %d", name, got.status, got.want)
		}
	}
	if writes > 0 {
		t.Errorf("the lock was written %d times", writes)
	}
	s.list("one")
	if got := s.accept("a", seen.ID, "all"); got != http.StatusNoContent {
		t.Fatalf("status %d", got)
	}
	lock, err := lockfile.Read(lockfile.Path(file))
	if err != nil || lock["a"].Items[lockfile.Tools]["one"] == "" || lock["other"] == nil {
		t.Errorf("the lock is %v, %v", lock, err)
	}
}

// Errors of the lock file reach the person.
func TestAcceptFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mcpx.json")
	var failed error
	s := newReviewed(func(write func(file string) error) error {
		failed = write(file)
		return failed
	})
	seen := reviewOf("default", s.list("one"))
	if got := s.accept("a", seen.ID, "all"); got != http.StatusUnprocessableEntity || failed == nil || failed.Error() != "there is no lock file; run mcpx pin" {
		t.Errorf("without a lock file: status %d, %v", got, failed)
	}
	writeText(t, lockfile.Path(file), "{")
	if got := s.accept("a", seen.ID, "all"); got != http.StatusUnprocessableEntity || failed == nil || !strings.Contains(failed.Error(), "not a lock file") {
		t.Errorf("with a damaged lock file: status %d, %v", got, failed)
	}
}

// A review that is too long cannot be accepted in the console.
func TestLongReview(t *testing.T) {
	u := serverWith(&config.Upstream{Name: "a"}, &view{pin: PinBlock, approved: &lockfile.Server{}, command: "CMD"})
	long := lists.Item{Key: "one", Raw: []byte(`{"name":"one","description":"` + strings.Repeat("x", reviewBytes) + `"}`)}
	u.SetLists(list(lists.OfTools, []lists.Item{long}))
	got := reviewOf("default", u)
	if got == nil || got.ID != "" || got.Text != "The changes are too long to be shown here. 1 tool waits for review: CMD" {
		t.Errorf("the review is %+v", got)
	}
}

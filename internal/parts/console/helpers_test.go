package console

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"mcpx/config"
	"mcpx/registry"
	"mcpx/registry/live"
	"mcpx/registry/upstream"
	"mcpx/server"
	httpfront "mcpx/server/http"
	"mcpx/server/servertest"
)

func TestMain(m *testing.M) { servertest.Main(m) }

// site is the HTTP front with the console, over running upstreams.
type site struct {
	*Console
	*servertest.Running // the default profile
	url                 string
}

// serve returns a site with the profiles default and other.
func serve(t *testing.T, upstreams ...map[string]any) *site {
	t.Helper()
	running := servertest.Start(t, server.Options{}, upstreams...)
	web := front(running.Server)
	return open(t, &Console{Front: web, SignIn: signedIn, Review: toReview}, running)
}

// front returns a front with the profiles default and other.
func front(s *server.Server) *httpfront.HTTP {
	return &httpfront.HTTP{Servers: map[string]*server.Server{"default": s, "other": servertest.Bare("x")}, Limits: config.Limits{BodyBytes: 10_000, Sessions: 3, SessionIdle: time.Hour}}
}

// signedIn is the sign-in of every client.
func signedIn(_ context.Context, _ *registry.Registry, _ upstream.Client, server string) any {
	return map[string]string{"account": "ann at " + server}
}

// toReview is what a person has to review about every server.
func toReview(schema string, u *live.Upstream) any { return schema + "/" + u.Name }

// open serves a console until the test ends.
func open(t *testing.T, c *Console, running *servertest.Running) *site {
	t.Helper()
	c.Front.Routes = c.Routes()
	web := httptest.NewServer(c.Front.Handler())
	t.Cleanup(web.Close)
	return &site{c, running, web.URL}
}

// do makes a request and returns the status and the body of the response; header are pairs of
// names and values.
func (s *site) do(t *testing.T, method, path, body string, header ...string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(response.StatusCode, " ", string(text))
}

package console

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"mcpx/internal/mcptest"
)

// TestForeignPagesChangeNothing: after a person has entered the token, the browser also adds it to
// requests of pages on other ports. These requests change nothing.
func TestForeignPagesChangeNothing(t *testing.T) {
	t.Parallel()
	c := full(t)
	c["server"] = map[string]any{"console": "edit"}
	s := c.serve(t, "MCPX_TOKEN="+token)
	before, err := os.ReadFile(s.cmd.Args[1])
	if err != nil {
		t.Fatal(err)
	}
	foreign := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<!doctype html><title>Another program</title>"))
	}))
	defer foreign.Close()
	p := s.tab(t)
	p.provideToken()
	p.do(chromedp.Navigate(s.url + "/#/default"))
	p.waitText(".nav-server", "Ready")
	p.do(chromedp.Navigate(foreign.URL))
	entry := fmt.Sprintf(`{"command": %q}`, mcptest.Upstream(t)["command"])
	for _, v := range []struct{ path, body string }{
		{"/console/default/add?server=evil", fmt.Sprintf("new Blob([%q])", entry)}, // a Blob has no type
		{"/console/default/add?server=evil", fmt.Sprintf("%q", entry)},             // text/plain
		{"/console/default/disable?server=demo", "undefined"},
		{"/console/default/stop?server=demo", "new Blob(['{}'])"},
		{"/reload", "undefined"},
	} {
		// A page cannot read the response in "no-cors" mode, but can wait for it.
		value[bool](p, fmt.Sprintf(`fetch(new Request(%q, {method: 'POST', mode: 'no-cors', credentials: 'include', body: %s})).then(() => true)`, s.url+v.path, v.body))
	}
	after, err := os.ReadFile(s.cmd.Args[1])
	if err != nil || string(after) != string(before) {
		t.Errorf("%v; the file is now %s", err, after)
	}
	p.do(chromedp.Navigate(s.url + "/#/default"))
	p.waitText(".nav-server", "Ready")
	if got := p.text("nav"); strings.Contains(got, "evil") {
		t.Errorf("the servers are %s", got)
	}
	p.forgive("403")
}

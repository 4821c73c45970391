package console

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	mcpxconfig "mcpx/config"
	"mcpx/internal/parts/lock"
	"mcpx/internal/parts/lock/lockfile"
	"mcpx/internal/parts/signin/signintest"
)

// TestSignInFromThePage: a server that needs a sign-in has a link for it, and then shows who
// is signed in.
func TestSignInFromThePage(t *testing.T) {
	t.Parallel()
	account := signintest.New(t)
	c := servers(map[string]any{"locked": map[string]any{"url": account.URL}})
	c["auth"] = map[string]any{"store": "file"}
	p := c.serve(t, "XDG_STATE_HOME="+filepath.Join(t.TempDir(), "state")).open(t, "#/default/locked")
	p.waitText(".title", "Needs sign-in")
	p.waitText(".nav-title, .nav-server", "Needs sign-in")
	address := value[string](p, `$t.action('Sign in').href`)
	if address != p.url+"/signin/default/locked" {
		t.Errorf("the link leads to %s", address)
	}
	p.do(chromedp.Navigate(address)) // a click would open another tab
	p.waitFor(`document.body?.innerText.includes('You are signed in')`)
	p.forgive("favicon")
	p.do(chromedp.Navigate(p.url + "/#/default/locked"))
	p.waitText(".title", "Ready")
	p.waitText(".about", "Sign out")
	p.click("Sign out")
	p.waitText("dialog", "Sign out of locked?")
	p.click("Sign out")
	p.waitText(".title", "Needs sign-in")
}

// TestReviewFromThePage: what waits for review is shown with its changes, and can be
// accepted.
func TestReviewFromThePage(t *testing.T) {
	t.Parallel()
	c := full(t)
	c["server"] = map[string]any{"console": "edit"}
	s := c.serve(t, "MCPX_TOKEN="+token)
	file := s.cmd.Args[1]
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := mcpxconfig.Parse(file, text, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	nothing := lockfile.Lock{"demo": {Origin: lock.Origin(&parsed.Profiles[0].Upstreams[0])}}
	if err := nothing.Write(lockfile.Path(file)); err != nil {
		t.Fatal(err)
	}
	p := s.tab(t)
	p.provideToken()
	p.do(chromedp.Navigate(s.url + "/#/default"))
	p.waitText(".nav-server", "Ready")
	p.click("Reload the config")
	p.waitText("table .review", "for review")
	p.eval(`location.hash = '#/default/demo'`)
	p.waitText(".trouble", "for review")
	p.waitText(".trouble pre", `new tool "echo"`)
	p.waitFor(`!$t.text('.items').includes('echo')`)
	p.click("Accept")
	p.waitText("dialog", "Accept these changes?")
	p.click("Accept")
	p.waitText(".items", "echo")
	p.waitFor(`!$t.text('main').includes('for review')`)
	if lock, err := os.ReadFile(lockfile.Path(file)); err != nil || !strings.Contains(string(lock), `"echo"`) {
		t.Errorf("the lock file is %s, %v", lock, err)
	}
}

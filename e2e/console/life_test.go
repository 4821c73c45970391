package console

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/chromedp"

	"mcpx/internal/mcptest"
)

// TestServerDies: a server that is gone is seen to be, with the reason, and seen
// to come back.
func TestServerDies(t *testing.T) {
	t.Parallel()
	upstream := mcptest.Upstream(t, "-full")
	binary := upstream["command"].(string)
	command := filepath.Join(t.TempDir(), "server")
	link := func() {
		t.Helper()
		if err := os.Symlink(binary, command); err != nil {
			t.Fatal(err)
		}
	}
	link()
	upstream["command"] = command
	p := servers(map[string]any{"demo": upstream}).serve(t).open(t, "#/default/demo/tools/crash")
	p.waitText(".nav-server", "Ready") // or the page may never have seen it so
	p.fill("status", "3")
	p.fill("stderr", "out of memory")
	if err := os.Remove(command); err != nil { // so that it cannot start again
		t.Fatal(err)
	}
	p.click("Run")
	p.waitText(".outcome", "Failed")
	p.waitText(".failure", "exited with status 3")
	p.waitText(".nav-server", "Waiting")
	p.click("demo")
	p.waitText(".trouble", command)
	p.waitText(".trouble", "Next try in")
	p.openLog()
	p.waitText(".log-line", "ready → ")
	link()
	p.waitText(".nav-server", "Ready")
	p.waitText(".log-line", "→ ready")
	p.click("echo")
	p.fill("text", "back")
	p.click("Run")
	p.waitText(".output", "back")
}

// TestListChanges: what a server adds is there without a reload, and what a
// person has typed meanwhile stays.
func TestListChanges(t *testing.T) {
	t.Parallel()
	s := full(t).serve(t)
	p := s.open(t, "#/default/demo/tools")
	typing := s.open(t, "#/default/demo/tools/echo")
	typing.fill("text", "half a sent")
	p.waitText(".items", "change")
	p.waitFor(`!$t.text('.items').includes('extra_0')`)
	s.change(t)
	p.waitText(".items", "extra_0")
	typing.eval(`const s = document.getElementById('search'); s.value = 'extra_0'; s.dispatchEvent(new Event('input'))`)
	typing.waitText(".nav-item", "extra_0") // it has read the list too
	if got := value[string](typing, `$t.field('text').value`); got != "half a sent" {
		t.Errorf("the field has %q", got)
	}
}

// TestSessionLost: a session that mcpx has forgotten is opened anew, and nothing
// else is noticed.
func TestSessionLost(t *testing.T) {
	t.Parallel()
	s := full(t).serve(t)
	p := s.open(t, resourceOne)
	p.click("Subscribe")
	p.waitText(".actions", "Subscribed")
	first := value[string](p, `$t.session`)
	p.drop(first)
	p.openLog()
	p.waitText(".log-line", "subscribed again to test://one")
	if second := value[string](p, `$t.session`); second == first {
		t.Errorf("the session is still %s", first)
	}
	s.updates(t, 1)
	p.waitText(".actions", "1 update so far")
	p.forgive("404")
}

// drop has mcpx forget a session.
func (p *page) drop(session string) {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodDelete, p.url+"/mcp/default?expose=flat", nil)
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Mcp-Session-Id", session)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusNoContent {
		p.t.Fatalf("DELETE: %s", answer.Status)
	}
}

// TestOffline: a page whose mcpx is gone says so.
func TestOffline(t *testing.T) {
	t.Parallel()
	s := full(t).serve(t)
	p := s.open(t, "")
	p.waitText(".servers", "Ready")
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.waitText(".banner", "mcpx does not answer")
	p.forgive("net::ERR_")
}

// TestLeaving: a page that goes ends its session.
func TestLeaving(t *testing.T) {
	t.Parallel()
	s := full(t).serve(t)
	p, other := s.open(t, ""), s.open(t, "")
	for _, page := range []*page{p, other} {
		page.waitText(".figures", "2 this page included")
	}
	other.do(chromedp.Navigate("about:blank"))
	p.waitText(".figures", "1 this page included")
}

// TestHistory: calls are remembered over a reload, run again, exported, deleted.
func TestHistory(t *testing.T) {
	t.Parallel()
	p := full(t).serve(t).open(t, "#/default/demo/tools/echo")
	p.fill("text", "first")
	p.click("Run")
	p.waitText(".output", "first")
	p.do(chromedp.Navigate(p.url + "/" + resourceOne))
	p.waitFor(`$t.text('h1') === 'one'`) // the list is read
	p.click("Read")
	p.waitText(".output", "this is")
	p.do(chromedp.Reload())
	p.click("History")
	p.waitFor(`document.querySelectorAll('.history li').length === 2`)
	p.waitText(".history", `{"text":"first"}`)

	p.eval(`const make = URL.createObjectURL; URL.createObjectURL = (b) => { window.$file = b; return make.call(URL, b); }`)
	p.click("Export as JSON")
	var exported []map[string]any
	if err := json.Unmarshal([]byte(value[string](p, `$file.text()`)), &exported); err != nil || len(exported) != 2 || exported[1]["name"] != "echo" || exported[1]["outcome"] != "ok" {
		t.Errorf("exported %v, %v", exported, err)
	}

	p.eval(`$t.shown('.history li')[1].querySelector('.history-actions button').click()`)
	p.waitText(".output", "first")
	p.waitFor(`$t.field('text').value === 'first'`)
	p.click("History")
	p.waitFor(`document.querySelectorAll('.history li').length === 3`)
	p.click("Delete the call of one")
	p.waitFor(`document.querySelectorAll('.history li').length === 2`)
	p.click("Clear the history")
	p.waitText(".empty-state", "No calls yet")
	p.do(chromedp.Reload())
	p.waitText(".empty-state", "No calls yet")
}

// TestSecrets: what the schema says is secret is sent, and not kept.
func TestSecrets(t *testing.T) {
	t.Parallel()
	p := full(t, "-answers", testdata(t, "secret.json")).serve(t).open(t, "#/default/demo/tools/login")
	p.fill("user", "me")
	p.fill("password", "hunter2")
	p.waitFor(`$t.field('password').type === 'password'`)
	p.click("Run")
	p.waitText(".outcome", "Success")
	if kept := value[string](p, `JSON.stringify(localStorage)`); strings.Contains(kept, "hunter2") || !strings.Contains(kept, "login") {
		t.Errorf("kept: %s", kept)
	}
}

// TestHidden: a page that nobody looks at gives its stream back, and hears again
// what changes once somebody does.
func TestHidden(t *testing.T) {
	t.Parallel()
	p := full(t).serve(t).open(t, "#/default/demo/tools")
	p.waitText(".items", "echo")
	p.waitFor(`$t.standing === 1`)
	p.eval(`
		const later = window.setTimeout;
		window.setTimeout = (f, ms, ...more) => later(f, ms > 20000 ? 0 : ms, ...more);
		Object.defineProperty(document, 'visibilityState', {get: () => window.$look ?? 'hidden', configurable: true});
		document.dispatchEvent(new Event('visibilitychange'))`)
	p.waitFor(`$t.ended === 1`)
	p.eval(`window.$look = 'visible'; document.dispatchEvent(new Event('visibilitychange'))`)
	p.waitFor(`$t.standing === 2`)
}

// TestFullStorage: a browser that keeps nothing more is no reason to fail.
func TestFullStorage(t *testing.T) {
	t.Parallel()
	p := full(t).serve(t).open(t, "#/default/demo/tools/pid")
	p.eval(`Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); }`)
	p.click("Run")
	p.waitText(".outcome", "Success")
	p.click("History")
	p.waitText(".history", "pid")
}

// TestSchemas: each schema has its own servers.
func TestSchemas(t *testing.T) {
	t.Parallel()
	s := twoSchemas(t).serve(t)
	p := s.open(t, "")
	p.waitText(".nav-list", "one")
	p.choose("Schema", "work")
	p.waitFor(`$t.text('.nav-list').includes('two') && !$t.text('.nav-list').includes('one')`)
	p.click("two")
	p.click("pid")
	p.click("Run")
	p.waitText(".outcome", "Success")
	p.do(chromedp.Navigate(s.url + "/#/nope"))
	p.waitText("main", "mcpx serves default, work")
}

// TestSwitchAtOnce: a schema that is left before its session stands leaves none
// behind.
func TestSwitchAtOnce(t *testing.T) {
	t.Parallel()
	p := twoSchemas(t).serve(t).tab(t)
	p.script(`window.$hold = true`) // the answer to the first initialize
	p.do(chromedp.Navigate(p.url + "/"))
	p.waitFor(`$t.held`)
	p.choose("Schema", "work")
	p.waitFor(`$t.posted.some((m) => m.method === 'tools/list')`)
	p.eval(`$t.held()`)
	p.waitText(".nav-server", "two")
	p.click("two")
	p.waitText(".items", "echo")
	p.click("Overview")
	p.waitText(".figures", "1 this page included")
}

// TestSwitchDuringHandshake: what a session is still told when its schema is
// left is not told after its end.
func TestSwitchDuringHandshake(t *testing.T) {
	t.Parallel()
	p := twoSchemas(t).serve(t).tab(t)
	p.script(`const sent = window.fetch;
window.fetch = async (...request) => {
	const [, options] = request;
	const isFirst = !$t.held && options?.body?.includes('notifications/initialized');
	if (isFirst) await new Promise((resolve) => { $t.held = resolve; });
	try {
		return await sent(...request);
	} finally {
		$t.arrived ||= isFirst;
		$t.deleted ||= options?.method === 'DELETE';
	}
};`)
	p.do(chromedp.Navigate(p.url + "/"))
	p.waitFor(`$t.held`)
	p.choose("Schema", "work")
	p.waitFor(`$t.deleted`)
	p.eval(`$t.held()`)
	p.waitFor(`$t.arrived`) // a 404 would be a fault of the page
	p.waitText(".nav-server", "two")
}

// TestLog: what servers say is shown, at the level that is chosen.
func TestLog(t *testing.T) {
	t.Parallel()
	p := full(t).serve(t).open(t, "#/default/demo/tools/say")
	p.click("JSON")
	p.fill("Arguments as JSON", `{"method": "notifications/message", "params": [{"level": "debug", "data": "quiet"}, {"level": "error", "data": "loud"}]}`)
	p.click("Log")
	p.click("Run")
	p.waitText(".log-line", "loud")
	p.waitText(".log-line", "quiet")
	p.choose("Level of log messages", "error")
	p.waitText(".log-line", "log messages from level error on")
	p.click("Clear")
	p.click("Run")
	p.waitText(".log-line", "loud")
	if got := p.text(".log-lines"); strings.Contains(got, "quiet") {
		t.Errorf("the log has debug messages:\n%s", got)
	}
	p.fill("Filter the log", "nothing like it")
	p.waitFor(`$t.text('.log-lines') === ''`)
	p.fill("Filter the log", "lou")
	p.waitText(".log-lines", "loud")
	p.click("Clear")
	p.waitFor(`$t.text('.log-lines') === ''`)
}

// TestToken: a browser asks the person for the token, and sends it with all that
// the page asks for.
func TestToken(t *testing.T) {
	t.Parallel()
	s := full(t).serve(t, "MCPX_TOKEN=a-token-of-the-test")
	p := s.tab(t)
	events := chromedp.Events(p.ctx, fetch.AuthRequired)
	paused := chromedp.Events(p.ctx, fetch.RequestPaused)
	yes := true
	if _, err := chromedp.Call(p.ctx, fetch.Enable, fetch.EnableParams{HandleAuthRequests: &yes}); err != nil {
		t.Fatal(err)
	}
	go func() {
		for e, err := range paused {
			if err != nil {
				return
			}
			_, _ = chromedp.Call(p.ctx, fetch.ContinueRequest, fetch.ContinueRequestParams{RequestID: e.RequestID})
		}
	}()
	go func() {
		for e, err := range events {
			if err != nil {
				return
			}
			_, _ = chromedp.Call(p.ctx, fetch.ContinueWithAuth, fetch.ContinueWithAuthParams{RequestID: e.RequestID, AuthChallengeResponse: &fetch.AuthChallengeResponse{
				Response: fetch.AuthChallengeResponseResponseProvideCredentials, Username: "me", Password: "a-token-of-the-test",
			}})
		}
	}()
	p.do(chromedp.Navigate(s.url + "/#/default/demo/tools/echo"))
	p.fill("text", "let in")
	p.click("Run")
	p.waitText(".output", "let in")
	p.eval(`window.fetch = async () => new Response('no', {status: 401})`)
	p.waitText(".banner", "mcpx wants a token")
	p.forgive("401")
}

package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/chromedp"

	"mcpx/internal/mcptest"
)

// TestServerStateIsShown: the page shows that a server has died and why, and that it is
// back.
func TestServerStateIsShown(t *testing.T) {
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
	p.waitText(".nav-server", "Failed")
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

// TestListChangesAreShown: a new tool appears without a reload.
func TestListChangesAreShown(t *testing.T) {
	t.Parallel()
	s := full(t).serve(t)
	p := s.open(t, "#/default/demo/tools")
	p.waitText(".items", "change")
	p.waitFor(`!$t.text('.items').includes('extra_0')`)
	s.change(t)
	p.waitText(".items", "extra_0")
}

// TestLostSessionIsReplaced: when mcpx has forgotten the session, the page opens a new
// one and subscribes again.
func TestLostSessionIsReplaced(t *testing.T) {
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

// drop ends a session behind the back of the page.
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

// TestOfflineIsShown: the page says when mcpx does not answer.
func TestOfflineIsShown(t *testing.T) {
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

// TestLeavingEndsTheSession: a page that is closed ends its session.
func TestLeavingEndsTheSession(t *testing.T) {
	t.Parallel()
	s := full(t).serve(t)
	p, other := s.open(t, ""), s.open(t, "")
	for _, page := range []*page{p, other} {
		page.waitText(".figures", "2 this page included")
	}
	other.do(chromedp.Navigate("about:blank"))
	p.waitText(".figures", "1 this page included")
}

// TestHistoryKeepsCalls: calls survive a reload, and can be run again, exported and
// deleted.
func TestHistoryKeepsCalls(t *testing.T) {
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

	press := func(text string) {
		p.eval(fmt.Sprintf(`[...$t.shown('.history li')[1].querySelectorAll('button')].find((b) => b.innerText === %q).click()`, text))
	}
	press("Result")
	p.waitText(".history-result", "first")
	press("Run again")
	p.waitText(".output", "first")
	p.waitFor(`$t.field('text').value === 'first'`)
	p.click("History")
	p.waitFor(`document.querySelectorAll('.history li').length === 3`)
	p.click("Delete the call of one")
	p.waitFor(`document.querySelectorAll('.history li').length === 2`)
	p.click("Clear the history")
	p.waitText("dialog", "2 calls")
	p.click("No")
	p.waitFor(`!document.querySelector('dialog[open]') && document.querySelectorAll('.history li').length === 2`)
	p.click("Clear the history")
	p.click("Clear")
	p.waitText(".empty-state", "No calls yet")
	p.do(chromedp.Reload())
	p.waitText(".empty-state", "No calls yet")
}

// TestSecretsAreNotKept: a value that the schema marks as secret is sent, but not
// stored.
func TestSecretsAreNotKept(t *testing.T) {
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

// TestHiddenPageClosesItsStream: a hidden page closes its stream, and opens one again
// when it is shown.
func TestHiddenPageClosesItsStream(t *testing.T) {
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

// TestFullStorageIsNoError: calls work when the browser can store nothing more.
func TestFullStorageIsNoError(t *testing.T) {
	t.Parallel()
	p := full(t).serve(t).open(t, "#/default/demo/tools/pid")
	p.eval(`Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); }`)
	p.click("Run")
	p.waitText(".outcome", "Success")
	p.click("History")
	p.waitText(".history", "pid")
}

// TestProfilesHaveTheirOwnServers: each profile shows its own servers.
func TestProfilesHaveTheirOwnServers(t *testing.T) {
	t.Parallel()
	s := twoProfiles(t).serve(t)
	p := s.open(t, "")
	p.waitText(".nav-list", "one")
	p.choose("Profile", "work")
	p.waitFor(`$t.text('.nav-list').includes('two') && !$t.text('.nav-list').includes('one')`)
	p.click("two")
	p.click("pid")
	p.click("Run")
	p.waitText(".outcome", "Success")
	p.do(chromedp.Navigate(s.url + "/#/nope"))
	p.waitText("main", "mcpx serves default, work")
}

// TestSwitchLeavesNoSession: switching the profile while its session opens leaves no
// session behind.
func TestSwitchLeavesNoSession(t *testing.T) {
	t.Parallel()
	p := twoProfiles(t).serve(t).tab(t)
	p.script(`window.$hold = true`) // the answer to the first initialize
	p.do(chromedp.Navigate(p.url + "/"))
	p.waitFor(`$t.held`)
	p.choose("Profile", "work")
	p.waitFor(`$t.posted.some((m) => m.method === 'tools/list')`)
	p.eval(`$t.held()`)
	p.waitText(".nav-server", "two")
	p.click("two")
	p.waitText(".items", "echo")
	p.click("Overview")
	p.waitText(".figures", "1 this page included")
}

// TestSwitchDuringHandshake: a session that is left during its handshake gets no message
// after its end.
func TestSwitchDuringHandshake(t *testing.T) {
	t.Parallel()
	p := twoProfiles(t).serve(t).tab(t)
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
	p.choose("Profile", "work")
	p.waitFor(`$t.deleted`)
	p.eval(`$t.held()`)
	p.waitFor(`$t.arrived`) // a 404 would be a fault of the page
	p.waitText(".nav-server", "two")
}

// TestLogHasALevel: the log shows the messages of servers from the chosen level on.
func TestLogHasALevel(t *testing.T) {
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

// TestBrowserAsksForTheToken: the browser asks the person for the token and sends it
// with every request of the page.
func TestBrowserAsksForTheToken(t *testing.T) {
	t.Parallel()
	s := full(t).serve(t, "MCPX_TOKEN="+token)
	p := s.tab(t)
	p.provideToken()
	p.do(chromedp.Navigate(s.url + "/#/default/demo/tools/echo"))
	p.fill("text", "let in")
	p.click("Run")
	p.waitText(".output", "let in")
	p.eval(`window.fetch = async () => new Response('no', {status: 401})`)
	p.waitText(".banner", "mcpx wants a token")
	p.forgive("401")
}

const token = "a-token-of-the-test"

// provideToken enters the token whenever the browser asks for it.
func (p *page) provideToken() {
	p.t.Helper()
	events := chromedp.Events(p.ctx, fetch.AuthRequired)
	paused := chromedp.Events(p.ctx, fetch.RequestPaused)
	yes := true
	if _, err := chromedp.Call(p.ctx, fetch.Enable, fetch.EnableParams{HandleAuthRequests: &yes}); err != nil {
		p.t.Fatal(err)
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
				Response: fetch.AuthChallengeResponseResponseProvideCredentials, Username: "me", Password: token,
			}})
		}
	}()
}

// TestReloadButton: the page can reload the config if it may edit, and shows what is wrong
// with the file.
func TestReloadButton(t *testing.T) {
	t.Parallel()
	viewed := full(t).serve(t).open(t, "#/default")
	viewed.waitText("h1", "Overview")
	if got := viewed.text("main"); strings.Contains(got, "Reload the config") {
		t.Errorf("the page may not edit: %s", got)
	}
	c, more := full(t), mcptest.Upstream(t)
	c["server"] = map[string]any{"console": "edit"}
	s := c.serve(t, "MCPX_TOKEN="+token)
	save := func(text []byte) {
		t.Helper()
		if err := os.WriteFile(s.cmd.Args[1], text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := s.tab(t)
	p.provideToken()
	p.do(chromedp.Navigate(s.url + "/#/default"))
	p.waitText(".nav-server", "Ready")
	save([]byte(`{"mcpServers": {"x": {}}}`))
	p.click("Reload the config")
	p.waitText(".trouble", "mcpServers.x")
	p.forgive("422")
	c["mcpServers"].(map[string]any)["more"] = more
	text, _ := json.Marshal(c)
	save(text)
	p.click("Reload the config")
	p.waitText("table.servers", "more")
	p.waitFor(`!$t.text('main').includes('not in use')`)
}

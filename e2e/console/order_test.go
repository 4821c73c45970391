package console

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// keeping lets a test delay answers, replace them, or change their text: $keep[method]
// collects functions that release the answers, $change(text, method) returns the text.
const keeping = `
window.$keep = {};
window.$change = (text) => text;
const before = window.fetch;
window.fetch = async (...request) => {
	const { method } = JSON.parse(request[1]?.body ?? '{}');
	const response = await before(...request);
	if ($keep[method]) {
		const made = await new Promise((go) => $keep[method].push(go));
		if (made) return made;
	}
	if (!method || response.headers.get('Content-Type') !== 'application/json') return response;
	return new Response($change(await response.text(), method), response);
};`

// keeper opens a page whose answers can be delayed.
func (s *site) keeper(t *testing.T, route string) *page {
	t.Helper()
	p := s.tab(t)
	p.script(keeping)
	p.do(chromedp.Navigate(s.url + "/" + route))
	return p
}

// keep delays the answers to a method from now on.
func (p *page) keep(method string) { p.eval(fmt.Sprintf(`$keep[%q] = []`, method)) }

// kept waits until n answers are delayed.
func (p *page) kept(method string, n int) {
	p.waitFor(fmt.Sprintf(`$keep[%q].length === %d`, method, n))
}

// release lets them go and ends the delay.
func (p *page) release(method string) {
	p.eval(fmt.Sprintf(`const all = $keep[%q]; delete $keep[%q]; all.forEach((go) => go())`, method, method))
}

// updates makes the server send n updates of test://one.
func (s *site) updates(t *testing.T, n int) {
	t.Helper()
	list := `{"uri": "test://one"}`
	for range n - 1 {
		list += `, {"uri": "test://one"}`
	}
	p := s.open(t, "#/default/demo/tools/say")
	p.click("JSON")
	p.fill("Arguments as JSON", `{"method": "notifications/resources/updated", "params": [`+list+`]}`)
	p.click("Run")
	p.waitText(".output", fmt.Sprintf("said %d", n))
}

const resourceOne = "#/default/demo/resources/test%3A%2F%2Fone"

// TestUpdateBeforeTheAnswerCounts: an update that comes before the answer to subscribe
// counts.
func TestUpdateBeforeTheAnswerCounts(t *testing.T) {
	t.Parallel()
	s := full(t).serve(t)
	p := s.keeper(t, resourceOne)
	p.waitText(".nav-server", "Ready")
	p.waitFor(`$t.standing === 1`)
	p.keep("resources/subscribe")
	p.click("Subscribe")
	p.kept("resources/subscribe", 1)
	s.updates(t, 1)
	p.openLog()
	p.waitText(".log-line", "resources/updated test://one")
	if got := p.text(".actions"); got != "Read\nSubscribe" {
		t.Errorf("before the answer the page has %q", got)
	}
	p.release("resources/subscribe")
	p.waitText(".actions", "1 update so far")
	p.waitText(".output", "this is test://one of test")
}

// contents answers the nth delayed read with a text.
func (p *page) contents(n int, text string) {
	p.eval(fmt.Sprintf(`const id = $t.posted.filter((m) => m.method === 'resources/read')[%d].id;
		$keep['resources/read'][%d](new Response(JSON.stringify({ id, result: { contents: [{ uri: 'test://one', text: %q }] } }), { headers: { 'Content-Type': 'application/json' } }))`, n, n, text))
}

// TestLateReadIsNotShown: the answer to an older read does not replace that to a newer
// one.
func TestLateReadIsNotShown(t *testing.T) {
	t.Parallel()
	p := full(t).serve(t).keeper(t, resourceOne)
	p.waitText(".nav-server", "Ready")
	p.keep("resources/read")
	p.click("Read")
	p.kept("resources/read", 1)
	p.click("Read")
	p.kept("resources/read", 2)
	p.contents(1, "as it is now")
	p.waitText(".output", "as it is now")
	p.contents(0, "as it was before")
	p.waitFor(`JSON.parse(localStorage.getItem('mcpx.history')).length === 2`)
	if got := p.text(".output"); !strings.Contains(got, "as it is now") {
		t.Errorf("the page shows %q", got)
	}
}

// TestUpdatesDuringAReadAreReadOnce: updates that come during a read cause one more
// read.
func TestUpdatesDuringAReadAreReadOnce(t *testing.T) {
	t.Parallel()
	s := full(t).serve(t)
	p := s.keeper(t, resourceOne)
	p.waitFor(`$t.standing === 1`)
	p.click("Subscribe")
	p.waitText(".actions", "Subscribed")
	p.keep("resources/read")
	s.updates(t, 6)
	p.waitText(".actions", "6 updates so far")
	p.kept("resources/read", 1)
	p.contents(0, "as it was before")
	p.kept("resources/read", 2)
	p.contents(1, "as it is now")
	p.waitText(".output", "as it is now")
}

// TestResultStaysInItsProfile: a result is not shown for a tool of the same name in
// another profile.
func TestResultStaysInItsProfile(t *testing.T) {
	t.Parallel()
	p := sameNames(t).serve(t).keeper(t, "#/default/demo/tools/pid")
	p.waitFor(`$t.action('Run')`)
	p.keep("tools/call")
	p.click("Run")
	p.kept("tools/call", 1)
	p.do(chromedp.Navigate(p.url + "/#/second/demo/tools/pid"))
	p.waitText(".output", "No result yet")
	p.waitFor(`$t.action('Run')`)
	p.release("tools/call")
	p.waitFor(`JSON.parse(localStorage.getItem('mcpx.history'))?.length === 1`)
	if got := p.text(".output"); !strings.Contains(got, "No result yet") {
		t.Errorf("the page shows %q", got)
	}
}

// TestErrorsOfALeftProfileAreNotShown: an error of a profile that was left is not shown in
// the next one.
func TestErrorsOfALeftProfileAreNotShown(t *testing.T) {
	t.Parallel()
	p := twoProfiles(t).serve(t).tab(t)
	p.script(keeping + `
		$keep['tools/list'] = [];
		$t.banners = '';
		addEventListener('DOMContentLoaded', () => new MutationObserver(() => { $t.banners += document.getElementById('banner').innerText; }).observe(document.getElementById('banner'), { childList: true }));`)
	p.do(chromedp.Navigate(p.url + "/"))
	p.kept("tools/list", 1)
	p.choose("Profile", "work")
	p.eval(`const [go, ...others] = $keep['tools/list']; delete $keep['tools/list']; others.forEach((f) => f());
		go(new Response('{"error":{"message":"there is no such session"}}', { status: 404, headers: { 'Content-Type': 'application/json' } }))`)
	p.click("two")
	p.waitText(".items", "echo")
	if got := value[string](p, `$t.banners`); got != "" {
		t.Errorf("the page said %q", got)
	}
}

// TestRefusedSessionIsRetried: a session that is refused at first is opened later.
func TestRefusedSessionIsRetried(t *testing.T) {
	t.Parallel()
	p := full(t).serve(t).keeper(t, "")
	p.waitFor(`$t.standing === 1`)
	first := value[string](p, `$t.session`)
	p.keep("initialize")
	p.drop(first)
	p.kept("initialize", 1)
	p.eval(`const [go] = $keep.initialize; delete $keep.initialize;
		$t.before = $t.streams;
		go(new Response('{"error":{"message":"too many sessions are open"}}', { status: 503, headers: { 'Content-Type': 'application/json' } }))`)
	p.waitFor(`$t.streams > $t.before`)
	p.forgive("404")
}

// lists changes the answers to tools/list from now on.
func (p *page) lists(to string) {
	p.eval(`$change = (text, method) => (method === 'tools/list' ? ` + to + ` : text)`)
}

const noTools = `'{"id":' + JSON.parse(text).id + ',"result":{"tools":[]}}'`

// change makes the server change its tools.
func (s *site) change(t *testing.T) {
	t.Helper()
	p := s.open(t, "#/default/demo/tools/change")
	p.fill("notices", "1")
	p.click("Run")
	p.waitText(".outcome", "Success")
}

// TestTypedTextSurvivesListChanges: typed text stays when its tool changes or is gone
// for a moment.
func TestTypedTextSurvivesListChanges(t *testing.T) {
	t.Parallel()
	s := full(t).serve(t)
	p := s.keeper(t, "#/default/demo/tools/echo")
	change := func(to string) {
		t.Helper()
		p.lists(to)
		s.change(t)
	}
	p.fill("text", "half a sent")
	change(`text.replaceAll('"description":"', '"description":"Now: ')`)
	p.waitText(".lead", "Now: ")
	if got := value[string](p, `$t.field('text').value`); got != "half a sent" {
		t.Errorf("the field has %q", got)
	}
	if !value[bool](p, `document.activeElement === $t.field('text')`) {
		t.Error("the field has lost the focus")
	}
	p.click("JSON")
	p.fill("Arguments as JSON", `{"text": "half a sentence`)
	change(noTools)
	p.waitText("main", "echo is not there")
	change(`text`)
	p.waitFor(`$t.field('Arguments as JSON')`)
	if got := value[string](p, `$t.field('Arguments as JSON').value`); !strings.Contains(got, "half a sentence") {
		t.Errorf("the editor has %q", got)
	}
}

// TestChangesWithoutAStreamAreRead: changes during the loss of the stream are read when
// it is back.
func TestChangesWithoutAStreamAreRead(t *testing.T) {
	t.Parallel()
	p := full(t).serve(t).keeper(t, "#/default/demo/tools/echo")
	p.waitText(".lead", " ")
	p.waitFor(`$t.standing === 1`)
	p.eval(`$change = (text) => text.replaceAll('"description":"', '"description":"Now: ')`)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+"/mcp/default?expose=flat", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Mcp-Session-Id", value[string](p, `$t.session`))
	answer, err := http.DefaultClient.Do(r) // in place of the page's own
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	p.waitFor(`$t.standing === 2`)
	p.waitText(".lead", "Now: ")
}

// TestTwoPagesShareTheHistory: a page does not overwrite the calls of another page.
func TestTwoPagesShareTheHistory(t *testing.T) {
	t.Parallel()
	p := full(t).serve(t).open(t, "#/default/demo/tools/pid")
	p.waitFor(`$t.action('Run')`)
	p.eval(`localStorage.setItem('mcpx.history', JSON.stringify([{ at: 1, schema: 'default', server: 'demo', kind: 'tools', name: 'of_another_page', outcome: 'ok' }]));
		dispatchEvent(new StorageEvent('storage', { key: 'mcpx.history' }))`)
	p.click("Run")
	p.waitText(".outcome", "Success")
	p.click("History")
	p.waitText(".history", "pid")
	p.waitText(".history", "of_another_page")
}

// TestRequestStaysInItsProfile: a request that waits for the session of a profile is not
// sent in the next profile.
func TestRequestStaysInItsProfile(t *testing.T) {
	t.Parallel()
	p := sameNames(t).serve(t).tab(t)
	p.script(keeping + `$keep.initialize = [];`)
	p.do(chromedp.Navigate(p.url + "/" + resourceOne))
	p.kept("initialize", 1)
	p.click("Read")
	p.choose("Profile", "second")
	p.kept("initialize", 2)
	p.release("initialize")
	p.waitFor(`JSON.parse(localStorage.getItem('mcpx.history'))?.[0].outcome === 'cancelled'`)
	if value[bool](p, `$t.posted.some((m) => m.method === 'resources/read')`) {
		t.Error("it was read in the other profile")
	}
}

// TestRunAgainIsNotRunLater: "Run again" that was left before it could run does not run
// when its tool is opened later.
func TestRunAgainIsNotRunLater(t *testing.T) {
	t.Parallel()
	s := full(t).serve(t)
	p := s.tab(t)
	p.script(keeping + `
		$keep['tools/list'] = [];
		localStorage.setItem('mcpx.history', JSON.stringify([{ at: 1, schema: 'default', server: 'demo', kind: 'tools', name: 'pid', arguments: {}, outcome: 'ok' }]));`)
	p.do(chromedp.Navigate(p.url + "/#/default/~history"))
	p.click("Run again")
	p.waitText("main", "Reading the list")
	p.click("Overview")
	p.waitText("h1", "Overview")
	p.release("tools/list")
	called := func() bool {
		p.waitFor(`$t.action('Run')`)
		return value[bool](p, `$t.posted.some((m) => m.method === 'tools/call')`)
	}
	p.do(chromedp.Navigate(p.url + "/#/default/demo/tools/pid"))
	if called() {
		t.Error("the tool was called")
	}

	p.lists(noTools)
	s.change(t)
	p.waitText("main", "pid is not there")
	p.click("History")
	p.click("Run again")
	p.waitText("main", "pid is not there")
	p.lists(`text`)
	s.change(t)
	if called() {
		t.Error("the tool was called when it was there again")
	}
}

// TestSubscribeTwiceCountsFromZero: a second Subscribe before the first answer starts
// the count at zero.
func TestSubscribeTwiceCountsFromZero(t *testing.T) {
	t.Parallel()
	p := full(t).serve(t).keeper(t, resourceOne)
	p.waitText(".nav-server", "Ready")
	p.keep("resources/subscribe")
	p.click("Subscribe")
	p.kept("resources/subscribe", 1)
	p.click("Overview")
	p.waitText("h1", "Overview")
	p.do(chromedp.Navigate(p.url + "/" + resourceOne))
	p.click("Subscribe")
	p.kept("resources/subscribe", 2)
	p.release("resources/subscribe")
	p.waitFor(`$t.posted.filter((m) => m.method === 'resources/subscribe').length === 2 && $t.action('Unsubscribe')?.disabled === false`)
	if got, want := p.text(".actions .muted"), "Subscribed. Nothing has changed since."; got != want {
		t.Errorf("the page says %q, want %q", got, want)
	}
}

// TestUpdateInAnotherViewIsRead: an update that comes while another view is open is read
// on return.
func TestUpdateInAnotherViewIsRead(t *testing.T) {
	t.Parallel()
	s := full(t).serve(t)
	p := s.open(t, resourceOne)
	p.waitFor(`$t.standing === 1`)
	p.click("Subscribe")
	p.waitText(".actions", "Subscribed")
	p.click("Overview")
	p.waitText("h1", "Overview")
	s.updates(t, 1)
	p.openLog()
	p.waitText(".log-line", "resources/updated test://one")
	p.do(chromedp.Navigate(p.url + "/" + resourceOne))
	p.waitText(".output", "this is test://one of test")
}

// TestFailedListIsReadAgain: a list that failed is read once mcpx answers again.
func TestFailedListIsReadAgain(t *testing.T) {
	t.Parallel()
	s := full(t).serve(t)
	s.open(t, "").waitText(".nav-server", "Ready") // so that nothing else has it read again
	p := s.tab(t)
	p.script(keeping + `
		let failed = false;
		$change = (text, method) => {
			if (method !== 'tools/list' || failed) return text;
			failed = true;
			throw new TypeError('Failed to fetch');
		};`)
	p.do(chromedp.Navigate(p.url + "/#/default/demo/tools"))
	p.waitText(".items", "echo")
}

// TestHistoryKeepsLargeIntegers: integers beyond the precision of JavaScript keep their
// digits.
func TestHistoryKeepsLargeIntegers(t *testing.T) {
	t.Parallel()
	p := full(t).serve(t).tab(t)
	p.script(`localStorage.setItem('mcpx.history', '[{"at":1,"schema":"default","server":"demo","kind":"tools","name":"echo","arguments":{"n":9007199254740993},"outcome":"ok"}]')`)
	p.do(chromedp.Navigate(p.url + "/#/default/~history"))
	p.waitText(".history-args", `{"n":9007199254740993}`)
}

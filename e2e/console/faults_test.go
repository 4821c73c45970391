package console

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
)

// TestListColumnsAlign: the columns of a list are the same in every row.
func TestListColumnsAlign(t *testing.T) {
	t.Parallel()
	p := full(t, "-tools-file", testdata(t, "forms.json")).serve(t).open(t, "#/default/demo")
	p.waitText(".items", "everything")
	if got := value[int](p, `new Set($t.shown('.item-text').map((e) => Math.round(e.getBoundingClientRect().x))).size`); got != 1 {
		t.Errorf("the descriptions begin at %d places", got)
	}
}

// TestSolvedProblemsGo: the message of a list goes when an item is added.
func TestSolvedProblemsGo(t *testing.T) {
	t.Parallel()
	p := full(t).serve(t).open(t, "#/default/demo/tools/ask")
	p.waitFor(`$t.action('JSON')`)
	p.ask(`{"method": "elicitation/create", "params": {"message": "Which?", "requestedSchema": {"type": "object", "required": ["tags"], "properties": {"tags": {"type": "array", "minItems": 1, "items": {"type": "string"}}}}}}`)
	p.click("Accept")
	p.waitText("dialog .field-error", "At least 1 item")
	p.click("Add item")
	p.waitFor(`!$t.text('dialog').includes('At least 1 item')`)
	p.click("Decline")
	p.waitText(".output", "decline")
}

// TestDefaultsOfQuestions: the defaults of a server's question are values, and a constant is
// not a choice.
func TestDefaultsOfQuestions(t *testing.T) {
	t.Parallel()
	p := full(t).serve(t).open(t, "#/default/demo/tools/ask")
	p.waitFor(`$t.action('JSON')`)
	p.ask(`{"method": "elicitation/create", "params": {"message": "Deploy?", "requestedSchema": {"type": "object", "required": ["kind"], "properties": {` +
		`"env": {"type": "string", "default": "staging"}, "confirm": {"type": "boolean", "default": false}, "count": {"type": "integer", "default": 3}, "size": {"enum": ["s", "m"], "default": "m"}, "kind": {"const": "card"}}}}}`)
	p.waitText("dialog .fixed", "card")
	p.click("Accept")
	p.waitText(".output", `action: "accept"`)
	p.click("Raw JSON")
	for _, want := range []string{`\"env\":\"staging\"`, `\"confirm\":false`, `\"count\":3`, `\"size\":\"m\"`, `\"kind\":\"card\"`} {
		p.waitText(".output pre", want)
	}
}

// TestErrorsKeepTheirLines: the lines of an error stay lines.
func TestErrorsKeepTheirLines(t *testing.T) {
	t.Parallel()
	p := full(t).serve(t).open(t, "#/default/demo/tools/crash")
	p.fill("status", "3")
	p.fill("stderr", "first line\nsecond line")
	p.click("Run")
	p.waitText(".failure", "does not repeat it\nlast lines of its stderr:\n  first line")
}

// TestMarkdownIsShown: a resource in Markdown has headings, lists and links, and no markup
// of its own.
func TestMarkdownIsShown(t *testing.T) {
	t.Parallel()
	p := full(t).serve(t).open(t, "#/default/demo/tools/raw")
	const text = "# Title\n\nA **bold** word, `code` and <b>text</b>.\n\n- one\n- [two](https://example.com)\n- [bad](javascript:alert(1))\n\n```\nraw *text*\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
	p.fill("result", fmt.Sprintf(`{"content": [{"type": "resource", "resource": {"uri": "doc://x", "mimeType": "text/markdown", "text": %q}}]}`, text))
	p.click("Run")
	p.waitText(".markdown h3", "Title")
	p.waitFor(`$t.text('.markdown strong') === 'bold' && $t.shown('.markdown li').length === 3 && $t.shown('.markdown td').length === 2`)
	p.waitText(".markdown", "<b>text</b>")
	p.waitText(".markdown pre", "raw *text*")
	if got := value[string](p, `[...document.querySelectorAll('.markdown a')].map((a) => a.href).join(' ')`); got != "https://example.com/" {
		t.Errorf("the links are %s", got)
	}
	p.click("Source")
	p.waitText(".output pre", "# Title")
}

// manyServers makes the page believe that it has 100 servers with 10 tools each, of which
// the last three have failed.
const manyServers = `
const names = Array.from({ length: 100 }, (_, i) => 'server-' + String(i).padStart(2, '0'));
const state = (i) => (i < 97 ? { state: 'ready', startup_ms: i, tools: 10, tokens: 1000 + i, listed_at: '2026-01-01T00:00:00Z' } : { state: 'waiting', reason: 'exited with status ' + i, tools: 0, tokens: 0 });
const list = names.map((name, i) => ({ name, transport: i % 2 ? 'stdio' : 'http', description: 'number ' + i, prompts: 0, resources: 0, ...state(i) }));
const tools = names.slice(0, 97).flatMap((server) => Array.from({ length: 10 }, (_, i) => ({ name: server + '__tool_' + i, description: 'Does thing ' + i, inputSchema: { type: 'object' }, _meta: { 'mcpx/server': server, 'mcpx/name': 'tool_' + i } })));
const inner = window.fetch;
window.fetch = async (...request) => {
	const response = await inner(...request);
	if (request[0] === 'status') {
		const real = await response.json();
		return new Response(JSON.stringify({ ...real, schemas: { default: list } }), response);
	}
	if (!request[1]?.body?.includes('tools/list')) return response;
	const { id } = JSON.parse(request[1].body);
	return new Response(JSON.stringify({ jsonrpc: '2.0', id, result: { tools } }), { headers: { 'Content-Type': 'application/json' } });
};`

// TestManyServers: 100 servers with 1,000 tools can be sorted, filtered and searched, those
// that have failed come first, and nothing takes long.
func TestManyServers(t *testing.T) {
	t.Parallel()
	p := full(t).serve(t).tab(t)
	p.script(manyServers)
	p.do(chromedp.Navigate(p.url + "/#/default"))
	p.waitFor(`document.querySelectorAll('.servers tbody tr').length === 100`)
	rows := func() string {
		return value[string](p, `$t.shown('.servers .row-link').slice(0, 3).map((e) => e.innerText).join(' ')`)
	}
	if got := rows(); got != "server-97 server-98 server-99" {
		t.Errorf("first come %s, want those that have failed", got)
	}
	if got := value[string](p, `$t.shown('.nav-title, .nav-server').slice(0, 2).map((e) => e.innerText.replace(/\s+/g, ' ')).join(', ')`); !strings.HasPrefix(got, "Failed3, server-97") {
		t.Errorf("the sidebar begins with %s", got)
	}
	p.eval(`$t.shown('.servers .sort').find((b) => b.innerText.startsWith('Start-up')).click()`)
	if got := rows(); got != "server-96 server-95 server-94" {
		t.Errorf("the slowest are %s", got)
	}
	p.eval(`$t.shown('.chip').find((c) => c.innerText.startsWith('Failed')).click()`)
	p.waitFor(`$t.shown('.servers .row-link').length === 3`)
	p.eval(`$t.shown('.chip')[0].click()`)
	p.fill("Filter servers by name, description or reason", "status 98")
	p.waitFor(`$t.shown('.servers .row-link').length === 1`)
	if !value[bool](p, `document.activeElement.matches('.filters input')`) {
		t.Error("the filter has lost the focus")
	}
	before := p.worked()
	value[bool](p, `(async () => {
		const frame = () => new Promise((r) => requestAnimationFrame(() => setTimeout(r)));
		for (const hash of ['#/default/server-05', '#/default', '#/default/server-06/tools/tool_1', '#/default/~tokens', '#/default']) { location.hash = hash; await frame(); }
		const search = document.getElementById('search');
		for (const text of ['t', 'to', 'tool', 'tool_7']) { search.value = text; search.dispatchEvent(new Event('input')); await frame(); }
		return true;
	})()`)
	took := p.worked() - before
	if took < time.Millisecond || took > smooth {
		t.Errorf("five views and four searches took %s of CPU time, want at most %s", took, smooth)
	}
	p.forgive("404") // mcpx does not know these servers
	t.Logf("five views and four searches took %s of CPU time", took)
}

// smooth is the limit for nine changes of the page with many servers. It is CPU time, which
// other programs on the machine hardly change.
const smooth = 2 * time.Second

// worked is the CPU time that the page has used so far.
func (p *page) worked() time.Duration {
	p.t.Helper()
	if _, err := chromedp.Call(p.ctx, performance.Enable, performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks}); err != nil {
		p.t.Fatal(err)
	}
	got, err := chromedp.Call(p.ctx, performance.GetMetrics, cdp.Empty{})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, metric := range got.Metrics {
		if metric.Name == "TaskDuration" {
			return time.Duration(metric.Value * float64(time.Second))
		}
	}
	p.t.Fatal("the browser does not tell its CPU time")
	return 0
}

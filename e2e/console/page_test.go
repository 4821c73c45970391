package console

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/input"
	cdpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// chromium is the browser of all tests, started by the first.
type chromium struct {
	once   sync.Once
	ctx    context.Context
	reason string // why there is none
	end    []func()
}

var browser chromium

func (c *chromium) close() {
	for _, f := range c.end {
		f()
	}
}

// start starts the browser. Without one the test is skipped; .ci/run installs one where
// it can.
func (c *chromium) start(t *testing.T) {
	t.Helper()
	c.once.Do(func() {
		path := ""
		for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"} {
			if found, err := exec.LookPath(name); err == nil {
				path = found
				break
			}
		}
		if path == "" {
			c.reason = "no Chromium in the PATH; install it, on Debian with: apt-get install chromium"
			return
		}
		options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.Flag("disable-gpu", true), chromedp.Flag("force-color-profile", "srgb"),
			chromedp.WSURLReadTimeout(4*patience))
		if runtime.GOOS != "windows" && os.Geteuid() == 0 {
			options = append(options, chromedp.NoSandbox) // it refuses to run as root with one
		}
		allocator, endAllocator := chromedp.NewExecAllocator(context.Background(), options...)
		ctx, end := chromedp.NewContext(allocator)
		c.ctx, c.end = ctx, []func(){end, endAllocator}
		if err := chromedp.Do(ctx); err != nil {
			c.reason = "broken"
			t.Fatalf("%s does not start: %v", path, err)
		}
	})
	switch c.reason {
	case "":
	case "broken":
		t.Fatal("the browser did not start")
	default:
		t.Skip(c.reason)
	}
}

// page is a tab with the console, and its own storage.
type page struct {
	t   *testing.T
	ctx context.Context
	url string

	mu       sync.Mutex
	faults   []string // errors of the page
	forgiven string   // a text of errors that are allowed
}

// finders find elements by the text that a person reads.
const finders = `window.$t = {
	shown: (selector) => [...document.querySelectorAll(selector)].filter((e) => e.checkVisibility({visibilityProperty: true})),
	action: (text) => (document.querySelector('dialog[open]') ? $t.shown('dialog[open] button, dialog[open] a') : $t.shown('a, button, summary, .segments label, .check label'))
		.find((e) => [e.getAttribute('aria-label'), e.innerText.trim(), e.querySelector('.nav-name, .item-name, strong')?.innerText].includes(text)),
	press: (text) => { // if it is there, and nothing is before it
		const e = $t.action(text);
		e?.scrollIntoView({block: 'center', behavior: 'instant'});
		const r = e?.getBoundingClientRect();
		if (!r || e.disabled || !e.contains(document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2))) return false;
		e.focus();
		e.click();
		return true;
	},
	field: (name) => {
		const label = $t.shown('label').find((l) => (l.querySelector('.field-name')?.innerText ?? l.innerText) === name);
		return label?.control ?? $t.shown('input, select, textarea').find((e) => e.getAttribute('aria-label') === name);
	},
	message: (name) => $t.field(name)?.closest('.field').querySelector('.field-error:not([hidden])')?.innerText ?? '',
	session: '', // of the page
	posted: [], // messages
	streams: 0, standing: 0, ended: 0, // asked for, heard, given back
	text: (selector) => $t.shown(selector).map((e) => e.innerText).join('\n'),
};
const fetched = window.fetch;
window.fetch = async (...request) => {
	const [, options] = request;
	if (options?.body) $t.posted.push(JSON.parse(options.body));
	const isStream = options?.headers?.Accept && !options.method;
	if (isStream) {
		$t.streams++;
		options.signal.addEventListener('abort', () => $t.ended++);
	}
	const response = await fetched(...request);
	if (isStream && response.ok) $t.standing++;
	if (window.$hold && options?.body?.includes('"initialize"')) {
		delete window.$hold;
		await new Promise((resolve) => { $t.held = resolve; });
	}
	$t.session = response.headers.get('Mcp-Session-Id') ?? $t.session;
	return response;
};
addEventListener('securitypolicyviolation', (e) => console.error('policy violated: ' + e.violatedDirective + ' ' + e.blockedURI));`

// open opens the console at a route.
func (s *site) open(t *testing.T, route string) *page {
	t.Helper()
	p := s.tab(t)
	p.do(chromedp.Navigate(s.url + "/" + route))
	return p
}

// tab opens an empty page.
func (s *site) tab(t *testing.T) *page {
	t.Helper()
	ctx, end := chromedp.NewContext(browser.ctx, chromedp.WithNewBrowserContext())
	p := &page{t: t, ctx: ctx, url: s.url}
	messages, heard := chromedp.Console(ctx), make(chan struct{})
	go func() {
		defer close(heard)
		for m, err := range messages {
			if err != nil {
				return
			}
			p.hear(m)
		}
	}()
	t.Cleanup(func() {
		end()
		<-heard
		p.check()
	})
	p.script(finders)
	p.do(chromedp.EmulateViewport(1280, 860))
	return p
}

// script adds a script that runs before every page.
func (p *page) script(source string) {
	p.t.Helper()
	if _, err := chromedp.Call(p.ctx, cdpage.AddScriptToEvaluateOnNewDocument, cdpage.AddScriptToEvaluateOnNewDocumentParams{Source: source}); err != nil {
		p.t.Fatal(err)
	}
}

// hear records errors and warnings of the page.
func (p *page) hear(m chromedp.ConsoleMessage) {
	if m.Type != chromedp.ConsoleError && m.Type != chromedp.ConsoleWarning && !m.IsException() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, m.String()+" "+m.URL)
}

// check fails the test for recorded errors.
func (p *page) check() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, fault := range p.faults {
		if p.forgiven == "" || !strings.Contains(fault, p.forgiven) {
			p.t.Errorf("the page reports: %s", fault)
		}
	}
}

// forgive ignores errors with this text.
func (p *page) forgive(part string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forgiven = part
}

// do performs actions, which must succeed in time.
func (p *page) do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	result(p, chromedp.Steps(actions...))
}

// result is do for an action with a result.
func result[T any](p *page, action chromedp.Action[T]) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	r, err := chromedp.Run(ctx, action)
	if err != nil {
		last, stop := context.WithTimeout(p.ctx, patience/10)
		defer stop()
		text, _ := chromedp.Run(last, chromedp.Evaluate[string](`document.body.innerText`))
		p.t.Fatalf("%v; the page has:\n%s", err, text)
	}
	return r
}

// value evaluates an expression and awaits a promise.
func value[T any](p *page, expression string) T {
	p.t.Helper()
	return result(p, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// eval evaluates statements.
func (p *page) eval(statements string) {
	p.t.Helper()
	value[bool](p, `(() => { `+statements+`; return true; })()`)
}

// click waits for the element with this text or label and clicks it.
func (p *page) click(text string) {
	p.t.Helper()
	p.waitFor(fmt.Sprintf(`$t.press(%q)`, text))
}

// fill replaces the value of a field, as pasting does.
func (p *page) fill(name, value string) {
	p.t.Helper()
	p.waitFor(fmt.Sprintf(`$t.field(%q)`, name))
	p.eval(fmt.Sprintf(`const f = $t.field(%q); f.focus(); f.select?.()`, name))
	if _, err := chromedp.Call(p.ctx, input.InsertText, input.InsertTextParams{Text: value}); err != nil {
		p.t.Fatal(err)
	}
}

// choose chooses an option of a list by its text.
func (p *page) choose(name, option string) {
	p.t.Helper()
	p.waitFor(fmt.Sprintf(`$t.field(%q)`, name))
	p.eval(fmt.Sprintf(`const f = $t.field(%q); f.value = [...f.options].find((o) => o.text === %q).value; f.dispatchEvent(new Event('change', {bubbles: true}))`, name, option))
}

// keys types on the keyboard.
func (p *page) keys(text string, options ...chromedp.KeyOption) {
	p.t.Helper()
	p.do(chromedp.KeyEvent(text, options...))
}

// openLog opens the log by its shortcut.
func (p *page) openLog() {
	p.t.Helper()
	p.eval(`document.activeElement.blur()`)
	p.keys("l")
}

// press presses a letter key in one event, as a keyboard does, so that a shortcut gets no
// letter. KeyEvent sends two events.
func (p *page) press(letter string) {
	p.t.Helper()
	for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeKeyDown, input.DispatchKeyEventTypeKeyUp} {
		params := input.DispatchKeyEventParams{Type: kind, Key: letter}
		if kind == input.DispatchKeyEventTypeKeyDown {
			params.Text = letter
		}
		if _, err := chromedp.Call(p.ctx, input.DispatchKeyEvent, params); err != nil {
			p.t.Fatal(err)
		}
	}
}

// waitFor waits until an expression is true. That of chromedp needs eval, which the page
// forbids.
func (p *page) waitFor(expression string) {
	p.t.Helper()
	value[bool](p, fmt.Sprintf(`new Promise((resolve, reject) => {
		const end = Date.now() + %d;
		const look = () => (%s) ? resolve(true) : Date.now() > end ? reject(new Error(%q)) : setTimeout(look, 20);
		look();
	})`, (patience-patience/10).Milliseconds(), expression, "never true: "+expression))
}

// waitText waits until an element has a text.
func (p *page) waitText(selector, text string) {
	p.t.Helper()
	p.waitFor(fmt.Sprintf(`$t.text(%q).includes(%q)`, selector, text))
}

// text returns the visible text of the elements.
func (p *page) text(selector string) string {
	p.t.Helper()
	return value[string](p, fmt.Sprintf(`$t.text(%q)`, selector))
}

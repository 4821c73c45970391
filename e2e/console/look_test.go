package console

import (
	"context"
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// views are the main views, each with an element that shows it is there.
var views = []struct{ route, there string }{
	{"#/default", ".servers .ready"},
	{"#/default/demo", ".items"},
	{"#/default/demo/prompts", ".items"},
	{"#/default/demo/resources", ".items"},
	{"#/default/demo/tools/everything", ".panel"},
	{"#/default/demo/tools/fail", ".panel"},
	{"#/default/demo/prompts/needs", ".panel"},
	{"#/default/demo/templates/item%3A%2F%2F%7Bid%7D", ".panel"},
	{"#/default/demo/resources/test%3A%2F%2Fone", ".actions"},
	{"#/default/gone", ".trouble"},
	{"#/default/~tokens", ".compare"},
	{"#/default/~history", ".history"},
}

// visit opens every main view, with calls in the history and the log open.
func visit(t *testing.T, look func(p *page, route string), before ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	c := full(t, "-tools-file", testdata(t, "forms.json"))
	c["mcpServers"].(map[string]any)["gone"] = map[string]any{"command": "mcpx-no-such-program"}
	p := c.serve(t).open(t, "#/default/demo/tools/fail")
	p.do(before...)
	p.click("Run")
	p.waitText(".outcome", "Failed")
	p.click("Log")
	for _, v := range views {
		p.eval(fmt.Sprintf(`location.hash = %q`, v.route))
		p.waitFor(fmt.Sprintf(`$t.shown(%q).length > 0`, v.there))
		if v.there == ".panel" {
			p.eval(`for (const b of $t.shown('.panel .field button')) b.click(); $t.shown('.panel button[type=submit]')[0].click()`)
		}
		look(p, v.route)
	}
}

// TestViewsFitTheScreen: nothing is wider than the screen of a small phone or a desktop,
// and only the view scrolls.
func TestViewsFitTheScreen(t *testing.T) {
	t.Parallel()
	for _, width := range []int64{360, 1024} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			t.Parallel()
			fits(t, width)
		})
	}
}

func fits(t *testing.T, width int64) {
	t.Helper()
	visit(t, func(p *page, route string) {
		if tall := value[int](p, `document.scrollingElement.scrollHeight - innerHeight`); tall > 0 {
			t.Errorf("%s: the page scrolls by %d", route, tall)
		}
		wide := value[[]string](p, `[document.documentElement, document.body, document.getElementById('main')].filter((e) => e.scrollWidth > e.clientWidth)
			.map((e) => e.tagName + ' ' + e.scrollWidth + ': ' + [...e.querySelectorAll('*')].filter((c) => c.getBoundingClientRect().right > innerWidth && c.checkVisibility({visibilityProperty: true})).map((c) => c.tagName + '.' + c.className).slice(0, 5))`)
		if len(wide) > 0 {
			t.Errorf("%s: %v", route, wide)
		}
	}, chromedp.EmulateViewport(width, 740))
}

// accessible finds controls without names, duplicate IDs and text with low contrast.
const accessible = `(() => {
	const problems = [];
	const name = (e) => e.getAttribute('aria-label') || (e.getAttribute('aria-labelledby') ?? '').split(' ').map((id) => document.getElementById(id)?.textContent ?? '').join(' ').trim()
		|| [...e.labels ?? []].map((l) => l.textContent).join(' ').trim() || (e.matches('a, button, summary') ? e.textContent.trim() : '');
	for (const e of $t.shown('input, select, textarea, button, a, summary, progress')) if (!name(e)) problems.push('no name: ' + e.outerHTML.slice(0, 120));
	for (const e of $t.shown('fieldset')) if (!e.getAttribute('aria-label') && !e.querySelector('legend')?.textContent.trim()) problems.push('no legend: ' + e.outerHTML.slice(0, 120));
	for (const e of $t.shown('img')) if (!e.hasAttribute('alt')) problems.push('no alt');
	const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);
	for (const id of new Set(ids)) if (ids.indexOf(id) !== ids.lastIndexOf(id)) problems.push('id twice: ' + id);
	for (const e of document.querySelectorAll('[aria-describedby]')) for (const id of e.getAttribute('aria-describedby').split(' ')) if (!document.getElementById(id)) problems.push('no such description: ' + id);
	if ($t.shown('main h1').length !== 1) problems.push($t.shown('main h1').length + ' h1');
	const pen = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
	const rgba = (color) => { pen.clearRect(0, 0, 1, 1); pen.fillStyle = color; pen.fillRect(0, 0, 1, 1); const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255]; };
	const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
	const background = (e) => {
		const layers = [];
		for (let at = e; at; at = at.parentElement) { const c = rgba(getComputedStyle(at).backgroundColor); layers.push(c); if (c[3] === 1) break; }
		return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
	};
	const light = (c) => { const [r, g, b] = c.slice(0, 3).map((v) => (v /= 255, v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const seen = new Set();
	for (const e of $t.shown('body *')) {
		if (e.closest('.sr-only, .skip, :disabled, svg, option') || ![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
		const style = getComputedStyle(e), below = background(e), color = over(rgba(style.color), below);
		const [a, b] = [light(color), light(below)].sort((x, y) => y - x), ratio = (a + 0.05) / (b + 0.05);
		const key = e.className + style.color + below;
		if (ratio < 4.5 && !seen.has(key)) problems.push('contrast ' + ratio.toFixed(2) + ': ' + e.tagName + '.' + e.className + ' ' + style.color + ' on ' + below + ' "' + e.textContent.slice(0, 30) + '"');
		seen.add(key);
	}
	return problems;
})()`

// TestAccessible: every control has a name, and every text enough contrast in light and
// dark.
func TestAccessible(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"light", "dark"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			visit(t, func(p *page, route string) {
				for _, problem := range value[[]string](p, accessible) {
					t.Errorf("%s: %s", route, problem)
				}
			}, prefers("prefers-color-scheme", scheme))
		})
	}
}

// prefers emulates a preference of the system.
func prefers(feature, value string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: feature, Value: value}}})
		return err
	})
}

// TestThemeIsKept: the page uses the system's theme until another one is chosen, which
// is kept.
func TestThemeIsKept(t *testing.T) {
	t.Parallel()
	p := full(t).serve(t).open(t, "")
	isDark := func(want bool) {
		t.Helper()
		p.waitFor(fmt.Sprintf(`(parseInt(/\d+/.exec(getComputedStyle(document.body).backgroundColor)) < 64) === %t`, want))
	}
	isDark(false)
	p.do(prefers("prefers-color-scheme", "dark"))
	isDark(true)
	p.click("Theme: system. Change it")
	isDark(false)
	p.do(chromedp.Reload())
	isDark(false)
	p.click("Theme: light. Change it")
	p.do(prefers("prefers-color-scheme", "light"))
	isDark(true)
	p.click("Theme: dark. Change it")
	isDark(false)
}

// TestKeyboardIsEnough: everything up to a result works without a mouse.
func TestKeyboardIsEnough(t *testing.T) {
	t.Parallel()
	p := full(t).serve(t).open(t, "")
	p.waitText(".servers", "Ready")
	p.keys("?")
	p.waitText("dialog", "Keyboard shortcuts")
	p.keys(kb.Escape)
	p.waitFor(`!document.querySelector('dialog[open]')`)
	p.press("/")
	p.waitFor(`document.activeElement.id === 'search'`)
	p.keys("again")
	p.waitText(".nav-item", "echo")
	p.keys(kb.ArrowDown)
	p.waitFor(`document.activeElement.matches('.nav-item') && document.activeElement.matches(':focus-visible') && getComputedStyle(document.activeElement).outlineStyle === 'solid'`)
	p.keys(kb.Enter)
	p.waitText("h1", "echo")
	for range 40 { // the way from the search to the form
		if value[bool](p, `document.activeElement === $t.field('text')`) {
			break
		}
		p.keys(kb.Tab)
	}
	p.keys("typed")
	p.keys(kb.Enter, chromedp.KeyModifiers(chromedp.ModifierCtrl))
	p.waitText(".output", "typed")
	p.waitFor(`document.getElementById('live').textContent.startsWith('echo: Success')`)
	p.eval(`document.activeElement.blur(); location.hash = '#/default/demo'`)
	p.waitText(".items", "echo")
	p.eval(`document.querySelector('.items a').focus()`)
	p.keys(kb.ArrowDown + kb.ArrowDown + kb.ArrowUp)
	p.waitFor(`document.activeElement === document.querySelectorAll('.items a')[1]`)
	p.keys("l")
	p.waitFor(`document.getElementById('log').classList.contains('open')`)
}

// TestHostileTextNeverRuns: names and answers of an upstream are never run as code.
func TestHostileTextNeverRuns(t *testing.T) {
	t.Parallel()
	p := full(t, "-answers", testdata(t, "hostile.json")).serve(t).open(t, "")
	p.waitText(".servers", "Ready")
	p.click("demo")
	p.waitText(".items", `<img src=x`)
	p.eval(`$t.shown('.items a')[0].click()`)
	p.waitText("h1", `<img src=x`)
	p.waitText(".field-name", "__proto__")
	p.eval(`const f = $t.field('__proto__'); f.focus()`)
	p.keys("mine")
	p.click("Run")
	p.waitText(".output", "<script>")
	if !value[bool](p, `Object.hasOwn($t.posted.find((m) => m.method === 'tools/call').params.arguments, '__proto__')`) {
		t.Error("the argument __proto__ was not sent")
	}
	p.waitText(".output", "The browser cannot show this as image/png.")
	p.waitFor(`document.querySelector('.media img')?.complete`)
	bad := value[[]string](p, `[...document.querySelectorAll('a')].map((a) => a.getAttribute('href')).filter((u) => u && !/^(#|https?:)/.test(u))
		.concat([...document.querySelectorAll('main script, main iframe, main [onerror], main [onload], img[src="x"]')].map((e) => e.outerHTML))`)
	if len(bad) > 0 {
		t.Errorf("the page has %q", bad)
	}
	p.eval(`location.hash = '#/default/%3Cimg%20src%3Dx%20onerror%3D$bad()%3E/tools/%3Cscript%3E'`)
	p.waitText("main", "There is no server <img src=x")
	if value[bool](p, `'$bad' in window || 'polluted' in {}`) {
		t.Error("something of an upstream has run")
	}
}

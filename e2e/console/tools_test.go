package console

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestToolIsRun: clicking leads from the first page to a result, and wrong values are
// reported.
func TestToolIsRun(t *testing.T) {
	t.Parallel()
	p := full(t).serve(t).open(t, "")
	p.waitText(".servers", "Ready")
	p.click("demo")
	p.click("echo")
	p.click("Run")
	p.waitFor(`$t.message('text') === 'Required'`)
	if got := value[string](p, `document.activeElement.closest('.field').dataset.field`); got != "text" {
		t.Errorf("the focus is on the field %q, want the one that is wrong", got)
	}
	p.fill("text", "again ")
	p.fill("times", "0")
	p.click("Run")
	p.waitFor(`$t.message('times') === 'At least 1' && $t.message('text') === ''`)
	p.fill("times", "2.5")
	p.click("Run")
	p.waitFor(`$t.message('times') === 'Must be an integer'`)
	p.fill("times", "2")
	p.click("Run")
	p.waitText(".output", "again again")
	p.waitText(".outcome", "Success")
	p.click("Raw JSON")
	p.waitText(".output pre", `"content": [`)

	p.do(chromedp.Reload())
	p.waitText("h1", "echo")
	if got := value[string](p, `location.hash`); got != "#/default/demo/tools/echo" {
		t.Errorf("the address is %s", got)
	}
	p.eval(`history.back()`)
	p.waitText(".items", "echo")
}

// TestSendAnyway: values that look wrong can still be sent.
func TestSendAnyway(t *testing.T) {
	t.Parallel()
	p := full(t).serve(t).open(t, "#/default/demo/tools/echo")
	p.fill("times", "two")
	p.click("Run")
	p.waitFor(`$t.message('times') === 'Must be an integer'`)
	p.click("Send anyway")
	p.waitText(".outcome", "Tool error")
	p.waitText(".output", "arguments.text: required")
}

// TestFormSendsEveryKindOfField: each kind of field is sent as its JSON, and empty
// fields are left out.
func TestFormSendsEveryKindOfField(t *testing.T) {
	t.Parallel()
	p := full(t, "-tools-file", testdata(t, "forms.json")).serve(t).open(t, "#/default/demo/tools/everything")
	p.fill("name", "Abc")
	p.click("Run")
	p.waitFor(`$t.message('name') === 'Must match ^[a-z]+$' && $t.message('x') === 'Required' && $t.text('.field.invalid[data-field=agree]').includes('Required')`)

	p.fill("name", "abc")
	p.fill("x", "-1.5")
	p.click("False")
	p.click("Run")
	p.sent(`{"name":"abc","agree":false,"point":{"x":-1.5}}`)

	p.fill("count", "9")
	p.fill("ratio", "0.25")
	p.choose("color", "7")
	p.choose("kind", "fixed")
	p.eval(`const d = $t.field('day'); d.value = '2026-01-31'; d.dispatchEvent(new Event('input', {bubbles: true}))`)
	p.fill("mail", "me@example.com")
	p.fill("note", "two\nlines")
	for i, tag := range []string{"a", "b", "c"} {
		p.eval(`$t.shown('[data-field=tags] .button').at(-1).click()`)
		p.fill(fmt.Sprintf("tags %d", i+1), tag)
	}
	p.click("Move item 3 up")
	p.click("Remove item 1")
	p.click("tue")
	p.click("Set or remove filter")
	p.fill("depth", "2")
	p.choose("Kind of target", "By name")
	p.fill("title", "that one")
	p.click("Set or remove tree")
	p.fill("label", "root")
	p.eval(`$t.shown('[data-field=children] .button').at(-1).click()`)
	p.eval(`$t.shown('[data-field="children 1"] input')[0].focus()`)
	p.keys("leaf")
	p.click("Set or remove env")
	p.eval(`$t.shown('[data-field=env] .nested > .button').at(-1).click()`)
	p.fill("Property name", "KEY")
	p.fill("Value", "secret")
	p.fill("anything", `{"deep": [9007199254740993]}`)
	p.click("Run")
	p.sent(`{"name":"abc","count":9,"ratio":0.25,"agree":false,"color":7,"kind":"fixed","day":"2026-01-31","mail":"me@example.com",` +
		`"note":"two\nlines","tags":["c","b"],"days":["tue"],"point":{"x":-1.5},"filter":{"depth":2},"target":{"title":"that one"},` +
		`"tree":{"label":"root","children":[{"label":"leaf"}]},"env":{"KEY":"secret"},"anything":{"deep":[9007199254740993]}}`)
}

// sent compares the arguments that a tool returns as its result.
func (p *page) sent(want string) {
	p.t.Helper()
	p.waitFor(`$t.text('.result-head').includes('Success') && !$t.action('Running…')`)
	p.eval(`const b = $t.action('Raw JSON'); if (b.getAttribute('aria-pressed') === 'false') b.click()`)
	got := value[string](p, `JSON.parse($t.text('.output pre')).content[0].text`)
	if _, arguments, _ := strings.Cut(got, " "); arguments != want {
		p.t.Errorf("sent\n%s\nwant\n%s", arguments, want)
	}
}

// TestFormAndJSONAgree: the form and the JSON editor show the same arguments.
func TestFormAndJSONAgree(t *testing.T) {
	t.Parallel()
	p := full(t, "-tools-file", testdata(t, "forms.json")).serve(t).open(t, "#/default/demo/tools/everything")
	p.fill("name", "abc")
	p.fill("x", "1")
	p.click("True")
	p.click("JSON")
	if got := value[string](p, `JSON.stringify(JSON.parse(document.querySelector('.json-editor').value))`); got != `{"name":"abc","agree":true,"point":{"x":1}}` {
		t.Errorf("the JSON is %s", got)
	}
	p.fill("Arguments as JSON", `{"name": }`)
	p.click("Form")
	p.waitText(".json-edit .field-error", "Not valid JSON")
	p.fill("Arguments as JSON", `{"name": "def", "agree": true, "point": {"x": "no"}, "unknown": 12345678901234567890, "note": "", "target": {"id": 7}}`)
	p.click("Run")
	p.waitText(".json-edit .field-error", "point/x: Must be a number")
	p.click("Form")
	p.waitFor(`$t.field('name').value === 'def' && $t.field('id').value === '7'`)
	p.fill("x", "3")
	p.click("Run")
	p.sent(`{"unknown":12345678901234567890,"name":"def","agree":true,"note":"","point":{"x":3},"target":{"id":7}}`)
}

// TestResultsAreRendered: each type of content is rendered.
func TestResultsAreRendered(t *testing.T) {
	t.Parallel()
	p := full(t).serve(t).open(t, "#/default/demo/tools/raw")
	const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	const silence = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQEAAACAAA=="
	p.fill("result", `{"content": [`+
		`{"type": "text", "text": "plain <b>text</b>"},{"type": "text", "text": "{\"a\": [1, null]}"},`+
		`{"type": "image", "mimeType": "image/png", "data": "`+pixel+`"},{"type": "audio", "mimeType": "audio/wav", "data": "`+silence+`"},`+
		`{"type": "image", "mimeType": "text/html", "data": "PGI+"},`+
		`{"type": "resource_link", "uri": "test://one", "name": "The link"},{"type": "resource", "resource": {"uri": "r://embedded", "text": "inside"}},`+
		`{"type": "future", "x": 1}], "structuredContent": {"n": 9007199254740993}}`)
	p.click("Run")
	p.waitFor(`document.querySelector('.media img')?.naturalWidth === 1 && document.querySelector('.media audio')`)
	for _, want := range []string{"plain <b>text</b>", "9007199254740993", "r://embedded", "inside", "The link", "future", "3 B of binary data"} {
		if got := p.text(".output"); !strings.Contains(got, want) {
			t.Errorf("%q is not in the result:\n%s", want, got)
		}
	}
	p.click("The link")
	p.click("Read")
	p.waitText(".output", "this is test://one")
}

// TestErrorsAreDistinguished: a failed call and an error result look different.
func TestErrorsAreDistinguished(t *testing.T) {
	t.Parallel()
	p := full(t).serve(t).open(t, "#/default/demo/tools/fail")
	p.click("Run")
	p.waitText(".outcome", "Failed")
	p.waitText(".failure", "it did not work")
	p.waitText(".failure", "JSON-RPC error -32042")
	p.do(chromedp.Navigate(p.url + "/#/default/demo/tools/raw"))
	p.fill("result", `{"isError": true, "content": [{"type": "text", "text": "no such file"}]}`)
	p.click("Run")
	p.waitText(".outcome", "Tool error")
	p.waitText(".output", "no such file")
}

// TestProgressIsShown: a running call shows its progress and can be canceled.
func TestProgressIsShown(t *testing.T) {
	t.Parallel()
	p := full(t).serve(t).open(t, "#/default/demo/tools/progress")
	p.fill("steps", "1000")
	p.fill("every_ms", "20")
	p.click("Run")
	p.waitFor(`document.querySelector('progress')?.position > 0 && $t.text('.progress').includes('%')`)
	p.click("Cancel")
	p.waitText(".outcome", "Canceled")
	p.waitFor(`$t.action('Run')`)
	p.openLog()
	p.waitText(".log-line", "of 1000")
	p.do(chromedp.Navigate(p.url + "/#/default/demo/tools/heard"))
	p.waitText("h1", "heard")
	p.click("JSON")
	p.fill("Arguments as JSON", `{"method": "notifications/cancelled"}`)
	p.click("Run")
	p.waitText(".output .text", "1")
}

package console

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestPromptArguments: absent arguments are not sent, and missing required ones are
// reported before anything is sent.
func TestPromptArguments(t *testing.T) {
	t.Parallel()
	p := full(t).serve(t).open(t, "#/default/demo/prompts")
	p.click("plain")
	p.waitText(".panel", "takes no arguments")
	p.click("Get prompt")
	p.waitText(".output .role", "user")
	if got := p.text(".output .tree"); strings.Contains(got, "arguments") || !strings.Contains(got, `name: "plain"`) {
		t.Errorf("the server got\n%s\nwant no arguments", got)
	}
	if got := value[string](p, `JSON.stringify($t.posted.find((m) => m.method === 'prompts/get').params.arguments ?? 'none')`); got != `"none"` {
		t.Errorf("the page sent the arguments %s, want none", got)
	}
	p.do(chromedp.Navigate(p.url + "/#/default/demo/prompts/needs"))
	p.waitText("h1", "needs")
	p.click("Get prompt")
	p.waitFor(`$t.message('context') === 'Required'`)
	if got := p.text(".output"); !strings.Contains(got, "No result yet") {
		t.Errorf("something was sent: %s", got)
	}
	p.fill("style", "terse")
	p.fill("context", "de")
	p.waitFor(`[...$t.field('context').list.options].some((o) => o.value.includes('"argument":{"name":"context","value":"de"}') && o.value.includes('"context":{"arguments":{"style":"terse"}}'))`)
	p.click("Get prompt")
	p.waitText(".output .tree", `context: "de"`)
}

// TestResourceIsReadAndSubscribed: a resource can be read, and its changes are counted
// after Subscribe.
func TestResourceIsReadAndSubscribed(t *testing.T) {
	t.Parallel()
	s := full(t).serve(t)
	p := s.open(t, "#/default/demo/resources")
	p.click("one")
	p.click("Read")
	p.waitText(".output", "this is test://one of test")
	p.click("Subscribe")
	p.waitText(".actions", "Nothing has changed since")

	s.updates(t, 1)
	p.waitText(".actions", "1 update so far")
	p.click("Unsubscribe")
	p.waitFor(`$t.action('Subscribe') && $t.text('.actions .muted') === ''`)
}

// TestTemplateMakesURI: the URI to read is made from a template's variables.
func TestTemplateMakesURI(t *testing.T) {
	t.Parallel()
	p := full(t).serve(t).open(t, "#/default/demo/resources")
	p.click("item")
	p.click("Open")
	p.waitFor(`$t.message('id') === 'Required'`)
	p.fill("id", "a b")
	p.waitText(".uri", "item://a%20b")
	p.waitFor(`[...$t.field('id').list.options].some((o) => o.value.includes('"uri":"item://{id}"'))`)
	p.click("Open")
	p.click("Read")
	p.waitText(".output", "this is item://a%20b of test")
}

// ask makes the server send a request to the client.
func (p *page) ask(params string) {
	p.t.Helper()
	p.eval(`if (!$t.shown('.json-editor').length) $t.action('JSON').click()`)
	p.fill("Arguments as JSON", params)
	p.click("Run")
	p.waitFor(`document.querySelector('dialog[open]')`)
}

// TestElicitationAsksThePerson: a question from a server is a form or a link for the
// person.
func TestElicitationAsksThePerson(t *testing.T) {
	t.Parallel()
	p := full(t).serve(t).open(t, "#/default/demo/tools/ask")
	p.waitFor(`$t.action('JSON')`)
	const form = `{"method": "elicitation/create", "params": {"message": "Who are you?", "requestedSchema": {"type": "object", "required": ["mail"], "properties": ` +
		`{"mail": {"type": "string", "format": "email", "title": "E-mail"}, "age": {"type": "integer", "minimum": 18}, "plan": {"oneOf": [{"const": "f", "title": "Free"}, {"const": "p", "title": "Paid"}]}}}}}`
	p.ask(form)
	p.waitText("dialog", "Who are you?")
	p.waitText("dialog", "Asked by demo/ask")
	p.fill("age", "7")
	p.click("Accept")
	p.waitFor(`$t.message('E-mail') === 'Required' && $t.message('age') === 'At least 18'`)
	p.fill("E-mail", "me@example.com")
	p.fill("age", "70")
	p.choose("plan", "Paid")
	p.click("Accept")
	p.waitText(".output", `"me@example.com"`)
	p.waitText(".output", `plan: "p"`)
	p.waitText(".output", `action: "accept"`)

	p.ask(form)
	p.click("Decline")
	p.waitText(".output", `action: "decline"`)
	p.ask(form)
	p.keys("\x1b")
	p.waitText(".output", `action: "cancel"`)

	p.eval(`window.open = (url) => { window.$opened = url; }`)
	p.ask(`{"method": "elicitation/create", "params": {"mode": "url", "message": "Sign in", "url": "https://example.com/sign-in", "elicitationId": "1"}}`)
	p.waitText("dialog", "https://example.com/sign-in")
	p.keys("\r") // on its way to something else
	if value[bool](p, `'$opened' in window`) {
		t.Error("the page was opened without a click")
	}
	p.click("Open the page")
	p.waitText(".output", `action: "accept"`)
	if got := value[string](p, `$opened`); got != "https://example.com/sign-in" {
		t.Errorf("%s was opened", got)
	}
	p.ask(`{"method": "elicitation/create", "params": {"mode": "url", "message": "Sign in", "url": "javascript:alert(1)", "elicitationId": "2"}}`)
	p.waitText("dialog", "cannot be opened")
	p.waitFor(`!$t.action('Open the page')`)
	p.click("Decline")
	p.waitText(".output", `action: "decline"`)
}

// TestSamplingAsksThePerson: the person answers in place of a model, or declines.
func TestSamplingAsksThePerson(t *testing.T) {
	t.Parallel()
	p := full(t).serve(t).open(t, "#/default/demo/tools/ask")
	p.waitFor(`$t.action('JSON')`)
	const sampling = `{"method": "sampling/createMessage", "params": {"systemPrompt": "Be brief.", "maxTokens": 9, "messages": [{"role": "user", "content": {"type": "text", "text": "What is up?"}}]}}`
	p.ask(sampling)
	p.waitText("dialog", "Be brief.")
	p.waitText("dialog", "What is up?")
	p.click("Send")
	p.waitText("dialog", "Write an answer, or decline.")
	p.fill("Answer", "not much")
	p.click("Send")
	p.waitText(".output", `text: "not much"`)
	p.ask(sampling)
	p.click("Decline")
	p.waitText(".output", "User rejected sampling request")
}

// TestCanceledCallCancelsItsQuestion: the question of a canceled call disappears.
func TestCanceledCallCancelsItsQuestion(t *testing.T) {
	t.Parallel()
	p := full(t).serve(t).open(t, "#/default/demo/tools/ask")
	p.waitFor(`$t.action('JSON')`)
	p.ask(`{"method": "elicitation/create", "params": {"message": "Still there?"}}`)
	p.eval(`$t.shown('.panel .danger')[0].click()`) // behind the dialog
	p.waitFor(`!document.querySelector('dialog[open]')`)
	p.waitText(".outcome", "Canceled")
}

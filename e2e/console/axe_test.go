package console

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/chromedp/chromedp"
)

// axeSource returns axe-core. $MCPX_AXE names its file, axe.min.js of the npm package
// axe-core; without it the test is skipped.
func axeSource(t *testing.T) string {
	t.Helper()
	file := os.Getenv("MCPX_AXE")
	if file == "" {
		t.Skip("no axe-core; npm pack axe-core, and set MCPX_AXE to package/axe.min.js in it")
	}
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(source)
}

// unfolded opens the parts of a view that are folded.
const unfolded = `for (const d of $t.shown('main details')) d.open = true; for (const b of $t.shown('.history-actions button')) if (b.innerText === 'Result') b.click()`

// TestAxe: axe-core finds no serious problem in any view, light and dark.
func TestAxe(t *testing.T) {
	t.Parallel()
	source := axeSource(t)
	for _, scheme := range []string{"light", "dark"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			visit(t, func(p *page, route string) {
				p.eval(unfolded)
				for _, pane := range []string{"Messages", "stderr", "Events"} {
					p.click(pane)
					if pane == "Events" || route == views[0].route {
						p.axe(t, source, route+" with "+pane)
					}
				}
			}, prefers("prefers-color-scheme", scheme))
		})
	}
}

// TestAxeDialogs: axe-core finds no serious problem in a dialog, light and dark.
func TestAxeDialogs(t *testing.T) {
	t.Parallel()
	source := axeSource(t)
	c := full(t)
	c["server"] = map[string]any{"console": "edit"}
	s := c.serve(t, "MCPX_TOKEN="+token)
	p := s.tab(t)
	p.provideToken()
	p.do(chromedp.Navigate(s.url + "/#/default/demo"))
	p.waitText(".title", "Ready")
	for _, scheme := range []string{"light", "dark"} {
		p.do(prefers("prefers-color-scheme", scheme))
		for _, v := range []struct{ route, opens string }{
			{"#/default", "Keyboard shortcuts"}, {"#/default", "Add a server"}, {"#/default/demo", "Edit"}, {"#/default/demo", "Stop"}, {"#/default/demo", "Disable"},
		} {
			p.eval(fmt.Sprintf(`location.hash = %q`, v.route))
			p.click(v.opens)
			p.waitFor(`document.querySelector('dialog[open]')`)
			p.axe(t, source, v.opens+", "+scheme)
			p.eval(`document.querySelector('dialog[open]').close()`)
		}
	}
}

// axe runs axe-core and reports what is serious.
func (p *page) axe(t *testing.T, source, where string) {
	t.Helper()
	p.eval(`if (!window.axe) { ` + source + ` }`)
	var found []struct {
		ID, Impact, Help string
		Nodes            []string
	}
	text := value[string](p, `axe.run(document, {resultTypes: ['violations']}).then((r) => JSON.stringify(r.violations.map((v) => ({id: v.id, impact: v.impact, help: v.help, nodes: v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160))}))))`)
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		t.Fatal(err)
	}
	for _, v := range found {
		report := t.Errorf
		if v.Impact == "minor" || v.Impact == "moderate" {
			report = t.Logf
		}
		report("%s: %s (%s): %s", where, v.ID, v.Impact, fmt.Sprint(v.Help, " ", v.Nodes))
	}
}

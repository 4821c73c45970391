package console

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

// TestAxe: axe-core finds no serious problem in any view, light and dark. $MCPX_AXE names
// its file, axe.min.js of the npm package axe-core; without it the test is skipped.
func TestAxe(t *testing.T) {
	t.Parallel()
	file := os.Getenv("MCPX_AXE")
	if file == "" {
		t.Skip("no axe-core; npm pack axe-core, and set MCPX_AXE to package/axe.min.js in it")
	}
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, scheme := range []string{"light", "dark"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			visit(t, func(p *page, route string) {
				p.axe(t, string(source), route)
				p.eval(`document.getElementById('sidebar').querySelector('[aria-label="Keyboard shortcuts"]').click()`)
				p.axe(t, string(source), route+" with a dialog")
				p.eval(`document.querySelector('dialog[open]')?.close()`)
			}, prefers("prefers-color-scheme", scheme))
		})
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

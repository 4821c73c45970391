package console

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"mcpx/internal/mcptest"
)

// TestScreenshots: the views of the pictures in the docs work; with -screenshots the
// pictures are written.
func TestScreenshots(t *testing.T) {
	shown := func(name string, more map[string]any, flags ...string) map[string]any {
		u := mcptest.Upstream(t, append(flags, "-full", "-answers", testdata(t, name))...)
		for key, value := range more {
			u[key] = value
		}
		return u
	}
	s := config{"mcp_servers": []any{
		shown("issues.json", map[string]any{"name": "issues", "description": "issues, projects and comments"}, "-instructions", "Search before you create an issue."),
		shown("files.json", map[string]any{"name": "files", "description": "read and write the files of this project"}),
		shown("time.json", map[string]any{"name": "time", "description": "current time and time zones"}),
		map[string]any{"name": "browser", "command": "mcp-server-browser", "description": "drive a web browser"},
	}}.serve(t)
	p := s.open(t, "#/default")
	p.waitText(".servers", "Failed")
	p.waitFor(`document.querySelectorAll('.servers .state.ready').length === 3`)
	p.picture("overview")

	p.click("issues")
	p.waitText(".items", "create_issue")
	p.waitText(".about", "MCP 2025-11-25")
	p.eval(usualCommand)
	p.picture("server")
	p.click("create_issue")
	p.waitText(".panel", "Story points")
	p.fill("project", "WEB")
	p.fill("body", "1. Sign in, sign out\n2. Press the button again\n\nNothing happens; the log has a 403.")
	p.choose("priority", "high")
	p.fill("estimate", "40")
	p.click("Run")
	p.waitText(".field-error", "At most 13")
	p.do(chromedp.EmulateViewport(1280, 960))
	p.picture("form")
	p.do(chromedp.EmulateViewport(1280, 860))

	p.fill("title", "Sign-in button does nothing on the second visit")
	p.fill("estimate", "3")
	p.click("Run")
	p.waitText(".output", "WEB-482")
	p.waitFor(`(() => { const r = document.querySelector('.result-head').getBoundingClientRect(); return r.top >= 0 && r.bottom <= innerHeight; })()`) // beside the end of the form
	p.picture("result")

	p.click("Tokens")
	p.waitText(".saved", "less")
	p.picture("tokens")

	p.eval(`document.documentElement.dataset.theme = 'dark'`)
	p.do(chromedp.Navigate(s.url + "/#/default/issues/tools/create_issue"))
	p.waitText(".output", "WEB-482")
	p.picture("dark")

	p.eval(`delete document.documentElement.dataset.theme`)
	p.do(chromedp.EmulateViewport(390, 844, chromedp.EmulateScale(1.5)), chromedp.Navigate(s.url+"/#/default/issues"))
	p.waitText(".items", "create_issue")
	p.waitFor(`getComputedStyle(document.getElementById('sidebar')).visibility === 'hidden'`)
	p.waitText(".about", "MCP 2025-11-25")
	p.eval(usualCommand)
	p.picture("phone")
}

// usualCommand shows a command like those of people, not that of the test.
const usualCommand = `const [command, environment] = document.querySelectorAll('.about > div');
	command.querySelector('code').textContent = 'npx -y mcp-server-issues';
	environment.remove()`

// picture writes a picture of the page if the flag is set.
func (p *page) picture(name string) {
	p.t.Helper()
	if *screenshots == "" {
		return
	}
	p.eval(`document.activeElement.blur(); document.getElementById('main').scrollTop = 0`)
	png := result(p, chromedp.CaptureScreenshot())
	if err := os.WriteFile(filepath.Join(*screenshots, name+".png"), png, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

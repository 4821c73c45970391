package console

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"mcpx/internal/mcptest"
)

// TestSlowServerDelaysNobody: the lists of a ready server are there while another starts.
func TestSlowServerDelaysNobody(t *testing.T) {
	t.Parallel()
	p := servers(map[string]any{"fast": mcptest.Upstream(t, "-full"), "slow": mcptest.Upstream(t, "-silent", "initialize")}).serve(t).open(t, "#/default/fast")
	p.waitText(".items", "echo")
	p.waitFor(`[...document.querySelectorAll('.nav-server')].some((e) => e.innerText.includes('slow') && e.innerText.includes('Starting'))`)
	p.eval(`location.hash = '#/default/slow/tools/echo'`)
	p.waitText("main", "slow is starting")
	p.eval(`location.hash = '#/default/slow'`)
	p.waitText("main", "They appear when the server is ready.")
	if got := value[int](p, `$t.posted.filter((m) => m.method === 'tools/list').length`); got == 0 {
		t.Error("the list was not read")
	}
}

// TestServerPage: the page of a server shows how it runs, without secrets, and can stop and
// start it.
func TestServerPage(t *testing.T) {
	t.Parallel()
	upstream := mcptest.Upstream(t, "-full", "-instructions", "Ask twice.", "-stderr", "listening now", "-token", "sesame-open-1234")
	upstream["env"].(map[string]string)["API_KEY"] = "abracadabra-5678"
	p := servers(map[string]any{"demo": upstream, "off": map[string]any{"command": "x", "disabled": true}}).serve(t).open(t, "#/default/demo")
	p.waitText(".about", "MCP 2025-11-25")
	for _, want := range []string{"-instructions 'Ask twice.'", "-token '***'", "API_KEY=***", "mcptest 1", "Ask twice."} {
		p.waitText(".about", want)
	}
	p.click("Latest lines of stderr")
	p.waitText(".stderr-box", "listening now")
	if got := p.text("body"); strings.Contains(got, "sesame") || strings.Contains(got, "abracadabra") {
		t.Errorf("the page shows a secret:\n%s", got)
	}

	p.click("Stop")
	p.waitText("dialog", "Stop demo?")
	p.click("Stop it")
	p.waitText(".title", "Stopped")
	p.waitText(".trouble", "stopped in the console")
	p.click("Start")
	p.waitText(".title", "Ready")
	p.waitText(".items", "echo")
	p.click("Restart")
	p.waitText(".title", "Ready")

	p.eval(`location.hash = '#/default/off'`)
	p.waitText(".title", "Disabled")
	p.waitText(".trouble", "The config file disables this server.")
	if got := p.text(".title"); strings.Contains(got, "Enable") {
		t.Errorf("the page may not edit, but has %s", got)
	}
}

// TestAdviceIsShown: a server that fails shows what "mcpx check" advises.
func TestAdviceIsShown(t *testing.T) {
	t.Parallel()
	p := servers(map[string]any{"demo": mcptest.Upstream(t, "-exit", "3")}).serve(t).open(t, "#/default/demo")
	p.waitText(".trouble", "exited with status 3")
	p.waitText(".trouble", "What to do: run it yourself to see more:")
}

// TestTokensOfFailedServers: a server whose tools are not known has no bar, and the page
// says that it is not counted.
func TestTokensOfFailedServers(t *testing.T) {
	t.Parallel()
	p := servers(map[string]any{"demo": mcptest.Upstream(t), "gone": mcptest.Upstream(t, "-exit", "3")}).serve(t).open(t, "#/default/~tokens")
	p.waitText("main", "Not counted, because no tools are known: gone.")
	p.waitText(".bars", "demo")
	if got := p.text(".bars"); strings.Contains(got, "gone") {
		t.Errorf("bars: %s", got)
	}
}

// TestToolPage: the page of a tool shows what it costs and what the agent reads, and what a
// select leaves of a result.
func TestToolPage(t *testing.T) {
	t.Parallel()
	p := full(t).serve(t).open(t, "#/default/demo/tools/raw")
	p.waitText(".cost", "tokens in full")
	p.click("What the agent reads")
	p.waitText(".reading", "raw(result?: unknown): Answer with the given result")
	p.waitText(".reading", `"inputSchema":{`)
	p.click("Input schema")
	p.waitText(".more-about", `"properties": {`)
	p.fill("result", `{"content": [{"type": "image", "mimeType": "image/png", "data": "`+strings.Repeat("iVBORw0K", 500)+`"}], "structuredContent": {"rows": [{"id": 1, "text": "one"}, {"id": 2, "text": "two"}]}}`)
	p.click("Run")
	p.waitFor(`/ \d+ tokens and 1 file$/.test($t.text('.result-figures')) && !$t.text('.result-figures').includes('≈')`)
	p.click("Select a part of it")
	p.fill("Select", "id where text = two")
	p.click("Preview")
	p.waitText(".selector", `[{"id":2}]`)
	p.waitText(".selector", "tokens instead of")
	p.fill("Select", "id where")
	p.click("Preview")
	p.waitFor(`$t.text('.selector .field-error') !== ''`)
	p.forgive("422")
}

// TestSearchFindsRelatedTools: the search also finds what exec("mcpx", "search") finds, and
// servers.
func TestSearchFindsRelatedTools(t *testing.T) {
	t.Parallel()
	p := full(t).serve(t).open(t, "#/default")
	p.waitText(".servers", "Ready")
	p.fill("Search tools, prompts and resources of all servers", "please say the text again")
	p.waitText(".nav-list", "Related tools")
	p.waitText(".nav-item", "echo")
	p.fill("Search tools, prompts and resources of all servers", "demo")
	p.waitText(".nav-list", "1 server")
	p.fill("Search tools, prompts and resources of all servers", "xyzzy")
	p.waitText(".nav-list", "Nothing found")
}

// TestMessagesAreShown: the panel shows the messages of the page's session and of a server,
// without arguments that the schema marks as secret.
func TestMessagesAreShown(t *testing.T) {
	t.Parallel()
	p := full(t, "-answers", testdata(t, "secret.json")).serve(t).open(t, "#/default/demo/tools/login")
	p.fill("user", "me")
	p.fill("password", "hunter2")
	p.openLog()
	p.click("Messages")
	p.choose("Session", "demo")
	p.waitText(".log-lines", "appear here from now on")
	p.click("Run")
	p.waitText(".outcome", "Success")
	open := func() {
		t.Helper()
		p.waitFor(`$t.text('.log-lines').includes('tools/call') && $t.text('.log-lines').includes('result of tools/call')`)
		p.eval(`for (const d of $t.shown('.log-lines details')) d.open = true`)
		p.waitText(".log-lines pre", `"user": "me"`)
		if got := p.text(".log-lines"); strings.Contains(got, "hunter2") || !strings.Contains(got, "***") {
			t.Errorf("the messages are\n%s", got)
		}
	}
	open()
	p.choose("Session", "this page")
	open()
	p.fill("Filter the log", "prompts/list")
	p.waitFor(`$t.shown('.log-lines li').length > 0 && !$t.text('.log-lines').includes('tools/call')`)
}

// TestCommandWords: the dialog splits a command like a shell, and Windows paths survive.
func TestCommandWords(t *testing.T) {
	t.Parallel()
	p := full(t).serve(t).open(t, "health")
	p.forgive("favicon")
	for _, c := range []struct {
		name, line string
		want       []string
	}{
		{"plain", `uvx  mcp-server-time `, []string{"uvx", "mcp-server-time"}},
		{"quotes", `a "b c" 'd "e"' "" f"g 'h'"`, []string{"a", "b c", `d "e"`, "", "fg 'h'"}},
		{"escapes", `a\ b \"c\' d\\e`, []string{"a b", `"c'`, `d\e`}},
		{"escapes in double quotes", `"a\"b\\c\d\'"`, []string{`a"b\c\d\'`}},
		{"single quotes have no escapes", `'a\b\\c'`, []string{`a\b\\c`}},
		{"Windows path", `C:\tools\server.exe D:\data\`, []string{`C:\tools\server.exe`, `D:\data\`}},
		{"Windows path in double quotes", `"C:\Program Files\server.exe" --x`, []string{`C:\Program Files\server.exe`, "--x"}},
		{"share", `\\host\tools\a.exe "\\host\my tools" '\\host\b' \\?\C:\d`, []string{`\\host\tools\a.exe`, `\\host\my tools`, `\\host\b`, `\\?\C:\d`}},
	} {
		line, _ := json.Marshal(c.line)
		got := value[[]string](p, fmt.Sprintf(`(async () => (await import('/assets/views/edit.js')).words(%s))()`, line))
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %s is split into %q, want %q", c.name, c.line, got, c.want)
		}
	}
}

// TestConfigIsEdited: with "console": "edit" and a token, the page adds, changes, disables
// and enables a server in the config file.
func TestConfigIsEdited(t *testing.T) {
	t.Parallel()
	c, more := full(t), mcptest.Upstream(t)
	c["server"] = map[string]any{"console": "edit"}
	s := c.serve(t, "MCPX_TOKEN="+token)
	file := func() string {
		text, err := os.ReadFile(s.cmd.Args[1])
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	p := s.tab(t)
	p.provideToken()
	p.do(chromedp.Navigate(s.url + "/#/default"))
	p.waitText(".nav-server", "Ready")
	p.click("Add a server")
	p.fill("Name", "more")
	p.fill("Command or URL", "mcpx-no-such-program")
	p.click("Check and save")
	p.waitText("dialog .trouble", "was not found")
	if got := file(); strings.Contains(got, "mcpx-no-such-program") {
		t.Errorf("a server that fails was saved: %s", got)
	}
	p.fill("Command or URL", "'not closed")
	p.click("Check")
	p.waitText("dialog .field-error", "is not closed")
	p.waitFor(`!document.querySelector('dialog .trouble')`)
	env := ""
	for key, value := range more["env"].(map[string]string) {
		env += key + "=" + value + "\n"
	}
	p.fill("Command or URL", fmt.Sprintf("'%s' -full", more["command"]))
	p.fill("Environment or headers", env)
	p.fill("Description", "one more")
	p.click("Check and save")
	p.waitText("h1", "more")
	p.waitText(".title", "Ready")
	p.waitText(".items", "echo")

	p.click("Edit")
	p.fill("Hide these tools", "ec*")
	p.fill("Limit of a call in total", "never")
	p.click("Save")
	p.waitText("dialog .field-error", "max_timeout")
	p.fill("Limit of a call in total", "90s")
	p.click("Save")
	p.waitFor(`!$t.text('.items').includes('echo')`)
	if got := file(); !strings.Contains(got, `"ec*"`) || !strings.Contains(got, `"90s"`) {
		t.Errorf("the file is %s", got)
	}
	p.click("Disable")
	p.click("Disable it")
	p.waitText(".title", "Disabled")
	p.click("Enable")
	p.waitText(".title", "Ready")
	p.forgive("422")
}

package e2e

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"mcpx/internal/mcptest"
)

// forgery is a text that would start lines of its own and control a terminal if it were
// shown raw.
const forgery = "x\nFORGED\r\nFORGED\rFORGED\x1b[2J\x1b]0;FORGED\x07\u202eDEGROF\u2066\u200b\ufeff\u00ad\u0085FORGED\u009b31m\u2028FORGED\u2029FORGED\x7f\U000e0041"

// honest fails the test if a text has control or hidden characters, or a line that an
// upstream wrote.
func honest(t *testing.T, where, text string) {
	t.Helper()
	if !strings.Contains(text, "FORGED") {
		t.Errorf("%s does not even have the text: %s", where, clip(text))
	}
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "FORGED") {
			t.Errorf("%s has a forged line: %q", where, clip(text))
		}
		for _, r := range line {
			if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029' {
				t.Errorf("%s has %U in %q", where, r, clip(line))
				return
			}
		}
	}
}

// forger returns an upstream that sends the forgery in every field.
func forger(t *testing.T, flags ...string) map[string]any {
	t.Helper()
	tools := writeJSON(t, "tools.json", []any{
		map[string]any{"name": "tool " + forgery, "description": "does " + forgery, "inputSchema": map[string]any{
			"type": "object", "required": []string{"p" + forgery}, "properties": map[string]any{
				"p" + forgery: map[string]any{"enum": []string{forgery}, "description": forgery},
				"mode":        map[string]any{"type": forgery},
			},
		}},
		map[string]any{"name": "fails", "description": forgery},
	})
	answers := map[string]any{
		"tools/call fails": map[string]any{"error": map[string]any{"code": -32001, "message": forgery, "data": map[string]any{"k" + forgery: forgery}}},
	}
	return mcptest.Upstream(t, append([]string{"-tools-file", tools, "-instructions", forgery, "-stderr", forgery, "-answers", answersFile(t, answers)}, flags...)...)
}

// TestForgedLines: text of an upstream stays on its own line in listings, errors and the
// log, with control characters escaped.
func TestForgedLines(t *testing.T) {
	t.Parallel()
	described := forger(t)
	described["description"] = "from the config " + forgery
	refusing := mcptest.Upstream(t, "-answers", answersFile(t, map[string]any{"initialize": map[string]any{"error": map[string]any{"code": -32001, "message": forgery}}}))
	remote := map[string]any{"url": remoteUpstream(t, func(w http.ResponseWriter, _ *http.Request, _ string) {
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write([]byte(`{"error":{"message":` + quote(forgery) + `}}`))
	})}
	p := start(t, map[string]any{"mcpServers": map[string]any{
		"evil": described, "dies": mcptest.Upstream(t, "-stderr", forgery, "-exit", "1"), "refuses": refusing, "remote": remote,
	}}, options{flags: []string{"--log-level", "debug"}})
	p.initialize()
	honest(t, "inspect", p.inspect("evil", ""))
	honest(t, "inspect with a glob", p.inspect("evil", "tool*"))
	honest(t, "search", p.exec("mcpx", "search", `{"query":"does forged"}`))
	p.inspectError("refuses", "")
	honest(t, "servers", p.exec("mcpx", "servers", ""))
	honest(t, "an unknown tool", p.execError("evil", "too", "{}"))
	honest(t, "arguments that do not fit", p.text(`{"name":"exec","arguments":{"server_name":"evil","tool_name":`+quote("tool "+forgery)+`}}`, true))
	honest(t, "the upstream's own error", p.execError("evil", "fails", "{}"))
	honest(t, "a crash", p.execError("evil", "crash", `{"status":1,"stderr":`+quote(forgery)+`}`))
	honest(t, "a failed start", p.inspectError("dies", ""))
	honest(t, "a refused start", p.inspectError("refuses", ""))
	honest(t, "an HTTP error", p.execError("remote", "go", "{}"))
	tools := p.request("tools/list", "")
	var list struct {
		Tools []struct{ Description string }
	}
	if err := json.Unmarshal(tools.Result, &list); err != nil || len(list.Tools) != 2 {
		t.Fatalf("tools/list: %s, %v", tools.Result, err)
	}
	honest(t, "the directory", list.Tools[0].Description+list.Tools[1].Description)
	if definition := p.inspect("evil", "fails"); strings.Contains(definition, "\n") || !json.Valid([]byte(definition)) {
		t.Errorf("inspect of one tool is not one line of JSON: %q", definition)
	}
	p.stop()
	p.waitEnd(stopTime)
	honest(t, "the log", p.errors())
	logLine := regexp.MustCompile(`^\d\d:\d\d:\d\d (DBG|INF|WRN|ERR) |^$`)
	for line := range strings.SplitSeq(p.errors(), "\n") {
		if !logLine.MatchString(line) {
			t.Errorf("the log has the line %q", line)
		}
	}
}

// TestForgedLinesInCommands: so it does in the output of the commands.
func TestForgedLinesInCommands(t *testing.T) {
	t.Parallel()
	path := writeConfig(t, map[string]any{"mcpServers": map[string]any{"evil": forger(t), "dies": mcptest.Upstream(t, "-stderr", forgery, "-exit", "1")}})
	for _, args := range [][]string{
		{"inspect", path, "evil"},
		{"inspect", path, "dies"},
		{"exec", path, "evil", "fails"},
		{"exec", path, "evil", "tool " + forgery},
		{"exec", path, "evil", "crash", "status:=1", "stderr=FORGED\x1b[2J"},
		{"exec", path, "mcpx", "servers"},
		{"exec", path, "mcpx", "search", "query=does forged"},
	} {
		t.Run(strings.Join(args[2:], " "), func(t *testing.T) {
			t.Parallel()
			text, _ := combined(t, "", environment(t), binary, args...)
			if args[len(args)-1] == "servers" {
				text += " FORGED" // it need not show any
			}
			honest(t, "mcpx "+args[0]+" "+strings.Join(args[2:], " "), text)
		})
	}
}

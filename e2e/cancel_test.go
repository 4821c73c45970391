package e2e

import (
	"fmt"
	"regexp"
	"testing"

	"mcpx/internal/mcptest"
)

var reportedCancel = regexp.MustCompile(`canceled [0-9]+`)

// TestCanceledCallsAreNotAnswered cancels calls by IDs of several types: no call is
// answered, and the upstream is notified once per call. An ID of another type cancels
// nothing.
func TestCanceledCallsAreNotAnswered(t *testing.T) {
	t.Parallel()
	config := map[string]any{"mcpServers": map[string]any{"a": mcptest.Upstream(t, "-count-calls"), "slow": mcptest.Upstream(t, "-start-delay", "1h")}}
	p := start(t, config, options{flags: []string{"--log-level", "debug"}})
	p.initialize()
	running := []string{`1`, `-2`, `9007199254740993`, `"1"`, `"\u00e9\/"`}
	waiting := []string{`"inspect"`, `"exec"`} // for a server that starts
	for _, id := range running {
		p.send(id, "tools/call", execParams("a", "sleep", `{"ms":3600000,"text":"never read"}`))
	}
	p.send(waiting[0], "tools/call", inspectParams("slow", ""))
	p.send(waiting[1], "tools/call", execParams("slow", "echo", `{"text":"x"}`))
	p.send(`7`, "tools/call", execParams("a", "sleep", `{"ms":1500,"text":"kept"}`))
	p.underWay("a", len(running)+1)
	for _, params := range []string{`{"requestId":"7"}`, `{"requestId":7.0}`, `{"requestId":null}`, `{"id":7}`, `{"requestId":"nobody"}`} {
		p.notify("notifications/cancelled", params)
	}
	for _, id := range append(running, waiting...) {
		p.notify("notifications/cancelled", fmt.Sprintf(`{"requestId":%s,"reason":"test"}`, id))
	}
	if !p.wait(patience, func() bool { return len(reportedCancel.FindAllString(p.stderr.String(), -1)) >= len(running) }) {
		t.Errorf("the upstream was told of fewer than %d cancellations:\n%s", len(running), clip(p.errors()))
	}
	if got := textOf(t, string(p.answer(`7`).Result), false); got != "kept" {
		t.Errorf("got %q", got)
	}
	p.exec("a", "echo", `{"text":"later"}`)
	_ = p.stdin.Close()
	p.waitEnd(stopTime)
	for _, id := range append(running, waiting...) {
		if answers := p.answers[id]; len(answers) > 0 {
			t.Errorf("the canceled call %s was answered: %s%s", id, answers[0].Result, answers[0].Error)
		}
	}
	if n := len(reportedCancel.FindAllString(p.errors(), -1)); n != len(running) {
		t.Errorf("the upstream was told of %d cancellations, want %d", n, len(running))
	}
}

// TestCancelReachesUpstream: every method that is passed on can be canceled.
func TestCancelReachesUpstream(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ method, params, silent string }{
		{"prompts/get", `{"name":"one__plain"}`, "prompts/get"},
		{"resources/read", `{"uri":"test://one"}`, "resources/read"},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"one__choice"},"argument":{"name":"style","value":""}}`, "completion/complete"},
		{"tools/call", `{"name":"one__sleep","arguments":{"ms":3600000}}`, ""},
		{"resources/subscribe", `{"uri":"test://one"}`, "resources/subscribe"},
	} {
		t.Run(c.method, func(t *testing.T) {
			t.Parallel()
			p := start(t, flat(map[string]any{"one": mcptest.Upstream(t, "-full", "-silent", c.silent, "-report")}), options{flags: []string{"--log-level", "debug"}})
			p.initialize()
			p.result("prompts/list", "") // the upstream has started
			p.send(`"gone"`, c.method, c.params)
			p.waitStderr(`line="got ` + c.method)
			p.notify("notifications/cancelled", `{"requestId":"gone"}`)
			p.waitStderr(`line="canceled `)
			p.result("ping", "")
			_ = p.stdin.Close()
			p.waitEnd(stopTime)
			if answers := p.answers[`"gone"`]; len(answers) > 0 {
				t.Errorf("answered with %s%s", answers[0].Result, answers[0].Error)
			}
		})
	}
}

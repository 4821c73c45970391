package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

var heardCancel = regexp.MustCompile(`cancelled [0-9]+`)

// TestCancelledCallsAreNotAnswered cancels running calls with ids of several
// kinds: none is answered, not even later, and the upstream hears of each under
// an id of its own.
func TestCancelledCallsAreNotAnswered(t *testing.T) {
	t.Parallel()
	config := map[string]any{"mcpServers": map[string]any{"a": mcptest.Upstream(t, "-count-calls"), "slow": mcptest.Upstream(t, "-start-delay", "1h")}}
	p := start(t, config, options{flags: []string{"--log-level", "debug"}})
	p.initialize()
	all := []string{`1`, `-2`, `9007199254740993`, `"1"`, `"\u00e9\/"`}
	for _, id := range all {
		p.send(id, "tools/call", execParams("a", "sleep", `{"ms":3600000,"text":"never read"}`))
	}
	p.send(`"inspect"`, "tools/call", inspectParams("slow", ""))
	p.send(`"exec"`, "tools/call", execParams("slow", "echo", `{"text":"x"}`))
	p.send(`"kept"`, "tools/call", execParams("a", "sleep", `{"ms":1500,"text":"kept"}`))
	p.underWay("a", len(all)+1)
	for _, id := range append(all, `"inspect"`, `"exec"`) {
		p.notify("notifications/cancelled", fmt.Sprintf(`{"requestId":%s,"reason":"test"}`, id))
	}
	p.notify("notifications/cancelled", `{"requestId":"nobody"}`)
	if !p.wait(patience, func() bool { return len(heardCancel.FindAllString(p.stderr.String(), -1)) >= len(all) }) {
		t.Errorf("the upstream heard of fewer than %d cancellations:\n%s", len(all), clip(p.errors()))
	}
	if got := textOf(t, string(p.answer(`"kept"`).Result), false); got != "kept" {
		t.Errorf("got %q", got)
	}
	if got := p.exec("a", "echo", `{"text":"later"}`); got != "later" {
		t.Errorf("got %q", got)
	}
	_ = p.stdin.Close()
	p.waitEnd(stopTime)
	for _, id := range append(all, `"inspect"`, `"exec"`) {
		if answers := p.answers[id]; len(answers) > 0 {
			t.Errorf("the cancelled call %s was answered: %s%s", id, answers[0].Result, answers[0].Error)
		}
	}
	if n := len(heardCancel.FindAllString(p.errors(), -1)); n != len(all) {
		t.Errorf("the upstream heard of %d cancellations, want %d", n, len(all))
	}
}

// TestCancellationIsExact: an id of another type is another id.
func TestCancellationIsExact(t *testing.T) {
	t.Parallel()
	p := serve(t, map[string]any{"a": mcptest.Upstream(t)})
	p.initialize()
	p.send(`7`, "tools/call", execParams("a", "sleep", `{"ms":300,"text":"seven"}`))
	p.exec("a", "echo", `{"text":"the call is on its way"}`)
	p.notify("notifications/cancelled", `{"requestId":"7"}`)
	p.notify("notifications/cancelled", `{"requestId":7.0}`)
	p.notify("notifications/cancelled", `{"requestId":null}`)
	p.notify("notifications/cancelled", `{"id":7}`)
	if got := textOf(t, string(p.answer(`7`).Result), false); got != "seven" {
		t.Errorf("got %q", got)
	}
}

func TestCrashDuringCalls(t *testing.T) {
	t.Parallel()
	p := serve(t, map[string]any{"a": mcptest.Upstream(t, "-count-calls"), "b": mcptest.Upstream(t)})
	p.initialize()
	pid, other := p.exec("a", "pid", ""), p.exec("b", "pid", "")
	for i := range 20 {
		p.send(fmt.Sprint(i), "tools/call", execParams("a", "sleep", `{"ms":3600000}`))
	}
	p.send(`"other"`, "tools/call", execParams("b", "sleep", `{"ms":1000,"text":"unharmed"}`))
	p.underWay("a", 21)
	want := `server "a" stopped during the call: exited with status 7; whether the call took effect is unknown, and mcpx does not repeat it` +
		"\nlast lines of its stderr:\n  out of memory"
	if got := p.execError("a", "crash", `{"status":7,"stderr":"out of memory"}`); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for i := range 20 {
		if got := textOf(t, string(p.answer(fmt.Sprint(i)).Result), true); got != want {
			t.Errorf("call %d:\n%s\nwant\n%s", i, got, want)
		}
	}
	if again := p.exec("a", "pid", ""); again == pid {
		t.Error("the next call found the dead process")
	}
	if got := textOf(t, string(p.answer(`"other"`).Result), false); got != "unharmed" {
		t.Errorf("got %q", got)
	}
	if again := p.exec("b", "pid", ""); again != other {
		t.Error("the crash of one upstream cost another")
	}
}

// TestCrashBetweenCalls: the second death in a row makes the upstream wait; a
// call that comes a second later starts it again.
func TestCrashBetweenCalls(t *testing.T) {
	t.Parallel()
	some := mcptest.Upstream(t)
	some["tools"] = map[string]any{"allow": []string{"pid", "crash"}}
	p := serve(t, map[string]any{"a": some})
	p.initialize()
	first := p.exec("a", "pid", "")
	p.execError("a", "crash", `{}`)
	second := p.exec("a", "pid", "")
	want := regexp.MustCompile(`^server "a" is unavailable: exited with status 0; next try in [0-9]+s$`)
	up := func() {
		settled(t, "the next start", func() (string, bool) {
			result := p.result("tools/call", execParams("a", "pid", ""))
			return result, !strings.Contains(result, `"isError":true`)
		})
	}
	for try := range 20 {
		begin := time.Now()
		p.execError("a", "crash", `{}`)
		called := callText(p.result("tools/call", execParams("a", "pid", "")))
		listed := callText(p.result("tools/call", inspectParams("a", ""))) // what it had, with the reason
		isDown := want.MatchString(called) && strings.HasPrefix(listed, "a: 2 tools (waiting: exited with status 0)\ncrash(")
		if time.Since(begin) > 700*time.Millisecond && !isDown && try < 19 {
			up() // by then it may have started again
			continue
		}
		if !isDown {
			t.Errorf("right after the second death a call got %q and inspect %s", called, clip(listed))
		}
		break
	}
	up()
	if third := p.exec("a", "pid", ""); third == second || third == first {
		t.Error("the pid is an old one")
	}
}

// callText is the first text of a result, be it an error or not.
func callText(result string) string {
	var r struct{ Content []struct{ Text string } }
	if json.Unmarshal([]byte(result), &r) != nil || len(r.Content) == 0 {
		return result
	}
	return r.Content[0].Text
}

func TestTimeoutsAreNamed(t *testing.T) {
	t.Parallel()
	quick := mcptest.Upstream(t)
	quick["timeout"], quick["max_timeout"] = "5s", 11
	p := serve(t, map[string]any{"a": quick})
	p.initialize()
	pid := p.exec("a", "pid", "")
	for _, c := range []struct {
		name, tool, arguments, want string
	}{
		{"no progress", "sleep", `{"ms":3600000}`, `server "a": timed out: no answer and no progress within 5s (its "timeout"); the call was cancelled`},
		{"in all", "progress", `{"steps":100000,"every_ms":50}`, `server "a": timed out: no answer within 11s (its "max_timeout"); the call was cancelled`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := p.execError("a", c.tool, c.arguments); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
	if got := p.exec("a", "progress", `{"steps":7,"every_ms":1000}`); got != "7 steps" {
		t.Errorf("progress did not keep the call alive: %q", got)
	}
	if again := p.exec("a", "pid", ""); again != pid {
		t.Error("a timeout cost the session")
	}
	within(t, "two timeouts", time.Since(p.begin), patience)
}

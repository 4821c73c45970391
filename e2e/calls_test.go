package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// TestConcurrentCalls makes many calls at once, with IDs of every type, that end in
// another order than they began: each gets its own answer.
func TestConcurrentCalls(t *testing.T) {
	t.Parallel()
	p := serve(t, map[string]any{"a": mcptest.Upstream(t), "b": mcptest.Upstream(t)})
	p.initialize()
	const n = 500
	all := ids(n)
	for i, id := range all {
		server := []string{"a", "b"}[i%2]
		p.send(id, "tools/call", execParams(server, "sleep", fmt.Sprintf(`{"ms":%d,"text":"%s text of call %d"}`, (n-i)%50, server, i)))
	}
	for i, id := range all {
		m := p.answer(id)
		if want := fmt.Sprintf("%s text of call %d", []string{"a", "b"}[i%2], i); m.Error != nil || textOf(t, string(m.Result), false) != want {
			t.Errorf("call %d with id %s: %s%s, want the text %q", i, id, m.Result, m.Error, want)
		}
	}
}

// ids returns request IDs of every type, as they are written.
func ids(n int) []string {
	kinds := []string{
		`%d`, `-%d`, `9007199254740993%d`, `123456789012345678901234567890%d`, `"%d"`, `"call %d"`,
		`"\u00e9\n\"\\\/ %d"`, `"\ud83d\ude00 %d"`, `"日本 %d"`, `"-%d"`,
	}
	all := []string{`0`, `""`, `"0"`, `"null"`}
	for i := 1; len(all) < n; i++ {
		for _, kind := range kinds {
			all = append(all, fmt.Sprintf(kind, i))
		}
	}
	return all[:n]
}

// TestProgressOfConcurrentCalls: every progress notification arrives in order, with
// the client's own token, before the result.
func TestProgressOfConcurrentCalls(t *testing.T) {
	t.Parallel()
	const steps = 100
	for _, mode := range []string{"lazy", "flat"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			p := start(t, map[string]any{"expose": mode, "mcpServers": map[string]any{"a": mcptest.Upstream(t), "b": mcptest.Upstream(t)}}, options{})
			p.initialize()
			tokens := []string{`"token"`, `7`, `"7"`, `-1`, `9007199254740993`, `9007199254740992`, `"é\n"`, `""`, `0`, `"mcpx-1"`}
			want, got := map[string][]string{}, map[string][]string{}
			for i, token := range tokens {
				server := string("ab"[i%2])
				params := fmt.Sprintf(`{"name":"%s__progress","arguments":{"steps":%d}}`, server, steps)
				if mode == "lazy" {
					params = execParams(server, "progress", fmt.Sprintf(`{"steps":%d}`, steps))
				}
				p.send(fmt.Sprint(i), "tools/call", withToken(params, token))
				for n := range steps {
					want[token] = append(want[token], fmt.Sprintf(`{"progressToken":%s,"progress":%d,"total":%d}`, token, n+1, steps))
				}
				want[token] = append(want[token], "answer")
			}
			for i := range tokens {
				p.answer(fmt.Sprint(i))
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			for _, m := range p.all {
				if m.Method == "notifications/progress" {
					token := memberOf(m.Params, "progressToken")
					got[token] = append(got[token], string(m.Params))
				}
				var i int
				if m.Method == "" && json.Unmarshal(m.ID, &i) == nil && i < len(tokens) {
					got[tokens[i]] = append(got[tokens[i]], "answer")
				}
			}
			for token := range want {
				if strings.Join(got[token], "\n") != strings.Join(want[token], "\n") {
					t.Errorf("token %s got\n%s", token, clip(strings.Join(got[token], "\n")))
				}
			}
		})
	}
}

// withToken adds a progress token to the params of a request.
func withToken(params, token string) string {
	return strings.TrimSuffix(params, "}") + `,"_meta":{"progressToken":` + token + `}}`
}

// TestCrashDuringCalls: when an upstream dies, its calls fail with the reason and are
// not repeated, the next call starts it again, and the other upstream is not affected.
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
		t.Error("the crash of one upstream restarted another")
	}
}

// TestInitializeIsAnsweredFirst: a client may send everything in one write, without
// waiting for the answer to initialize.
func TestInitializeIsAnsweredFirst(t *testing.T) {
	t.Parallel()
	p := serve(t, map[string]any{"a": mcptest.Upstream(t)})
	p.write(strings.Join([]string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":` + execParams("a", "echo", `{"text":"at once"}`) + `}`,
	}, "\n"))
	if got := textOf(t, string(p.answer("3").Result), false); got != "at once" {
		t.Errorf("got %q", got)
	}
	if m := p.answer("2"); m.Error != nil {
		t.Errorf("tools/list: %s", m.Error)
	}
	if first, _, _ := strings.Cut(p.output(), "\n"); !strings.HasPrefix(first, `{"jsonrpc":"2.0","id":1,`) {
		t.Errorf("the first line is %s", clip(first))
	}
}

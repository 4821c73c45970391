package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// TestProgressOfConcurrentCalls: 100 notifications of each of 10 calls at once
// arrive under the client's own tokens, in order, none missing, before the result.
func TestProgressOfConcurrentCalls(t *testing.T) {
	t.Parallel()
	const calls, steps = 10, 100
	for _, mode := range []string{"lazy", "flat"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			p := start(t, map[string]any{"expose": mode, "mcpServers": map[string]any{"a": mcptest.Upstream(t), "b": mcptest.Upstream(t)}}, options{})
			p.initialize()
			tokens := []string{`"token"`, `7`, `"7"`, `-1`, `9007199254740993`, `9007199254740992`, `"é\n"`, `""`, `0`, `"mcpx-1"`}
			want := map[string][]string{}
			for i, token := range tokens[:calls] {
				server := string("ab"[i%2])
				params := fmt.Sprintf(`{"name":"%s__progress","arguments":{"steps":%d}`, server, steps)
				if mode == "lazy" {
					params = strings.TrimSuffix(execParams(server, "progress", fmt.Sprintf(`{"steps":%d}`, steps)), "}")
				}
				p.send(fmt.Sprint(i), "tools/call", fmt.Sprintf(`%s,"_meta":{"progressToken":%s}}`, params, token))
				for n := range steps {
					want[token] = append(want[token], fmt.Sprintf(`{"progressToken":%s,"progress":%d,"total":%d}`, token, n+1, steps))
				}
				want[token] = append(want[token], fmt.Sprintf("the answer to %d", i))
			}
			for i := range calls {
				p.answer(fmt.Sprint(i))
			}
			got := map[string][]string{}
			p.mu.Lock()
			defer p.mu.Unlock()
			for _, m := range p.all {
				var params struct {
					ProgressToken json.RawMessage `json:"progressToken"`
				}
				_ = json.Unmarshal(m.Params, &params)
				for i, token := range tokens {
					switch {
					case m.Method == "notifications/progress" && string(params.ProgressToken) == token:
						got[token] = append(got[token], string(m.Params))
					case m.Method == "" && string(m.ID) == fmt.Sprint(i):
						got[token] = append(got[token], "the answer to "+fmt.Sprint(i))
					}
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

// TestRelayedBytes has an upstream answer with results of every kind, in flat mode
// and for prompts and resources; they must come back byte for byte.
func TestRelayedBytes(t *testing.T) {
	t.Parallel()
	content := `{"type":"hologram","depth":3,"n":9007199254740993,"f":1.0,"e":1E+2,"s":"\u00e9\/<&>\ud83d\ude00","nested":[{"z":1,"a":null}]}`
	results := map[string]string{
		"tools/call":     `{"x-unknown":[1],"structuredContent":{"id":18446744073709551617},"content":[` + content + `],"_meta":{"a/b":1}}`,
		"prompts/get":    `{"messages":[{"role":"robot","content":` + content + `,"x":1}],"x-unknown":{"n":9007199254740993}}`,
		"resources/read": `{"contents":[{"uri":"test://one","x":` + content + `}],"_meta":{"n":9007199254740993}}`,
	}
	answers := map[string]any{}
	for method, result := range results {
		answers[method] = map[string]any{"result": json.RawMessage(result)}
	}
	p := start(t, flat(map[string]any{"one": mcptest.Upstream(t, "-full", "-answers", answersFile(t, answers))}), options{})
	p.initialize()
	for method, params := range map[string]string{
		"tools/call":     `{"name":"one__pid"}`,
		"prompts/get":    `{"name":"one__plain"}`,
		"resources/read": `{"uri":"test://one"}`,
	} {
		t.Run(method, func(t *testing.T) {
			want := compact(t, results[method]) // mcptest reads its answers with encoding/json
			if got := p.result(method, params); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// compact is JSON as json.Marshal writes what it does not decode.
func compact(t *testing.T, text string) string {
	t.Helper()
	b, err := json.Marshal(json.RawMessage(text))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestLargeContents is 8.2 of seed 001: 10 MiB in and out, in flat mode and through
// prompts/get and resources/read, with nothing cut.
func TestLargeContents(t *testing.T) {
	t.Parallel()
	const size = largeText
	p := start(t, flat(map[string]any{"one": mcptest.Upstream(t, "-full", "-name", "one")}), options{})
	p.initialize()
	if got := p.call("one__large", fmt.Sprintf(`{"bytes":%d}`, size)); got != large(size) {
		t.Errorf("tools/call: %d bytes came back, or others than were sent", len(got))
	}
	uri := fmt.Sprintf("item://large-%d", size)
	want := fmt.Sprintf(`{"contents":[{"uri":%q,"blob":"%s"}]}`, uri, strings.Repeat("QUJD", size/4))
	if got := p.result("resources/read", fmt.Sprintf(`{"uri":%q}`, uri)); got != want {
		t.Errorf("resources/read: %d bytes, want %d, or others", len(got), len(want))
	}
	style := strings.Repeat("ü", size/2)
	arguments := fmt.Sprintf(`{"arguments":{"style":"%s"},"name":"choice"}`, style)
	want = fmt.Sprintf(`{"messages":[{"role":"user","content":{"type":"text","text":%s}}],"x-kept":true}`, quote(arguments))
	if got := p.result("prompts/get", fmt.Sprintf(`{"name":"one__choice","arguments":{"style":"%s"}}`, style)); got != want {
		t.Errorf("prompts/get: %d bytes, want %d, or others", len(got), len(want))
	}
}

// TestRelayedRequestsAreCancelled: the upstream hears of it, and no answer comes.
func TestRelayedRequestsAreCancelled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ method, params string }{
		{"prompts/get", `{"name":"one__plain"}`},
		{"resources/read", `{"uri":"test://one"}`},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"one__choice"},"argument":{"name":"style","value":""}}`},
		{"tools/call", `{"name":"one__sleep","arguments":{"ms":3600000}}`},
		{"resources/subscribe", `{"uri":"test://one"}`},
	} {
		t.Run(c.method, func(t *testing.T) {
			t.Parallel()
			silent := c.method
			if c.method == "tools/call" {
				silent = ""
			}
			p := start(t, flat(map[string]any{"one": mcptest.Upstream(t, "-full", "-silent", silent, "-report")}), options{flags: []string{"--log-level", "debug"}})
			p.initialize()
			p.result("prompts/list", "") // the upstream has started
			p.send(`"gone"`, c.method, c.params)
			p.waitStderr(`line="got ` + c.method)
			p.notify("notifications/cancelled", `{"requestId":"gone"}`)
			p.waitStderr(`line="cancelled `)
			p.result("ping", "")
			_ = p.stdin.Close()
			p.waitEnd(stopTime)
			if answers := p.answers[`"gone"`]; len(answers) > 0 {
				t.Errorf("answered with %s%s", answers[0].Result, answers[0].Error)
			}
		})
	}
}

// TestSubscriptionsSurviveACrash: the new process is subscribed to what the old one
// was, and to nothing that was unsubscribed.
func TestSubscriptionsSurviveACrash(t *testing.T) {
	t.Parallel()
	p := start(t, map[string]any{"mcpServers": map[string]any{"one": mcptest.Upstream(t, "-full", "-name", "x")}}, options{flags: []string{"--log-level", "debug"}})
	p.initialize()
	p.result("resources/subscribe", `{"uri":"test://one"}`)
	p.result("resources/subscribe", `{"uri":"own://x"}`)
	p.result("resources/unsubscribe", `{"uri":"own://x"}`)
	p.waitStderr(`line="resources/unsubscribe own://x"`)
	p.execError("one", "crash", `{"status":1}`)
	p.exec("one", "pid", "")
	p.waitStderrCount(`line="resources/subscribe test://one"`, 2)
	p.exec("one", "say", `{"method":"notifications/resources/updated","params":[{"uri":"test://one"},{"uri":"own://x"}]}`)
	p.exec("one", "pid", "")
	got := p.told("notifications/resources/updated")
	if want := `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"test://one"}}`; len(got) != 1 || got[0].line != want {
		t.Errorf("told %v, want only %s", got, want)
	}
	if n := p.stderrCount(`line="resources/subscribe test://one"`); n != 2 {
		t.Errorf("the upstreams were asked %d times, want once each", n)
	}
	if n := p.stderrCount(`line="resources/subscribe own://x"`); n != 1 {
		t.Errorf("what was unsubscribed was asked for %d times, want 1", n)
	}
}

// TestFlatWaitsForSlowUpstreams: tools/list in flat mode waits for the first start,
// 10 s at most; who comes later is announced.
func TestFlatWaitsForSlowUpstreams(t *testing.T) {
	t.Parallel()
	p := start(t, flat(map[string]any{
		"quick": mcptest.Upstream(t), "slow": mcptest.Upstream(t, "-start-delay", "2s"),
		"late": mcptest.Upstream(t, "-start-delay", "20s"), "dead": mcptest.Upstream(t, "-exit", "1"),
	}), options{})
	p.initialize()
	begin := time.Now()
	p.send(`"list"`, "tools/list", "")
	p.result("ping", "")
	got := string(p.answer(`"list"`).Result)
	within(t, "tools/list", time.Since(begin), 15*time.Second)
	p.mu.Lock()
	if last := p.order[len(p.order)-1]; string(last.ID) != `"list"` {
		t.Errorf("%s was answered after the list, which alone waits", last.ID)
	}
	p.mu.Unlock()
	for name, want := range map[string]bool{"quick__echo": true, "slow__echo": true, "late__echo": false, "dead__echo": false} {
		if strings.Contains(got, `"`+name+`"`) != want {
			t.Errorf("after %s the list has %s: %t, want %t", time.Since(begin), name, !want, want)
		}
	}
	p.until("tools", `"late__echo"`)
	if got := p.call("late__echo", `{"text":"here"}`); got != "here" {
		t.Errorf("got %q", got)
	}
}

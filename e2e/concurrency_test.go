package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// ids are request ids of every kind, as they are written.
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

// TestConcurrentCalls has every call wait for a while of its own, so that the
// answers come in another order than the calls; each must have its own text.
func TestConcurrentCalls(t *testing.T) {
	t.Parallel()
	for _, n := range []int{10, 64, 500} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			p := serve(t, map[string]any{"a": mcptest.Upstream(t), "b": mcptest.Upstream(t)})
			p.initialize()
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
		})
	}
}

// TestCallsOverlap starts calls that each take as long as all of them may take
// together.
func TestCallsOverlap(t *testing.T) {
	t.Parallel()
	p := serve(t, map[string]any{"a": mcptest.Upstream(t)})
	p.initialize()
	p.exec("a", "pid", "")
	var sent []string
	for range 64 {
		sent = append(sent, p.nextID())
		p.send(sent[len(sent)-1], "tools/call", execParams("a", "sleep", `{"ms":3600000,"text":"late"}`))
	}
	if got := p.exec("a", "echo", `{"text":"quick"}`); got != "quick" {
		t.Errorf("got %q", got)
	}
	p.result("tools/list", "")
	p.result("ping", "")
	for _, id := range sent {
		p.notify("notifications/cancelled", fmt.Sprintf(`{"requestId":%s}`, id))
	}
}

// TestIDsOfEveryMethod looks at answers and errors of methods that take
// different ways through mcpx.
func TestIDsOfEveryMethod(t *testing.T) {
	t.Parallel()
	p := serve(t, map[string]any{"a": mcptest.Upstream(t)})
	for i, r := range []struct{ method, params string }{
		{"initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}`},
		{"ping", ""},
		{"tools/list", ""},
		{"tools/call", inspectParams("a", "")},
		{"tools/call", execParams("a", "echo", `{"text":"x"}`)},
		{"tools/call", execParams("a", "fail", `{}`)},
		{"tools/call", `{"name":"nothing"}`},
		{"no/such/method", ""},
		{"logging/setLevel", `{"level":"info"}`},
		{"shutdown", ""},
	} {
		for _, kind := range []string{`%d`, `-%d`, `9007199254740993%d`, `"%d"`, `"\u00e9\/\n%d"`} {
			id := fmt.Sprintf(kind, i+1)
			p.send(id, r.method, r.params)
			p.answer(id)
		}
	}
}

func TestSamePidOverManyCalls(t *testing.T) {
	t.Parallel()
	p := serve(t, map[string]any{"a": mcptest.Upstream(t)})
	p.initialize()
	first := p.exec("a", "pid", "")
	for range 1000 {
		if got := p.exec("a", "pid", ""); got != first {
			t.Fatalf("the upstream's pid went from %s to %s", first, got)
		}
	}
}

// TestEverythingInOneWrite: some clients send all they have and do not wait
// for the answer to initialize.
func TestEverythingInOneWrite(t *testing.T) {
	t.Parallel()
	p := serve(t, map[string]any{"a": mcptest.Upstream(t)})
	lines := []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":` + execParams("a", "echo", `{"text":"at once"}`) + `}`,
	}
	p.write(strings.Join(lines, "\n"))
	if got := textOf(t, string(p.answer("3").Result), false); got != "at once" {
		t.Errorf("got %q", got)
	}
	if m := p.answer("2"); m.Error != nil {
		t.Errorf("tools/list: %s", m.Error)
	}
	// The answer to initialize is the first line, whatever else was sent.
	if first, _, _ := strings.Cut(p.output(), "\n"); !strings.HasPrefix(first, `{"jsonrpc":"2.0","id":1,`) {
		t.Errorf("the first line is %s", clip(first))
	}
}

func TestProtocolVersions(t *testing.T) {
	t.Parallel()
	p := serve(t, map[string]any{"a": mcptest.Upstream(t)})
	supported := []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}
	for _, version := range append(slices.Clone(supported), "2025-12-01", "2099-01-01") {
		want := version
		if !slices.Contains(supported, version) {
			want = "2025-11-25"
		}
		got := p.result("initialize", fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}`, version))
		if !strings.Contains(got, fmt.Sprintf(`"protocolVersion":%q`, want)) || !strings.Contains(got, `"serverInfo":{"name":"mcpx"`) {
			t.Errorf("initialize with %s: %s", version, got)
		}
	}
}

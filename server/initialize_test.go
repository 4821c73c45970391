package server

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"mcpx/internal/rawjson"
)

// TestLazyInstructions: every server is named while there is room. Then the text says
// how many are left out, and where they are listed.
func TestLazyInstructions(t *testing.T) {
	var names []string
	for i := range 200 {
		names = append(names, fmt.Sprintf("server number %d", i))
	}
	long := strings.Repeat("日", 64)
	for _, c := range []struct {
		names []string
		want  []string
	}{
		{nil, []string{"inspect(server_name)", "search"}},
		{[]string{"time", "日本"}, []string{"time, 日本. ", "inspect(server_name)", "exec", `"search"`}},
		{names, []string{"server number 0, server number 1, ", ` more, which inspect("mcpx") lists`, `"search"`}},
		{[]string{long, long, long, long, long, long, long, long, long, long, long, long, long, long, long}, []string{long, "more"}},
	} {
		got := lazyInstructions(named("", c.names...))
		if n := utf8.RuneCountInString(got); n > instructionsLimit {
			t.Errorf("%d servers: %d characters", len(c.names), n)
		}
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%d servers: %q is missing in %s", len(c.names), want, got)
			}
		}
	}
	left := strings.Count(lazyInstructions(named("", names...)), "server number")
	if want := fmt.Sprintf(" and %d more", len(names)-left); !strings.Contains(lazyInstructions(named("", names...)), want) {
		t.Errorf("%d servers are named, but it does not say%s", left, want)
	}
}

// TestFlatInstructions: flat mode repeats the upstreams' instructions, each within its
// share. A transparent proxy has those of its upstream unchanged.
func TestFlatInstructions(t *testing.T) {
	long := strings.Repeat("Use this server for everything. ", 100)
	b := flat(t, map[string]any{}, newUpstream(t, "a", "-instructions", "\n  Say\n  hello first."), newUpstream(t, "b", "-instructions", long), newUpstream(t, "c"))
	for _, name := range []string{"a", "b", "c"} {
		if _, err := b.registry.For(nil).Ready(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	got := b.instructions(newClient("one", nil))
	lines := strings.Split(got, "\n")
	if len(lines) != 3 || lines[0] != "a: Say hello first." || !strings.HasPrefix(lines[1], "b: Use this server") || lines[2] != "c" {
		t.Errorf("got %s", got)
	}
	if n := utf8.RuneCountInString(got); n > instructionsLimit || utf8.RuneCountInString(lines[1]) < instructionsLimit/4 {
		t.Errorf("%d characters", n)
	}
	if none := flat(t, map[string]any{"prefix": false}); none.instructions(newClient("one", nil)) != "" {
		t.Errorf("without servers: %q", none.instructions(newClient("one", nil)))
	}
	single := flat(t, map[string]any{"prefix": false}, newUpstream(t, "a", "-instructions", long))
	if _, err := single.registry.For(nil).Ready(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	hello := single.ask(t, request("initialize", `{"protocolVersion":"2025-06-18"}`))
	if text, _ := rawjson.String(rawjson.Get(rawjson.Get([]byte(hello), "result"), "instructions")); text != long {
		t.Errorf("a transparent proxy says %s", hello)
	}
}

// TestAlwaysLoad: both tools ask to be loaded at once, unless the config says
// otherwise. A model sees no difference.
func TestAlwaysLoad(t *testing.T) {
	const meta = `,"_meta":{"anthropic/alwaysLoad":true}`
	upstreams := named("", "a")
	loaded, deferred := string(lazyTools(upstreams, alwaysLoad)), string(lazyTools(upstreams, ""))
	if strings.Count(loaded, meta) != 2 || strings.ReplaceAll(loaded, meta, "") != deferred {
		t.Errorf("got %s", loaded)
	}
}

package registry

import (
	"testing"

	"mcpx/internal/mcptest"
	"mcpx/internal/policy"
	"mcpx/internal/policy/policytest"
	"mcpx/registry/live"
	"mcpx/registry/upstream"
)

// TestViews: a view has what the rules grant. It is made once for each change of the
// catalog, and costs a client that sees everything nothing.
func TestViews(t *testing.T) {
	r, l := run(t, map[string]any{"a": mcptest.Upstream(t, "-full", "-instructions", "Use everything.", "-stderr", "tool t9 failed"), "b": mcptest.Upstream(t)})
	for _, name := range []string{"a", "b"} {
		if _, err := r.For(nil).Ready(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	l.wait(t, "tool t9 failed")
	as := func(rules policy.Rules) upstream.Client {
		c := recorderOf("1", "ann")
		c.caller.Rules = rules
		return c
	}
	for _, row := range []struct {
		name                      string
		rules                     policy.Rules
		upstreams, tools, prompts int // tools and prompts of a
		instructions              string
	}{
		{"everything", nil, 2, len(r.Catalog().Upstream("a").Tools), 3, "Use everything."},
		{"a profile", policytest.Allow("default"), 2, len(r.Catalog().Upstream("a").Tools), 3, "Use everything."},
		{"a server", policytest.Allow("default/a"), 1, len(r.Catalog().Upstream("a").Tools), 3, "Use everything."},
		{"two tools", policytest.Allow("*/a/echo", "*/a/pid"), 1, 2, 0, ""},
		{"read only", &policytest.Rules{ReadOnly: []string{"*/a"}}, 1, 0, 3, ""},
	} {
		seen := r.For(as(row.rules))
		c := seen.Catalog()
		a := c.Upstream("a")
		if len(c.Upstreams) != row.upstreams || len(a.Tools) != row.tools || len(a.Prompts) != row.prompts || a.Instructions != row.instructions || a.Has("resources") != (row.prompts > 0) {
			t.Errorf("%s: %d upstreams, %d tools, %d prompts, %q", row.name, len(c.Upstreams), len(a.Tools), len(a.Prompts), a.Instructions)
		}
		if n := len(a.LatestStderr()); (n > 0) != (row.instructions != "") {
			t.Errorf("%s: %d lines of stderr", row.name, n)
		}
		if again := seen.Catalog(); again != c {
			t.Errorf("%s: made again", row.name)
		}
		if u, err := seen.Ready(t.Context(), "b"); (err == nil) != (row.upstreams == 2) || err == nil && u.Name != "b" {
			t.Errorf("%s: b is %v, %v", row.name, u, err)
		}
		if row.tools < len(r.Catalog().Upstream("a").Tools) && a.Tokens() >= r.Catalog().Upstream("a").Tokens() {
			t.Errorf("%s: %d tokens", row.name, a.Tokens())
		}
	}
	for name, c := range map[string]upstream.Client{"no client": nil, "no caller": newRecorder("1"), "no rules": recorderOf("1", "ann")} {
		if n := testing.AllocsPerRun(100, func() { _ = r.For(c).Catalog().Upstream("a") }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// TestViewsAreKept: what a caller sees of an upstream stays the same value until the upstream
// changes.
func TestViewsAreKept(t *testing.T) {
	r, _ := run(t, map[string]any{"a": mcptest.Upstream(t), "b": mcptest.Upstream(t)})
	for _, name := range []string{"a", "b"} {
		if _, err := r.For(nil).Ready(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	c := recorderOf("1", "ann")
	c.caller.Rules = policytest.Allow("default/*/echo")
	before := r.For(c).Catalog()
	r.Publish(r.Catalog().Upstream("b").Supervisor, func(u *live.Upstream) { u.Description = "new" })
	after := r.For(c).Catalog()
	if after.Upstream("a") != before.Upstream("a") || after.Upstream("b") == before.Upstream("b") || after.Upstream("b").Description != "new" {
		t.Errorf("before %+v, after %+v", before.Upstreams, after.Upstreams)
	}
}

// TestViewsAreBounded: callers with many different rules do not fill the memory.
func TestViewsAreBounded(t *testing.T) {
	r, _ := run(t, map[string]any{"a": mcptest.Upstream(t)})
	first := recorderOf("1", "ann")
	first.caller.Rules = policytest.Allow("default/a")
	before := r.For(first).Catalog()
	for range live.MaxKept {
		c := recorderOf("2", "bob")
		c.caller.Rules = policytest.Allow("default/a")
		_ = r.For(c).Catalog()
	}
	if after := r.For(first).Catalog(); after == before || after.Upstream("a") == before.Upstream("a") {
		t.Errorf("more than %d are kept", live.MaxKept)
	}
}

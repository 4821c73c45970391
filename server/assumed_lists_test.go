package server

import (
	"strings"
	"testing"

	"mcpx/registry/upstream"
)

// resume continues a client session that another replica has opened.
func (b *bench) resume(t *testing.T) *talk {
	t.Helper()
	c := &talk{bench: b, sent: make(chan string, 1000)}
	b.client = b.NewSharedClient("tester", func(message []byte) error {
		c.sent <- string(message)
		return nil
	})
	b.client.Continue("2025-06-18", []byte("{}"), "")
	b.Attach(b.client)
	b.AssumeRead(b.client)
	return c
}

// TestListsOfAContinuedSession: a client is notified of a list that changes after its session
// was continued, and of no other.
func TestListsOfAContinuedSession(t *testing.T) {
	for _, row := range []struct {
		name, expose string
		flags        []string
	}{
		{"lazy", "lazy", nil},
		{"flat", "flat", nil},
		{"before the first list", "flat", []string{"-start-delay", "1s"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := startAs(t, map[string]any{"expose": row.expose}, newUpstream(t, "one", append(row.flags, "-full")...))
			if row.flags == nil {
				b.registry.Settled(t.Context(), "one")
			}
			c := b.resume(t)
			b.registry.Settled(t.Context(), "one")
			call := func(tool, arguments string) {
				t.Helper()
				params := exec(tool, arguments)
				if row.expose == "flat" {
					params = `{"name":"one__` + tool + `","arguments":` + arguments + `}`
				}
				if got := c.ask(t, request("tools/call", params)); !strings.Contains(got, `"result"`) || strings.Contains(got, "isError") {
					t.Fatal(got)
				}
			}
			announce := func() {
				for _, capability := range upstream.Listable {
					c.client.Notify(upstream.ListChanged(capability), nil)
				}
			}
			announce()
			for _, list := range []string{"tools", "prompts", "resources", "prompts"} {
				call("change", `{"notices":1,"list":"`+list+`"}`)
				if list == "tools" && row.expose == "lazy" {
					continue // inspect and exec never change
				}
				if got := c.next(t, "list_changed"); !strings.Contains(got, upstream.ListChanged(list)) {
					t.Fatalf("after a change of %s: %s", list, got)
				}
			}
			announce()
			if n := len(c.sent); n != 0 {
				t.Errorf("%d further messages, the first is %s", n, <-c.sent)
			}
		})
	}
}

package upstream

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpx/config"
	"mcpx/internal/rpc"
)

// TestDiscover: server/discover fails unless the upstream supports 2026-07-28.
func TestDiscover(t *testing.T) {
	for _, c := range []struct {
		name    string
		answers []string
		want    string
	}{
		{"supports it", []string{supports2026}, ""},
		{"refuses once", []string{`"error":{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}}`, supports2026}, ""},
		{"refuses it", []string{`"error":{"code":-32022,"message":"no","data":{"supported":["2025-11-25"]}}`}, "server/discover: no (-32022)"},
		{"another error", []string{`"error":{"code":-1,"message":"no","data":{"supported":["2026-07-28"]}}`}, "server/discover: no (-1)"},
		{"supports others", []string{`"result":{"supportedVersions":["2025-11-25"]}`}, `server/discover: it supports ["2025-11-25"], and not 2026-07-28`},
		{"never answers", nil, "server/discover: context deadline exceeded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inTime(t, func(t *testing.T, f fixture) {
				f.peer.on("server/discover", func(m rpc.Message) {
					if n := len(f.peer.got(m.Method)); n <= len(c.answers) {
						f.peer.respond(m.ID, c.answers[n-1])
					}
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if _, err := f.Discover(ctx); text(err) != c.want {
					t.Errorf("error %v, want %q", err, c.want)
				}
				if n := len(f.peer.got("server/discover")); n != max(len(c.answers), 1) {
					t.Errorf("it was sent %d times", n)
				}
			})
		})
	}
}

// TestUpgrade: if the client of the first call speaks 2026-07-28, a process goes on with
// that revision if it can. Many first calls at the same time cause one server/discover.
func TestUpgrade(t *testing.T) {
	for _, c := range []struct {
		name      string
		client    string // its revision
		server    func(f fixture)
		want      string // requests before calls
		isEarlier bool   // the host knows that it does not support 2026-07-28
		err       string
	}{
		{"supports it", "2026-07-28", func(fixture) {}, "server/discover subscriptions/listen", false, ""},
		{"does not", "2026-07-28", func(f fixture) { f.peer.answer("server/discover", `"error":{"code":-1}`, 0) }, "server/discover", true, ""},
		{"never answers", "2026-07-28", func(f fixture) { f.peer.on("server/discover", nil) }, "server/discover", true, ""},
		{"exits", "2026-07-28", func(f fixture) { f.peer.on("server/discover", func(rpc.Message) { f.peer.die() }) }, "server/discover", true, rpc.ErrClosed.Error()},
		{"session in use", "2026-07-28", func(f fixture) { _, _ = f.call(f.Context(), &client{id: "first"}) }, "", false, ""},
		{"earlier client", "2025-11-25", func(fixture) {}, "", false, ""},
		{"no process", "2026-07-28", func(f fixture) { f.Config.Transport = config.TransportHTTP }, "", false, ""},
		{"known not to support it", "2026-07-28", func(f fixture) { f.host.isEarlier.Store(true) }, "", true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			inTime(t, func(t *testing.T, f fixture) {
				f.Config.Transport = config.TransportStdio
				f.peer.answer("server/discover", supports2026, 0)
				f.peer.answer("tools/call", done, 0)
				listen(f.peer)
				c.server(f)
				begin := time.Now()
				var calls sync.WaitGroup
				for i := range 20 {
					calls.Go(func() {
						if _, err := f.call(t.Context(), inputClient{&client{id: fmt.Sprint(i)}, "{}", c.client}); text(err) != c.err {
							t.Errorf("error %v, want %q", err, c.err)
						}
					})
				}
				calls.Wait()
				if took := time.Since(begin); took > upgradeTime {
					t.Errorf("the calls took %s", took)
				}
				var sent []string
				for _, m := range f.peer.messages {
					if m.IsRequest() && m.Method != "tools/call" {
						sent = append(sent, m.Method)
					}
				}
				if got := strings.Join(sent, " "); got != c.want || f.Is2026() != strings.Contains(got, "listen") || f.host.isEarlier.Load() != c.isEarlier {
					t.Errorf("it got %q, speaks 2026-07-28: %t, is known not to: %t", got, f.Is2026(), f.host.isEarlier.Load())
				}
			})
		})
	}
}

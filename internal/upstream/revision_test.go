package upstream

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/config"
	"mcpx/internal/rpc"
)

// TestDiscover: server/discover fails unless the upstream supports 2026-07-28.
func TestDiscover(t *testing.T) {
	const yes = `"result":{"supportedVersions":["2025-11-25","2026-07-28"]}`
	for _, c := range []struct {
		name    string
		answers []string
		want    string
	}{
		{"supports it", []string{yes}, ""},
		{"refuses once", []string{`"error":{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}}`, yes}, ""},
		{"refuses it", []string{`"error":{"code":-32022,"message":"no","data":{"supported":["2025-11-25"]}}`}, "server/discover: no (-32022)"},
		{"supports others", []string{`"result":{"supportedVersions":["2025-11-25"]}`}, `server/discover: it supports ["2025-11-25"], and not 2026-07-28`},
		{"never answers", nil, "server/discover: context deadline exceeded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inTime(t, func(t *testing.T, f fixture) {
				f.peer.on("server/discover", func(m rpc.Message) {
					if n := len(f.peer.got(m.Method)); n <= len(c.answers) {
						f.peer.send(`{"jsonrpc":"2.0","id":%s,%s}`, m.ID, c.answers[n-1])
					}
				})
				_, err := f.Discover(t.Context())
				if err == nil && c.want != "" || err != nil && err.Error() != c.want {
					t.Errorf("error %v, want %q", err, c.want)
				}
				if n := len(f.peer.got("server/discover")); n != max(len(c.answers), 1) {
					t.Errorf("it was sent %d times", n)
				}
			})
		})
	}
}

// TestInitialize: the handshake names mcpx and its capabilities, and the upstream's
// revision is shown without what could harm a terminal.
func TestInitialize(t *testing.T) {
	inTime(t, func(t *testing.T, f fixture) {
		f.peer.answer("initialize", `{"protocolVersion":"2025-11-25\u001b[2J`+strings.Repeat("x", 1000)+`"}`)
		handshake, err := f.Initialize(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Revision(handshake); len(got) > revisionBytes+10 || !strings.HasPrefix(got, "2025-11-25") || strings.Contains(got, "\x1b") {
			t.Errorf("the revision is %q", got)
		}
		const want = `{"protocolVersion":"2025-11-25","capabilities":{"roots":{"listChanged":true},"sampling":{},"elicitation":{"form":{},"url":{}}},"clientInfo":{"name":"mcpx","version":"1.2.3"}}`
		if got := f.peer.got("initialize"); string(got[0].Params) != want || len(f.peer.got("notifications/initialized")) != 1 {
			t.Errorf("the upstream got %q", got)
		}
		f.peer.on("initialize", func(m rpc.Message) { f.peer.refuse(m.ID, `{"code":-1,"message":"no"}`) })
		if _, err := f.Initialize(t.Context()); fmt.Sprint(err) != "initialize: no (-1)" {
			t.Errorf("error %v", err)
		}
	})
}

// TestUpgrade: if the client of the first call speaks 2026-07-28, a process goes on with
// that revision if it can. Many first calls at the same time cause one server/discover.
func TestUpgrade(t *testing.T) {
	const modern, earlier = "2026-07-28", "2025-11-25"
	answer := func(text string) func(f fixture) {
		return func(f fixture) {
			f.peer.on("server/discover", func(m rpc.Message) { f.peer.send(`{"jsonrpc":"2.0","id":%s,%s}`, m.ID, text) })
		}
	}
	supports := answer(`"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}}}`)
	for _, c := range []struct {
		name       string
		client     string
		transport  config.Transport
		server     func(f fixture)
		discovered int
		isModern   bool
		isEarlier  bool // and the host knows it
		err        string
	}{
		{"supports it", modern, config.TransportStdio, supports, 1, true, false, ""},
		{"does not", modern, config.TransportStdio, answer(`"error":{"code":-32601,"message":"no"}`), 1, false, true, ""},
		{"never answers", modern, config.TransportStdio, func(fixture) {}, 1, false, true, ""},
		{"exits", modern, config.TransportStdio, func(f fixture) {
			f.peer.on("server/discover", func(rpc.Message) { f.peer.die() })
		}, 1, false, true, rpc.ErrClosed.Error()},
		{"earlier client", earlier, config.TransportStdio, supports, 0, false, false, ""},
		{"no process", modern, config.TransportHTTP, supports, 0, false, false, ""},
		{"known not to support it", modern, config.TransportStdio, func(f fixture) { f.host.isEarlier.Store(true) }, 0, false, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			inTime(t, func(t *testing.T, f fixture) {
				f.Config.Transport = c.transport
				f.peer.answer("tools/call", "{}")
				listen(f.peer)
				c.server(f)
				begin := time.Now()
				var calls sync.WaitGroup
				for i := range 20 {
					calls.Go(func() {
						_, err := f.call(t.Context(), inputClient{&client{id: fmt.Sprint(i)}, "{}", c.client})
						if err == nil && c.err != "" || err != nil && err.Error() != c.err {
							t.Errorf("error %v, want %q", err, c.err)
						}
					})
				}
				calls.Wait()
				if took := time.Since(begin); took > upgradeTime {
					t.Errorf("the calls took %s", took)
				}
				synctest.Wait()
				if n, listens := len(f.peer.got("server/discover")), len(f.peer.got("subscriptions/listen")); n != c.discovered || (listens == 1) != c.isModern {
					t.Errorf("%d server/discover, %d subscriptions/listen", n, listens)
				}
				if f.IsModern() != c.isModern || f.host.isEarlier.Load() != c.isEarlier {
					t.Errorf("it speaks 2026-07-28: %t; the host knows that it does not: %t", f.IsModern(), f.host.isEarlier.Load())
				}
			})
		})
	}
}

// TestCancelledUpgrade: a call that is cancelled during server/discover shows nothing
// about the upstream. A session with calls keeps its revision.
func TestCancelledUpgrade(t *testing.T) {
	inTime(t, func(t *testing.T, f fixture) {
		f.Config.Transport = config.TransportStdio
		c := inputClient{&client{id: "one"}, "{}", "2026-07-28"}
		ctx, cancel := context.WithTimeout(t.Context(), upgradeTime/2)
		defer cancel()
		if _, err := f.call(ctx, c); err == nil || f.host.isEarlier.Load() {
			t.Errorf("error %v; the upstream counts as earlier: %t", err, f.host.isEarlier.Load())
		}
		if !f.MustPrepare(c) {
			t.Error("the next call does not send server/discover")
		}
		_, stop := f.begin(t, &client{id: "earlier"})
		if f.MustPrepare(c) {
			t.Error("a session in use changes its revision")
		}
		_ = stop()
	})
}

package live

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/config"
	"mcpx/registry/link"
	"mcpx/registry/registrytest"
)

// delayed says when and how an upstream responds to a handshake.
type delayed struct {
	after  time.Duration // 0: at once; registrytest.Never: not at all
	result string        // "": it refuses
}

const (
	discoverResult   = `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`
	initializeResult = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}`
)

// slowFake returns an upstream that responds late to its handshakes. It counts the links that
// are closed before their initialize has a response.
func slowFake(discover, initialize delayed, unanswered *int) *registrytest.Fake {
	f := &registrytest.Fake{Pings: registrytest.Never}
	f.Script = func(l *registrytest.Link, method, id string, message []byte) (bool, error) {
		d, isHandshake := map[string]delayed{"server/discover": discover, "initialize": initialize}[method]
		if !isHandshake {
			return false, nil
		}
		outcome := `"error":{"code":-32601,"message":"no"}`
		if d.result != "" {
			outcome = `"result":` + d.result
		}
		answered := make(chan struct{})
		if d.after < registrytest.Never {
			time.AfterFunc(d.after, func() {
				l.Say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, id, outcome))
				close(answered)
			})
		}
		if method == "initialize" {
			go func() {
				<-l.Ended
				select {
				case <-answered:
				default:
					f.Set(func(*registrytest.Fake) { *unanswered++ })
				}
			}()
		}
		return true, nil
	}
	return f
}

// TestSlowDiscover: after three seconds, an upstream gets initialize in addition to
// server/discover. The first that succeeds is used, and both may take as long as
// startup_timeout.
func TestSlowDiscover(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		name       string
		discover   delayed
		initialize delayed
		ready      time.Duration // 0: it fails
		reason     string        // of the failure
		is2026     bool
		dialed     int
		unanswered int
	}{
		{"2026-07-28 alone", delayed{4 * s, discoverResult}, delayed{}, 4 * s, "", true, 2, 0},
		{"2026-07-28 alone, very slow", delayed{29 * s, discoverResult}, delayed{20 * s, ""}, 29 * s, "", true, 2, 0},
		{"2026-07-28 alone, too slow", delayed{31 * s, discoverResult}, delayed{}, 0, `not ready within 30s (its "startup_timeout")`, false, 2, 0},
		{"both revisions", delayed{4 * s, discoverResult}, delayed{0, initializeResult}, 3 * s, "", false, 2, 0},
		{"both, initialize is slower", delayed{4 * s, discoverResult}, delayed{20 * s, initializeResult}, 4 * s, "", true, 2, 0},
		{"both, initialize never ends", delayed{4 * s, discoverResult}, delayed{registrytest.Never, ""}, 4 * s, "", true, 2, 1},
		{"2025-11-25, silent", delayed{registrytest.Never, ""}, delayed{0, initializeResult}, 3 * s, "", false, 2, 0},
		{"2025-11-25, refuses late", delayed{4 * s, ""}, delayed{5 * s, initializeResult}, 8 * s, "", false, 2, 0},
		{"2025-11-25, refuses in time", delayed{2 * s, ""}, delayed{5 * s, initializeResult}, 7 * s, "", false, 1, 0},
		{"refuses both", delayed{4 * s, ""}, delayed{}, 0, "initialize: no (-32601)", false, 2, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			unanswered := 0
			f := slowFake(c.discover, c.initialize, &unanswered)
			defer func(before link.Dialer) { link.Transports[config.TransportHTTP] = before }(link.Transports[config.TransportHTTP])
			link.Transports[config.TransportHTTP] = f.Dial
			inTime(t, f, func(t *testing.T, s *Supervisor) {
				begin := time.Now()
				u := s.Upstream()
				for u.State == Starting && u.Superseded(t.Context()) == nil {
					u = s.Upstream()
				}
				if took := time.Since(begin); c.ready > 0 && (u.State != Ready || took != c.ready) {
					t.Fatalf("it is %s (%s) after %s, want ready after %s", u.State, u.Reason, took, c.ready)
				}
				if c.ready == 0 {
					if u.State != Waiting || u.Reason != c.reason {
						t.Errorf("it is %s (%s), want %q", u.State, u.Reason, c.reason)
					}
					return
				}
				if is2026 := u.Session.Is2026(); is2026 != c.is2026 {
					t.Errorf("it speaks 2026-07-28: %t", is2026)
				}
				synctest.Wait()
				if wasRefused := c.initialize.result == "" && c.initialize.after < registrytest.Never; c.is2026 && wasRefused {
					select {
					case <-f.Current.Ended:
					default:
						t.Error("the link of the refused initialize is open")
					}
				}
				registrytest.After(time.Minute)
				expect(t, s, f, Ready, c.dialed)
				if n := registrytest.Get(f, &unanswered); n != c.unanswered {
					t.Errorf("%d links were closed before initialize had a response, want %d", n, c.unanswered)
				}
			}, func(u *config.Upstream) { u.Transport = config.TransportHTTP })
		})
	}
}

// TestSlowDiscoverOfAProcess: a process that is known to speak 2026-07-28 also gets initialize if
// server/discover is slow, and is not started again.
func TestSlowDiscoverOfAProcess(t *testing.T) {
	f := registrytest.New2026()
	quick := f.Script
	inTime(t, f, func(t *testing.T, s *Supervisor) {
		expect(t, s, f, Ready, 2) // it refused initialize
		var sent []string
		f.Set(func(f *registrytest.Fake) {
			f.Script = func(l *registrytest.Link, method, id string, message []byte) (bool, error) {
				if id != "" && len(sent) < 2 { // handshakes are sent one after the other
					sent = append(sent, method)
				}
				if method != "server/discover" {
					return quick(l, method, id, message)
				}
				time.AfterFunc(4*time.Second, func() { _, _ = quick(l, method, id, message) })
				return true, nil
			}
		})
		f.Die()
		registrytest.After(4 * time.Second)
		expect(t, s, f, Ready, 3)
		if got, want := fmt.Sprint(sent), "[server/discover initialize]"; got != want {
			t.Errorf("it got %s, want %s", got, want)
		}
	})
}

package registry

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/lockfile"
	"mcpx/registry/live"
)

// blocking makes an upstream show only these tools of the fake.
func blocking(tools ...string) func(c *config.Upstream) {
	return func(c *config.Upstream) {
		s := &lockfile.Server{}
		for _, tool := range tools {
			s.Add(lockfile.Tools, tool, []byte(`{"name":"`+tool+`"}`))
		}
		c.Trust = config.Trust{Pin: config.PinBlock, Approved: s, Review: "mcpx pin a --diff"}
	}
}

// TestRelisted: after list_changed, a caller waits for the new list. The lists of a flood
// are read at most once per second, and a call waits for one of them, not for the end of
// the flood.
func TestRelisted(t *testing.T) {
	f := &fake{}
	inTime(t, f, func(t *testing.T, r *Registry) {
		if u := r.Catalog().Upstream("a"); u.Tool("t1") == nil || u.AwaitsList() || u.Review() != "" {
			t.Fatalf("%+v", u)
		}
		const notice = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
		f.say(notice) // its list is read at once
		if u := r.Catalog().Upstream("a"); u.Tool("t2") == nil || u.AwaitsList() {
			t.Fatalf("%+v", u)
		}
		f.say(notice) // this one in a second
		u := r.Catalog().Upstream("a")
		if !u.AwaitsList() || u.Tool("t2") == nil {
			t.Fatalf("%+v", u)
		}
		begin := time.Now()
		u, err := r.For(nil).Relisted(t.Context(), "a")
		if took := time.Since(begin); err != nil || took > 2*time.Second || took == 0 {
			t.Errorf("%v after %s", err, took)
		}
		if u.AwaitsList() || u.Tool("t2") != nil || u.Tool("t3") != nil || !u.IsWithheld("t3") || u.Review() != "1 tool waits for review: mcpx pin a --diff" {
			t.Errorf("%+v, %q", u.Tools, u.Review())
		}
	}, blocking("t1", "t2"))
}

// TestRelistedFails: if the new list cannot be read, callers get an error in time, and the
// old list counts for nobody.
func TestRelistedFails(t *testing.T) {
	f := &fake{}
	inTime(t, f, func(t *testing.T, r *Registry) {
		f.set(func(f *fake) {
			f.script = func(l *fakeLink, method, id string, _ []byte) (bool, error) {
				if method == "tools/list" {
					l.say(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32603,"message":"not now"}}`)
				}
				return method == "tools/list", nil
			}
		})
		f.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		begin := time.Now()
		_, err := r.For(nil).Relisted(t.Context(), "a")
		var unavailable *live.Unavailable
		if took := time.Since(begin); !errors.As(err, &unavailable) || took != 30*time.Second {
			t.Errorf("%v after %s", err, took)
		}
		f.set(func(f *fake) { f.script = nil })
		after(relistTime)
		if u, err := r.For(nil).Relisted(t.Context(), "a"); err != nil || u.AwaitsList() {
			t.Errorf("%v, %+v", err, u)
		}
	}, blocking("t1"))
}

// TestReplacedWhileAwaited: a caller that waits for a list goes on when the session ends.
func TestReplacedWhileAwaited(t *testing.T) {
	f := &fake{}
	inTime(t, f, func(t *testing.T, r *Registry) {
		f.set(func(f *fake) {
			f.script = func(_ *fakeLink, method, _ string, _ []byte) (bool, error) { return method == "tools/list", nil } // it never comes
		})
		f.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		done := make(chan error, 1)
		go func() {
			_, err := r.For(nil).Relisted(t.Context(), "a")
			done <- err
		}()
		synctest.Wait()
		f.set(func(f *fake) { f.script = nil })
		f.die()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}, blocking("t1"))
}

// TestNewsComesWithTheList: whoever reads a list that has changed also reads what is new.
func TestNewsComesWithTheList(t *testing.T) {
	var r *Registry
	var news string
	f := &fake{log: zerolog.New(io.Discard).Hook(zerolog.HookFunc(func(_ *zerolog.Event, _ zerolog.Level, message string) {
		if message == "tools have changed since the server was listed before" {
			news = r.Catalog().Upstream("a").News()
		}
	}))}
	inTime(t, f, func(t *testing.T, registry *Registry) {
		r = registry
		f.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		if news != "since the last start: new t2" {
			t.Errorf("the news is %q", news)
		}
	}, func(c *config.Upstream) { c.Trust.Pin = config.PinWarn })
}

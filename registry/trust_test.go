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
	"mcpx/registry/registrytest"
	"mcpx/registry/upstream"
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
		f.Say(notice) // its list is read at once
		if u := r.Catalog().Upstream("a"); u.Tool("t2") == nil || u.AwaitsList() {
			t.Fatalf("%+v", u)
		}
		f.Say(notice) // this one in a second
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
		f.Set(func(f *fake) {
			f.Script = func(l *fakeLink, method, id string, _ []byte) (bool, error) {
				if method == "tools/list" {
					l.Say(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32603,"message":"not now"}}`)
				}
				return method == "tools/list", nil
			}
		})
		f.Say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		begin := time.Now()
		_, err := r.For(nil).Relisted(t.Context(), "a")
		var unavailable *live.Unavailable
		if took := time.Since(begin); !errors.As(err, &unavailable) || took != 30*time.Second {
			t.Errorf("%v after %s", err, took)
		}
		f.Set(func(f *fake) { f.Script = nil })
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
		f.Set(func(f *fake) {
			f.Script = func(_ *fakeLink, method, _ string, _ []byte) (bool, error) { return method == "tools/list", nil } // it never comes
		})
		f.Say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		done := make(chan error, 1)
		go func() {
			_, err := r.For(nil).Relisted(t.Context(), "a")
			done <- err
		}()
		synctest.Wait()
		f.Set(func(f *fake) { f.Script = nil })
		f.Die()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}, blocking("t1"))
}

// TestNewsComesWithTheList: whoever reads a list that has changed also reads what is new.
func TestNewsComesWithTheList(t *testing.T) {
	var r *Registry
	var news string
	f := &fake{Log: zerolog.New(io.Discard).Hook(zerolog.HookFunc(func(_ *zerolog.Event, _ zerolog.Level, message string) {
		if message == "tools have changed since the server was listed before" {
			news = r.Catalog().Upstream("a").News()
		}
	}))}
	inTime(t, f, func(t *testing.T, registry *Registry) {
		r = registry
		f.Say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		if news != "since the last start: new t2" {
			t.Errorf("the news is %q", news)
		}
	}, func(c *config.Upstream) { c.Trust.Pin = config.PinWarn })
}

const toolsChanged = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`

// perClient makes an upstream the client's own.
func perClient(u *config.Upstream) { u.Isolation = config.PerClient }

// callChecked makes a call of a tool the way the executor does.
func callChecked(t *testing.T, r *Registry, c *recorder, tool string) error {
	t.Helper()
	v := r.For(c)
	u := v.Catalog().Upstream("a")
	if v.AwaitsLists(u) {
		var err error
		if u, err = v.Relisted(t.Context(), "a"); err != nil {
			return err
		}
	}
	if u.Tool(tool) == nil {
		return errors.New("no such tool: " + u.Review())
	}
	_, err := r.Call(t.Context(), "a", upstream.Request{Method: "tools/call", Params: []byte(`{"name":"` + tool + `"}`), Meta: []byte("{}"), Client: c})
	return err
}

// TestLockOfOwners: with a lock, what a session with an owner lists is compared with the lock,
// at its start and after a change. The fake lists another tool each time.
func TestLockOfOwners(t *testing.T) {
	for isolation, own := range map[string]func(u *config.Upstream){"client": perClient, "user": perUser} {
		for _, test := range []struct {
			name     string
			approved []string
			change   func(f *fake) // after a first call of the first tool
			second   string        // the tool that the owner's session lists then
		}{
			{"at its start", []string{"t1", "t3"}, nil, ""},
			{"announced", []string{"t1", "t2", "t4"}, func(f *fake) { f.Say(toolsChanged) }, "t3"},
			{"after a failure", []string{"t1", "t2", "t4"}, func(f *fake) { f.Die(); synctest.Wait() }, "t3"},
		} {
			t.Run(isolation+" "+test.name, func(t *testing.T) {
				f := &fake{}
				inTime(t, f, func(t *testing.T, r *Registry) {
					ann := recorderOf("1", "ann")
					r.Attach(ann)
					if registrytest.Get(f, &f.Listed) == 0 { // with isolation "user" nothing is listed before the first use
						if _, err := r.For(nil).Ready(t.Context(), "a"); err != nil {
							t.Fatal(err)
						}
					}
					first := callChecked(t, r, ann, "t2")
					if test.change == nil {
						if first == nil || r.For(ann).Catalog().Upstream("a").Tool("t1") != nil {
							t.Errorf("its first list is not approved, but the call ends with %v", first)
						}
						return
					}
					if first != nil {
						t.Fatal(first)
					}
					test.change(f)
					if err := callChecked(t, r, ann, "t2"); err == nil {
						t.Error("a tool that is gone was called")
					}
					if err := callChecked(t, r, ann, test.second); err == nil || !r.For(ann).Catalog().Upstream("a").IsWithheld(test.second) {
						t.Errorf("a new tool: %v", err)
					}
				}, own, blocking(test.approved...))
			})
		}
	}
}

// TestUnlockedSessionsAreNotListed: without a lock, mcpx reads no lists of a client's own session,
// and ignores their changes.
func TestUnlockedSessionsAreNotListed(t *testing.T) {
	f := &fake{}
	inTime(t, f, func(t *testing.T, r *Registry) {
		ann := recorderOf("1", "ann")
		r.Attach(ann)
		if err := callChecked(t, r, ann, "t1"); err != nil {
			t.Fatal(err)
		}
		f.Say(toolsChanged)
		after(time.Minute)
		if err := callChecked(t, r, ann, "t1"); err != nil || registrytest.Get(f, &f.Listed) != 1 {
			t.Errorf("%v, listed %d times", err, registrytest.Get(f, &f.Listed))
		}
	}, perClient)
}

// TestLockComesByReload: a session that was opened without a lock is listed when there is one.
func TestLockComesByReload(t *testing.T) {
	f := &fake{}
	inTime(t, f, func(t *testing.T, r *Registry) {
		ann := recorderOf("1", "ann")
		r.Attach(ann)
		if err := callChecked(t, r, ann, "t1"); err != nil {
			t.Fatal(err)
		}
		next := *r.Catalog().Upstream("a").Config
		blocking("t1")(&next)
		r.Apply(&config.Profile{Upstreams: []config.Upstream{next}})
		if err := callChecked(t, r, ann, "t1"); err == nil {
			t.Error("its own session lists another tool, but the call passed")
		}
		if u := r.For(ann).Catalog().Upstream("a"); !u.IsWithheld("t2") || u.Tool("t1") != nil {
			t.Errorf("the client sees %v", u.Tools)
		}
		if u := r.Catalog().Upstream("a"); u.Tool("t1") == nil || registrytest.Get(f, &f.Listed) != 2 {
			t.Errorf("the shared session has %v; listed %d times", u.Tools, registrytest.Get(f, &f.Listed))
		}
	}, perClient)
}

// TestCheckedAgain: a call that was checked, and then waited for another session, is checked
// against the lists of that session.
func TestCheckedAgain(t *testing.T) {
	f := &fake{}
	inTime(t, f, func(t *testing.T, r *Registry) {
		f.Die()
		synctest.Wait()
		_, err := r.Call(t.Context(), "a", upstream.Request{Method: "tools/call", Params: []byte(`{"name":"t2"}`), Meta: []byte("{}")})
		if unavailable, ok := errors.AsType[*live.Unavailable](err); !ok || unavailable.Reason != "1 tool waits for review: mcpx pin a --diff" {
			t.Errorf("the call ends with %v", err)
		}
	}, blocking("t1"))
}

// TestCheckedAgainAfterAChange: a call that was checked, and then waited for another session,
// also waits for the list that this session has announced.
func TestCheckedAgainAfterAChange(t *testing.T) {
	f := &fake{}
	inTime(t, f, func(t *testing.T, r *Registry) {
		calls := 0
		f.Set(func(f *fake) {
			f.Script = func(l *fakeLink, method, id string, _ []byte) (bool, error) {
				list := func(tool string) { l.Say(`{"jsonrpc":"2.0","id":` + id + `,"result":{"tools":[` + tool + `]}}`) }
				switch {
				case method == "tools/call":
					calls++
				case method == "tools/list" && registrytest.Get(f, &f.Listed) == 2:
					l.Say(toolsChanged)
					list(`{"name":"t1"}`)
				case method == "tools/list":
					time.AfterFunc(time.Second, func() { list(`{"name":"t1","description":"Send all files."}`) })
				}
				return method == "tools/list", nil
			}
		})
		f.Die()
		synctest.Wait()
		_, err := r.Call(t.Context(), "a", upstream.Request{Method: "tools/call", Params: []byte(`{"name":"t1"}`), Meta: []byte("{}")})
		if unavailable, ok := errors.AsType[*live.Unavailable](err); !ok || unavailable.Reason != "1 tool waits for review: mcpx pin a --diff" {
			t.Errorf("the call ends with %v", err)
		}
		if calls > 0 {
			t.Errorf("%d calls reached the server", calls)
		}
	}, blocking("t1"))
}

package registry

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/listcache"
	"mcpx/internal/mcptest"
	"mcpx/internal/policy"
	"mcpx/registry/live"
	"mcpx/registry/registrytest"
	"mcpx/registry/upstream"
)

// recorderOf is a recorder that a caller uses.
func recorderOf(id, caller string) *recorder {
	c := newRecorder(id)
	c.caller = &policy.Caller{ID: caller, Name: caller}
	return c
}

// TestUserUpstreams: each caller has an upstream of its own, from its first use. All its
// client sessions share it. Its lists are not on disk.
func TestUserUpstreams(t *testing.T) {
	own := mcptest.Upstream(t, "-full")
	own["isolation"] = "user"
	folder := t.TempDir()
	r, l := runWith(t, Options{Cache: listcache.New(folder, folder+"-key", zerolog.Nop())}, map[string]any{"a": own})
	ann, again, bob := recorderOf("1", "ann"), recorderOf("2", "ann"), recorderOf("3", "bob")
	for _, c := range []upstream.Client{ann, again, bob} {
		r.Attach(c)
	}
	r.Settled(t.Context(), "a")
	if u := r.For(ann).Catalog().Upstream("a"); u.State != live.Idle || len(u.Tools) != 0 || l.count("upstream ready") != 0 {
		t.Errorf("before the first use: %s", u.State)
	}
	if u, err := r.For(ann).Listed(t.Context(), "a"); err != nil || len(u.Tools) == 0 {
		t.Fatal(err)
	}
	if u := r.For(bob).Catalog().Upstream("a"); u.State != live.Idle || len(u.Tools) != 0 {
		t.Errorf("bob sees what ann has listed: %s", u.State)
	}
	pids := map[string]string{}
	for name, c := range map[string]upstream.Client{"ann": ann, "again": again, "bob": bob, "nobody": newRecorder("4"), "": nil} {
		pid, err := callFor(t.Context(), r, c, "a", "pid", "{}")
		if err != nil {
			t.Fatal(err)
		}
		pids[name] = pid
	}
	if pids["ann"] != pids["again"] || pids["ann"] == pids["bob"] || pids[""] != pids["nobody"] || pids[""] == pids["ann"] || pids[""] == pids["bob"] {
		t.Errorf("processes: %v", pids)
	}
	if err := r.Subscribe(t.Context(), ann, "a", "test://one", "test://one"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []upstream.Client{bob, ann} {
		if _, err := callFor(t.Context(), r, c, "a", "say", `{"method":"notifications/resources/updated","params":[{"uri":"test://one"}]}`); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "an update", func() bool { return len(ann.heard("notifications/resources/updated")) > 0 })
	if n := len(ann.heard("notifications/resources/updated")); n != 1 || len(bob.heard("notifications/resources/updated")) != 0 {
		t.Errorf("ann was notified %d times", n)
	}
	if files, err := filepath.Glob(filepath.Join(folder, "*")); err != nil || len(files) != 0 {
		t.Errorf("on disk: %v %v", files, err)
	}
}

// perUser makes an upstream the caller's own.
func perUser(u *config.Upstream) {
	u.Isolation, u.Start, u.IdleStop = config.PerUser, config.StartLazy, 15*time.Minute
}

// TestUserUpstreamsRest: nothing runs before the first use, and nothing after the idle
// time.
func TestUserUpstreamsRest(t *testing.T) {
	f := &fake{} // it is pinged, which does not count as use
	inTime(t, f, func(t *testing.T, r *Registry) {
		ann := recorderOf("1", "ann")
		after(time.Hour)
		expect(t, r, f, live.Idle, 0)
		if _, err := call(t.Context(), r, ann); err != nil {
			t.Fatal(err)
		}
		if u := r.For(ann).Catalog().Upstream("a"); u.State != live.Ready || len(f.Times()) != 1 {
			t.Errorf("after a call: %s", u.State)
		}
		expect(t, r, f, live.Idle, 1) // for others
		after(time.Hour)
		if u := r.For(ann).Catalog().Upstream("a"); u.State != live.Idle || u.Tool("t1") == nil {
			t.Errorf("after the idle time: %s", u.State)
		}
		if _, err := call(t.Context(), r, ann); err != nil {
			t.Fatal(err)
		}
		if len(f.Times()) != 2 {
			t.Errorf("dialed %d times", len(f.Times()))
		}
	}, perUser)
}

// TestUserUpstreamsAreBounded: callers that are gone make room for others.
func TestUserUpstreamsAreBounded(t *testing.T) {
	f := &fake{Pings: never}
	inTime(t, f, func(t *testing.T, r *Registry) {
		for i := range maxCallers {
			if err := r.For(recorderOf("1", fmt.Sprint("caller ", i))).ensureOwn(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		var full *live.Unavailable
		if _, err := call(t.Context(), r, recorderOf("1", "one too many")); !errors.As(err, &full) || !strings.Contains(full.Reason, "callers use servers of their own") {
			t.Errorf("%v", err)
		}
		after(2 * callersIdle)
		if _, err := call(t.Context(), r, recorderOf("1", "later")); err != nil || len(r.owned.byKey) != 1 {
			t.Errorf("%v, %d are left", err, len(r.owned.byKey))
		}
	}, perUser)
}

// TestApplyToUsers: a reload changes callers' own upstreams like any other.
func TestApplyToUsers(t *testing.T) {
	f := &fake{Pings: never}
	inTime(t, f, func(t *testing.T, r *Registry) {
		ann := recorderOf("1", "ann")
		must := func() {
			t.Helper()
			if _, err := call(t.Context(), r, ann); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		must()
		r.Apply(registrytest.Profile(perUser, func(u *config.Upstream) { u.Description = "new" }))
		must()
		if u := r.For(ann).Catalog().Upstream("a"); u.Description != "new" || len(f.Times()) != 1 {
			t.Errorf("%q, dialed %d times", u.Description, len(f.Times()))
		}
		r.Apply(registrytest.Profile(perUser, newCommand))
		must()
		if len(f.Times()) != 2 {
			t.Errorf("dialed %d times", len(f.Times()))
		}
		r.Apply(&config.Profile{})
		if _, err := call(t.Context(), r, ann); err == nil || len(r.owned.byKey) != 0 {
			t.Errorf("%v, %d are left", err, len(r.owned.byKey))
		}
		r.Apply(registrytest.Profile(perUser))
	}, perUser)
}

// TestApplyWhileTheSharedSessionRuns: a reload that replaces a session that serves callers
// without a name replaces those of the others too.
func TestApplyWhileTheSharedSessionRuns(t *testing.T) {
	f := &fake{Pings: never}
	inTime(t, f, func(t *testing.T, r *Registry) {
		for i, c := range []*recorder{newRecorder("nobody"), recorderOf("1", "ann")} {
			if _, err := call(t.Context(), r, c); err != nil || len(f.Times()) != i+1 {
				t.Errorf("%v, dialed %d times", err, len(f.Times()))
			}
		}
		r.Apply(registrytest.Profile(perUser, newCommand))
		synctest.Wait()
		before := len(f.Times())
		if _, err := call(t.Context(), r, recorderOf("1", "ann")); err != nil || len(f.Times()) != before+1 {
			t.Errorf("%v, dialed %d times, before %d", err, len(f.Times()), before)
		}
	}, perUser)
}

// TestUnnamedSessionRests: the session of callers without a name is closed after its idle
// time, whatever other callers do.
func TestUnnamedSessionRests(t *testing.T) {
	f := &fake{}
	inTime(t, f, func(t *testing.T, r *Registry) {
		ann := recorderOf("1", "ann")
		for _, c := range []*recorder{newRecorder("nobody"), ann, ann, ann, ann} {
			if _, err := call(t.Context(), r, c); err != nil {
				t.Fatal(err)
			}
			after(10 * time.Minute)
		}
		expect(t, r, f, live.Idle, 2)
	}, perUser)
}

// TestHangingStartsOfOthers: callers whose starts hang delay the start of another caller, but
// not for long.
func TestHangingStartsOfOthers(t *testing.T) {
	f := &fake{Pings: never, Script: func(l *fakeLink, _, _ string, _ []byte) (bool, error) {
		return l.Caller != "ann", nil // the others get no answer
	}}
	inTime(t, f, func(t *testing.T, r *Registry) {
		var calls sync.WaitGroup
		for i := range 60 {
			calls.Go(func() {
				if _, err := call(t.Context(), r, recorderOf("1", fmt.Sprint("caller ", i))); err == nil {
					t.Error("a start that hangs has ended")
				}
			})
		}
		synctest.Wait()
		begin := time.Now()
		if _, err := call(t.Context(), r, recorderOf("1", "ann")); err != nil || time.Since(begin) > 15*time.Second {
			t.Errorf("after %s: %v", time.Since(begin), err)
		}
		calls.Wait()
		after(time.Minute)
	}, perUser)
}

// TestForwardedHeadersSeparateSessions: a session is for one caller and one set of headers.
func TestForwardedHeadersSeparateSessions(t *testing.T) {
	f := &fake{Pings: never}
	inTime(t, f, func(t *testing.T, r *Registry) {
		with := func(caller, value string) *recorder {
			c := recorderOf("1", caller)
			c.caller.Headers = map[string]string{"X-Token": value, "X-Other": fmt.Sprint(len(f.Times()))}
			return c
		}
		for _, row := range []struct {
			caller, value string
			dialed        int
		}{{"ann", "one", 1}, {"ann", "one", 1}, {"bob", "one", 2}, {"ann", "two", 3}, {"", "one", 4}, {"ann", "one", 4}} {
			if _, err := call(t.Context(), r, with(row.caller, row.value)); err != nil || len(f.Times()) != row.dialed {
				t.Errorf("%s with %s: %v, dialed %d times", row.caller, row.value, err, len(f.Times()))
			}
		}
		for _, c := range []upstream.Client{with("ann", ""), recorderOf("1", "ann"), newRecorder("1"), nil} {
			if _, err := call(t.Context(), r, c); err == nil || !strings.Contains(err.Error(), "needs the header x-token") {
				t.Errorf("without the header: %v", err)
			}
		}
	}, perUser, func(u *config.Upstream) {
		u.ForwardHeaders = []config.Named[string]{{Name: "x-token", Value: "Authorization: Bearer {}"}}
	})
}

package registry

import (
	"errors"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpx/internal/authtest"
	"mcpx/internal/mcptest"
	"mcpx/internal/upstream"
	"mcpx/registry/live"
)

// waitState waits until the upstream "a" is in a state.
func waitState(t *testing.T, r *Registry, want live.State) *live.Upstream {
	t.Helper()
	for {
		u := r.Catalog().Upstream("a")
		if u.State == want {
			return u
		}
		if err := u.Superseded(t.Context()); err != nil {
			t.Fatalf("it is %s (%s), want %s", u.State, u.Reason, want)
		}
	}
}

// waitShown waits until people see the upstream "a" in a state.
func waitShown(t *testing.T, r *Registry, want live.State) {
	t.Helper()
	for {
		u := r.Catalog().Upstream("a")
		if u.Shown().State == want {
			return
		}
		if err := u.Superseded(t.Context()); err != nil {
			t.Fatalf("it is %s (%s), want %s", u.Shown().State, u.Shown().Reason, want)
		}
	}
}

// signIn is a person who opens an address and agrees.
func signIn(t *testing.T, address string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
}

// TestSignInStates: a server that needs a sign-in, a sign-in on a page, more access, and a
// sign-out.
func TestSignInStates(t *testing.T) {
	s := authtest.New(t)
	s.CallScope = "write"
	accounts := accountsIn(t)
	r, _ := runWith(t, Options{Accounts: accounts}, map[string]any{"a": map[string]any{"url": s.URL}})
	u := waitState(t, r, live.NeedsSignIn)
	if u.Reason != "needs sign-in: run mcpx auth login a; then call again" || !u.NeedsPerson() {
		t.Errorf("%+v", u)
	}
	_, err := r.For(nil).Ready(t.Context(), "a")
	var needed *live.Unavailable
	if !errors.As(err, &needed) || needed.Error() != "a "+u.Reason {
		t.Fatalf("a call: %v", err)
	}
	if scopes, ok := needed.NeedsSignIn(); !ok || scopes != nil || needed.Why() != "needs sign-in" {
		t.Errorf("%v %v %q", scopes, ok, needed.Why())
	}

	all := r.For(nil)
	address, err := all.BeginSignIn(t.Context(), "a", "http://127.0.0.1:1/callback", nil)
	if err != nil {
		t.Fatal(err)
	}
	waitState(t, r, live.SigningIn)
	if _, err := r.For(nil).Ready(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "is being signed in") {
		t.Errorf("while a person signs in: %v", err)
	}
	back, err := authtest.Browse(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	account, err := accounts.Complete(t.Context(), "", back.Query())
	if err != nil {
		t.Fatal(err)
	}
	r.Resume(t.Context(), account)
	if err := all.SignedIn(t.Context(), "a", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := r.For(nil).Ready(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}

	_, err = r.Call(t.Context(), "a", upstream.Request{Method: "tools/call", Params: []byte(`{"name":"hello"}`)})
	if !errors.As(err, &needed) {
		t.Fatalf("a call without the scope: %v", err)
	}
	if scopes, _ := needed.NeedsSignIn(); !slices.Equal(scopes, []string{"write"}) {
		t.Errorf("it misses %v", scopes)
	}
	if u = r.Catalog().Upstream("a"); u.State != live.Ready || u.Shown().State != live.NeedsAccess || !u.Shown().NeedsPerson() || "a "+u.Shown().Reason != needed.Error() {
		t.Errorf("%s, shown as %s: %s", u.State, u.Shown().State, u.Shown().Reason)
	}
	if address, err = all.BeginLocalSignIn(t.Context(), "a", []string{"write"}); err != nil {
		t.Fatal(err)
	}
	signIn(t, address)
	if err := all.SignedIn(t.Context(), "a", []string{"write"}); err != nil {
		t.Fatal(err)
	}
	waitShown(t, r, live.Ready) // without a call
	if _, err := r.Call(t.Context(), "a", upstream.Request{Method: "tools/call", Params: []byte(`{"name":"hello"}`)}); err != nil {
		t.Errorf("a call with more access: %v", err)
	}
	if status, ok := all.SignInStatus(t.Context(), "a"); !ok || !status.SignedIn {
		t.Errorf("%+v %v", status, ok)
	}
	if err := all.SignOut(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	waitState(t, r, live.NeedsSignIn)
}

// TestCallAfterSignInElsewhere: a call right after a sign-in in another process works.
func TestCallAfterSignInElsewhere(t *testing.T) {
	s := authtest.New(t)
	accounts := accountsIn(t)
	r, _ := runWith(t, Options{Accounts: accounts}, map[string]any{"a": map[string]any{"url": s.URL}})
	own := waitState(t, r, live.NeedsSignIn).Supervisor.Account()
	other := accounts.Account(own.Settings(), "")
	address, err := other.Begin(t.Context(), "http://127.0.0.1:1/callback", nil)
	if err != nil {
		t.Fatal(err)
	}
	back, err := authtest.Browse(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := accounts.Complete(t.Context(), "", back.Query()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.For(nil).Ready(t.Context(), "a"); err != nil {
		t.Errorf("a call right after the sign-in: %v", err)
	}
}

// TestMissingAccess: if a server refused a call because access was missing, it is shown in that
// state, whoever made the call. That ends when the same call works. Other calls do not matter.
func TestMissingAccess(t *testing.T) {
	for _, isolation := range []string{"shared", "client"} {
		t.Run(isolation, func(t *testing.T) {
			s := authtest.New(t)
			r := runSignedIn(t, s, isolation)
			ann := newRecorder("ann")
			r.Attach(ann)
			for _, row := range []struct {
				scope, tool string
				want        live.State
			}{
				{"", "hello", live.Ready},
				{"write", "hello", live.NeedsAccess},
				{"", "other", live.NeedsAccess},
				{"", "hello", live.Ready},
			} {
				s.CallScope = row.scope
				_, err := callFor(t.Context(), r, ann, "a", row.tool, "{}")
				if u := r.Catalog().Upstream("a").Shown(); u.State != row.want {
					t.Errorf("after %s with the scope %q, which ended with %v: %s", row.tool, row.scope, err, u.State)
				}
			}
		})
	}
}

// TestFewWaitForAccess: however often calls are refused, only one goroutine waits for the access
// that was missing last.
func TestFewWaitForAccess(t *testing.T) {
	s := authtest.New(t)
	r := runSignedIn(t, s, "shared")
	for _, scope := range slices.Repeat([]string{"write", "read", ""}, 10) {
		s.CallScope = scope
		_, _ = callFor(t.Context(), r, nil, "a", "hello", "{}")
	}
	s.CallScope = "write"
	_, _ = callFor(t.Context(), r, nil, "a", "hello", "{}")
	waiting := func() int {
		stacks := make([]byte, 4<<20)
		return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), ").awaitAccess(")
	}
	for limit := time.After(10 * time.Second); waiting() != 1; {
		select {
		case <-limit:
			t.Fatalf("%d goroutines wait", waiting())
		default:
			runtime.Gosched()
		}
	}
	waitShown(t, r, live.NeedsAccess)
}

// runSignedIn runs a registry whose upstream "a" needs a sign-in, and signs in.
func runSignedIn(t *testing.T, s *authtest.Server, isolation string) *Registry {
	t.Helper()
	accounts := accountsIn(t)
	r, _ := runWith(t, Options{Accounts: accounts}, map[string]any{"a": map[string]any{"url": s.URL, "isolation": isolation}})
	address, err := r.For(nil).BeginSignIn(t.Context(), "a", "http://127.0.0.1:1/callback", nil)
	if err != nil {
		t.Fatal(err)
	}
	back, err := authtest.Browse(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	account, err := accounts.Complete(t.Context(), "", back.Query())
	if err != nil {
		t.Fatal(err)
	}
	r.Resume(t.Context(), account)
	waitState(t, r, live.Ready)
	return r
}

// TestNoSignIn: what cannot be signed in to.
func TestNoSignIn(t *testing.T) {
	r, _ := run(t, map[string]any{"a": mcptest.Upstream(t)})
	all := r.For(nil)
	for _, name := range []string{"a", "nobody"} {
		if _, err := all.BeginSignIn(t.Context(), name, "http://127.0.0.1:1/callback", nil); err == nil {
			t.Errorf("%s: no error from BeginSignIn", name)
		}
		if _, err := all.BeginLocalSignIn(t.Context(), name, nil); err == nil {
			t.Errorf("%s: no error from BeginLocalSignIn", name)
		}
		if err := all.SignOut(t.Context(), name); err == nil {
			t.Errorf("%s: no error from SignOut", name)
		}
		if _, ok := all.SignInStatus(t.Context(), name); ok {
			t.Errorf("%s: it has a status", name)
		}
	}
	if r.MaxTimeout("a") != 15*time.Minute {
		t.Errorf("a call may take %s", r.MaxTimeout("a"))
	}
}

package signin

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/mcptest"
	"mcpx/internal/parts/signin/signintest"
	"mcpx/internal/policy"
	"mcpx/registry"
	"mcpx/registry/link"
	"mcpx/registry/live"
	"mcpx/registry/upstream"
)

// run runs a registry with the upstream "a" until the test ends.
func run(t *testing.T, x *Accounts, a map[string]any) *registry.Registry {
	t.Helper()
	mcptest.NothingLeft(t)
	text, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"a": a}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Parse(filepath.Join(t.TempDir(), "config.json"), text, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	guide := Guide{Profile: "default", Address: func() string { return "" }}
	r := registry.New(&c.Profiles[0], registry.Options{
		Log: zerolog.Nop(), Version: "1.2.3", MessageBytes: 1 << 20, ConnectsAtOnce: 2, Account: x.Hook, SignIn: guide.How,
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return r
}

// accountsIn returns accounts whose tokens are in a folder of the test.
func accountsIn(t *testing.T) *Accounts {
	t.Helper()
	return New(NewFiles(testFolder(t), config.TokensFile, nil, nil), zerolog.Nop())
}

// callFor calls a tool of the upstream "a" for a client.
func callFor(t *testing.T, r *registry.Registry, c upstream.Client, tool string) error {
	t.Helper()
	params, _ := json.Marshal(map[string]any{"name": tool, "arguments": struct{}{}})
	_, err := r.Call(t.Context(), "a", upstream.Request{Method: "tools/call", Params: params, Meta: []byte("{}"), Client: c})
	return err
}

// named is a client that only has a name.
type named struct {
	upstream.Client
	name string
}

func (c named) ID() string             { return c.name }
func (c named) Owner() string          { return c.name }
func (c named) Caller() *policy.Caller { return nil }
func (c named) Notify(string, []byte)  {}

// waitState waits until the upstream "a" is in a state.
func waitState(t *testing.T, r *registry.Registry, want live.State) *live.Upstream {
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
func waitShown(t *testing.T, r *registry.Registry, want live.State) {
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

// browse is a person who opens an address and agrees.
func browse(t *testing.T, address string) {
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
	s := signintest.New(t)
	s.CallScope = "write"
	accounts := accountsIn(t)
	r := run(t, accounts, map[string]any{"url": s.URL})
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

	all := viewOf(r, nil)
	address, err := all.begin(t.Context(), "a", "http://127.0.0.1:1/callback", nil)
	if err != nil {
		t.Fatal(err)
	}
	waitState(t, r, live.SigningIn)
	if _, err := r.For(nil).Ready(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "is being signed in") {
		t.Errorf("while a person signs in: %v", err)
	}
	back, err := signintest.Browse(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	account, err := accounts.Complete(t.Context(), "", back.Query())
	if err != nil {
		t.Fatal(err)
	}
	r.Resume(t.Context(), account.Is)
	if err := all.signedIn(t.Context(), "a", nil); err != nil {
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
	if address, err = all.beginLocal(t.Context(), zerolog.Nop(), "a", []string{"write"}); err != nil {
		t.Fatal(err)
	}
	browse(t, address)
	if err := all.signedIn(t.Context(), "a", []string{"write"}); err != nil {
		t.Fatal(err)
	}
	waitShown(t, r, live.Ready) // without a call
	if _, err := r.Call(t.Context(), "a", upstream.Request{Method: "tools/call", Params: []byte(`{"name":"hello"}`)}); err != nil {
		t.Errorf("a call with more access: %v", err)
	}
	if status, ok := all.status(t.Context(), "a"); !ok || !status.SignedIn {
		t.Errorf("%+v %v", status, ok)
	}
	if err := all.signOut(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	waitState(t, r, live.NeedsSignIn)
}

// TestCallAfterSignInElsewhere: a call right after a sign-in in another process works.
func TestCallAfterSignInElsewhere(t *testing.T) {
	s := signintest.New(t)
	accounts := accountsIn(t)
	r := run(t, accounts, map[string]any{"url": s.URL})
	own := waitState(t, r, live.NeedsSignIn)
	other := accounts.For(own.Config)
	address, err := other.Begin(t.Context(), "http://127.0.0.1:1/callback", nil)
	if err != nil {
		t.Fatal(err)
	}
	back, err := signintest.Browse(t.Context(), address)
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
			s := signintest.New(t)
			r := runSignedIn(t, s, isolation)
			ann := named{name: "ann"}
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
				err := callFor(t, r, ann, row.tool)
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
	s := signintest.New(t)
	r := runSignedIn(t, s, "shared")
	for _, scope := range slices.Repeat([]string{"write", "read", ""}, 10) {
		s.CallScope = scope
		_ = callFor(t, r, nil, "hello")
	}
	s.CallScope = "write"
	_ = callFor(t, r, nil, "hello")
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
func runSignedIn(t *testing.T, s *signintest.Server, isolation string) *registry.Registry {
	t.Helper()
	accounts := accountsIn(t)
	r := run(t, accounts, map[string]any{"url": s.URL, "isolation": isolation})
	address, err := viewOf(r, nil).begin(t.Context(), "a", "http://127.0.0.1:1/callback", nil)
	if err != nil {
		t.Fatal(err)
	}
	back, err := signintest.Browse(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	account, err := accounts.Complete(t.Context(), "", back.Query())
	if err != nil {
		t.Fatal(err)
	}
	r.Resume(t.Context(), account.Is)
	waitState(t, r, live.Ready)
	return r
}

// TestDeniedStart: what people read about a server that responds with 401.
func TestDeniedStart(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="http://127.0.0.1:1/metadata"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	const signIn, headers = "needs sign-in, but its sign-in cannot be used: ", "authentication failed: HTTP status 401 Unauthorized; check its headers"
	for name, row := range map[string]struct {
		key    string
		value  any
		reason string
		cause  link.Cause
	}{
		"OAuth":            {"type", "http", signIn, ""},
		"OAuth SSE":        {"type", "sse", signIn, ""},
		"OAuth off":        {"auth", map[string]string{"flow": "none"}, headers, link.CauseAuth},
		"OAuth with a key": {"headers", map[string]string{"Authorization": "Bearer old"}, headers, link.CauseAuth},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, accountsIn(t), map[string]any{"url": server.URL, row.key: row.value})
			if u := r.Settled(t.Context(), "a"); u.State != live.Waiting || !strings.HasPrefix(u.Reason, row.reason) || u.Cause != row.cause {
				t.Errorf("%s, %q (%s), want %q (%s)", u.State, u.Reason, u.Cause, row.reason, row.cause)
			}
		})
	}
}

// TestNoSignIn: what cannot be signed in to.
func TestNoSignIn(t *testing.T) {
	r := run(t, accountsIn(t), map[string]any{"command": "mcpx-not-started", "start": "lazy"})
	all := viewOf(r, nil)
	for _, name := range []string{"a", "nobody"} {
		if _, err := all.begin(t.Context(), name, "http://127.0.0.1:1/callback", nil); err == nil {
			t.Errorf("%s: no error from begin", name)
		}
		if _, err := all.beginLocal(t.Context(), zerolog.Nop(), name, nil); err == nil {
			t.Errorf("%s: no error from beginLocal", name)
		}
		if err := all.signOut(t.Context(), name); err == nil {
			t.Errorf("%s: no error from signOut", name)
		}
		if _, ok := all.status(t.Context(), name); ok {
			t.Errorf("%s: it has a status", name)
		}
	}
	if r.MaxTimeout("a") != 15*time.Minute {
		t.Errorf("a call may take %s", r.MaxTimeout("a"))
	}
}

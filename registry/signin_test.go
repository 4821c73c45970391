package registry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"

	"mcpx/config"
	"mcpx/internal/rpc"
	"mcpx/registry/link"
	"mcpx/registry/live"
	"mcpx/registry/upstream"
)

// fakeAccount is an account whose person signs in with sign. tools/call needs the scope "write".
type fakeAccount struct {
	mu      sync.Mutex
	scopes  []string      // of the sign-in; nil: nobody has signed in
	known   []string      // the scopes when a request last used them
	changed chan struct{} // closed when scopes change
}

func newAccount() *fakeAccount { return &fakeAccount{changed: make(chan struct{})} }

// sign signs in with these scopes, or out without any.
func (a *fakeAccount) sign(scopes ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.scopes = scopes
	close(a.changed)
	a.changed = make(chan struct{})
}

func (a *fakeAccount) is(other live.Account) bool { return other == live.Account(a) }

func (a *fakeAccount) Transport(base http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		var body []byte
		if r.Body != nil {
			body, _ = io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		a.mu.Lock()
		a.known = a.scopes
		a.mu.Unlock()
		switch {
		case !a.Has([]string{"read"}):
			return nil, &link.Denied{Failure: link.Failure{Reason: "needs sign-in", Cause: link.CauseSignIn}}
		case bytes.Contains(body, []byte(`"tools/call"`)) && !a.Has([]string{"write"}):
			return nil, &link.Denied{Failure: link.Failure{Reason: "needs more access", Cause: link.CauseAccess, Scopes: []string{"write"}}}
		}
		return base.RoundTrip(r)
	})
}

func (a *fakeAccount) Redact(text string) string { return text }

func (a *fakeAccount) Wait(ctx context.Context, scopes []string) error {
	for {
		a.mu.Lock()
		changed, isDone := a.changed, !slices.Equal(a.scopes, a.known)
		if len(scopes) > 0 {
			isDone = slices.Contains(a.scopes, scopes[0])
		}
		a.mu.Unlock()
		if isDone {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (a *fakeAccount) Changed(context.Context) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !slices.Equal(a.scopes, a.known)
}

func (a *fakeAccount) Has(scopes []string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Contains(a.known, scopes[0])
}

type roundTripper func(r *http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// waitShown waits until people see the upstream "a" in a state.
func waitShown(t *testing.T, r *Registry, want live.State) *live.Upstream {
	t.Helper()
	for {
		u := r.Catalog().Upstream("a")
		if u.Shown().State == want {
			return u.Shown()
		}
		if err := u.Superseded(t.Context()); err != nil {
			t.Fatalf("it is %s (%s), want %s", u.Shown().State, u.Shown().Reason, want)
		}
	}
}

// TestAccountStates: an upstream that needs a person, who signs in, grants more access and signs
// out.
func TestAccountStates(t *testing.T) {
	url := serve(t, scripted{"tools/call": func(w http.ResponseWriter, _ *http.Request, m rpc.Message) { jsonAnswer(w, m.ID, textResult("well")) }})
	account := newAccount()
	o := Options{
		Account: func(*config.Upstream) live.Account { return account },
		SignIn:  func(u *config.Upstream, _ []string) string { return "see " + u.Name },
	}
	r, _ := runWith(t, o, map[string]any{"a": map[string]any{"url": url, "type": "http"}})
	all := r.For(nil)
	if u := waitShown(t, r, live.NeedsSignIn); u.Reason != "needs sign-in: see a; then call again" || !u.NeedsPerson() {
		t.Errorf("%+v", u)
	}
	if got, err := all.Account(t.Context(), "a"); err != nil || !account.is(got) {
		t.Errorf("account %v, %v", got, err)
	}
	all.NoteSignIn("a")
	all.NoteSignIn("nobody")
	waitShown(t, r, live.SigningIn)
	account.sign("read")
	r.Resume(t.Context(), account.is)
	waitShown(t, r, live.Ready)

	var needed *live.Unavailable
	if _, err := callTool(t.Context(), r, "a", "a", "{}"); !errors.As(err, &needed) {
		t.Fatalf("a call without access: %v", err)
	}
	if scopes, ok := needed.NeedsSignIn(); !ok || !slices.Equal(scopes, []string{"write"}) || needed.Why() != "needs more access" {
		t.Errorf("%v %v %q", scopes, ok, needed.Why())
	}
	waitShown(t, r, live.NeedsAccess)
	account.sign("read", "write")
	waitShown(t, r, live.Ready) // without a call
	if _, err := callTool(t.Context(), r, "a", "a", "{}"); err != nil {
		t.Errorf("a call with more access: %v", err)
	}
	account.sign()
	r.SignedOut(account.is)
	waitShown(t, r, live.NeedsSignIn)
	account.sign("read", "write")
	if _, err := r.Call(t.Context(), "a", upstream.Request{Method: "tools/call", Params: []byte(`{"name":"a"}`)}); err != nil {
		t.Errorf("a call right after a sign-in elsewhere: %v", err)
	}
}

// TestNoAccount: without an account there is nothing to sign in to.
func TestNoAccount(t *testing.T) {
	r, _ := run(t, map[string]any{"a": map[string]any{"command": "mcpx-not-started", "start": "lazy"}})
	for _, name := range []string{"a", "nobody"} {
		if _, err := r.For(nil).Account(t.Context(), name); err == nil {
			t.Errorf("%s: it has an account", name)
		}
	}
}

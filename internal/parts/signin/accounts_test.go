package signin

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/parts/signin/signintest"
	"mcpx/internal/store"
	"mcpx/registry/link"
)

const redirect = "http://127.0.0.1:1/callback"

// newAccount returns an account for a server, with a store of the test.
func newAccount(t *testing.T, settings Settings) *Account {
	t.Helper()
	return New(testStore(t)(), zerolog.Nop()).account(settings, "")
}

// testStore returns a function that opens one store as another process would. TestShared
// runs the tests over other stores.
var testStore = func(t *testing.T) func() Vault {
	folder := testFolder(t)
	return func() Vault { return NewFiles(folder, config.TokensFile, nil, nil) }
}

func testFolder(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "tokens")
}

// signIn signs in like a person with a browser.
func signIn(t *testing.T, a *Account, scopes ...string) {
	t.Helper()
	address, err := a.Begin(t.Context(), redirect, scopes)
	if err != nil {
		t.Fatal(err)
	}
	if err := complete(t, a, address); err != nil {
		t.Fatal(err)
	}
}

func complete(t *testing.T, a *Account, address string) error {
	t.Helper()
	back, err := signintest.Browse(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.accounts.Complete(t.Context(), a.caller, back.Query())
	return err
}

// call posts a message to the server through the account.
func call(t *testing.T, a *Account, method string) (status int, err error) {
	t.Helper()
	client := http.Client{Transport: a.Transport(http.DefaultTransport)}
	response, err := client.Post(a.settings.URL, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"`+method+`"}`))
	if err != nil {
		return 0, err
	}
	_ = response.Body.Close()
	return response.StatusCode, nil
}

func mustCall(t *testing.T, a *Account) {
	t.Helper()
	if status, err := call(t, a, "tools/call"); err != nil || status != http.StatusOK {
		t.Fatalf("call: %d, %v", status, err)
	}
}

func TestSignInAndUse(t *testing.T) {
	s := signintest.New(t)
	a := newAccount(t, Settings{URL: s.URL + "?team=1"})
	var denied *link.Denied
	if _, err := call(t, a, "tools/list"); !errors.As(err, &denied) || denied.Cause != link.CauseSignIn {
		t.Fatalf("before the sign-in: %v, want CauseSignIn", err)
	}
	signIn(t, a)
	mustCall(t, a)

	asked := s.Forms("/authorize")[0]
	for name, want := range map[string]string{"resource": s.URL, "scope": "basic", "redirect_uri": redirect, "code_challenge_method": "S256"} {
		if asked.Get(name) != want {
			t.Errorf("authorization request: %s=%q, want %q", name, asked.Get(name), want)
		}
	}
	for name, want := range map[string]any{"client_name": "mcpx", "application_type": "native", "token_endpoint_auth_method": "none"} {
		if got := s.Registration()[name]; got != want {
			t.Errorf("registration: %s=%v, want %v", name, got, want)
		}
	}
	status, err := a.Status(t.Context())
	if err != nil || !status.SignedIn || status.Issuer != s.Issuer || !slices.Equal(status.Scopes, []string{"basic"}) || !status.Renews {
		t.Errorf("status: %+v, %v", status, err)
	}
}

// TestSharedStore: an account of another process finds the sign-in, and other callers
// and other servers do not.
func TestSharedStore(t *testing.T) {
	s := signintest.New(t)
	open := testStore(t)
	signIn(t, New(open(), zerolog.Nop()).account(Settings{URL: s.URL}, ""))
	for name, row := range map[string]struct {
		settings Settings
		caller   string
		want     bool
	}{
		"the same":       {Settings{URL: s.URL}, "", true},
		"a fragment":     {Settings{URL: s.URL + "#top"}, "", true},
		"another caller": {Settings{URL: s.URL}, "alice", false},
		"another query":  {Settings{URL: s.URL + "?team=2"}, "", false},
		"another client": {Settings{URL: s.URL, Auth: config.Auth{ClientID: "mine"}}, "", false},
		"another issuer": {Settings{URL: s.URL, Auth: config.Auth{Issuer: "https://issuer.example"}}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			token, err := New(open(), zerolog.Nop()).account(row.settings, row.caller).Token(t.Context())
			if err != nil || (token != "") != row.want {
				t.Errorf("token %q, %v; want one: %v", token, err, row.want)
			}
		})
	}
}

// TestFilePermissions: only the user can read tokens. If others could, mcpx repairs the
// permissions and reports it. It refuses a file that is a link.
func TestFilePermissions(t *testing.T) {
	s := signintest.New(t)
	folder := testFolder(t)
	var repaired []string
	v := NewFiles(folder, config.TokensFile, nil, func(path string) { repaired = append(repaired, path) })
	a := New(v, zerolog.Nop()).account(Settings{URL: s.URL}, "")
	signIn(t, a)
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 2 {
		t.Fatalf("files: %v, %v; want the token and its lock", entries, err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", e.Name(), info.Mode(), err)
		}
	}
	file := filepath.Join(folder, a.key+".json")
	if err := errors.Join(os.Chmod(folder, 0o755), os.Chmod(file, 0o644)); err != nil { //nolint:gosec // on purpose
		t.Fatal(err)
	}
	for range 2 {
		if status, err := a.Status(t.Context()); err != nil || !status.SignedIn {
			t.Errorf("tokens that others could read: %+v, %v", status, err)
		}
	}
	if want := []string{folder, file}; !slices.Equal(repaired, want) {
		t.Errorf("repaired %q, want %q once", repaired, want)
	}
	for path, want := range map[string]os.FileMode{folder: 0o700, file: 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	if err := errors.Join(os.Rename(file, file+".moved"), os.Symlink(file+".moved", file)); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Status(t.Context()); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a link: %v", err)
	}
}

// TestRefresh: the token is refreshed at 80 % of its life, with resource, and network
// trouble keeps the old one while it lives.
func TestRefresh(t *testing.T) {
	s := signintest.New(t)
	s.Life = 1000
	a := newAccount(t, Settings{URL: s.URL})
	now := time.Now()
	a.now = func() time.Time { return now }
	signIn(t, a)
	first, _ := a.Token(t.Context())
	for _, row := range []struct {
		after     time.Duration
		down      bool
		refreshes int
		fails     bool
	}{
		{after: 799 * time.Second, refreshes: 0},
		{after: 801 * time.Second, down: true, refreshes: 1},
		{after: 802 * time.Second, down: true, refreshes: 1}, // not again at once
		{after: 999 * time.Second, down: true, refreshes: 2},
		{after: 1001 * time.Second, down: true, refreshes: 3, fails: true},
		{after: 1002 * time.Second, refreshes: 4},
	} {
		now = time.Now().Add(row.after)
		s.Handlers = map[string]http.HandlerFunc{}
		if row.down {
			s.Handlers["/token"] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }
		}
		token, err := a.Token(t.Context())
		if (err != nil) != row.fails || s.Grants("refresh_token") != row.refreshes || !row.fails && (token == first) != (row.refreshes < 4) {
			t.Errorf("after %s: %q (first %q), %v, %d refreshes; want %d", row.after, token, first, err, s.Grants("refresh_token"), row.refreshes)
		}
	}
	last := s.Forms("/token")
	if got := last[len(last)-1].Get("resource"); got != s.URL {
		t.Errorf("the refresh has resource=%q", got)
	}
	mustCall(t, a)
}

// TestRefused: a 401 leads to one refresh and one retry; a dead refresh token leads to a
// *link.Denied, once, and nothing is deleted.
func TestRefused(t *testing.T) {
	s := signintest.New(t)
	a := newAccount(t, Settings{URL: s.URL})
	signIn(t, a)
	s.Expire()
	mustCall(t, a)
	if got := s.Grants("refresh_token"); got != 1 {
		t.Errorf("%d refreshes after a 401", got)
	}
	s.Revoke()
	var denied *link.Denied
	for range 3 {
		if _, err := call(t, a, "tools/call"); !errors.As(err, &denied) || denied.Cause != link.CauseSignIn {
			t.Fatalf("after the revocation: %v", err)
		}
	}
	if got := s.Grants("refresh_token"); got != 2 {
		t.Errorf("%d refreshes, want one more than before", got)
	}
	if status, err := a.Status(t.Context()); err != nil || status.Issuer == "" {
		t.Errorf("the sign-in was deleted: %+v, %v", status, err)
	}
}

// TestOtherProcessRefreshed: an account whose token was replaced by another process uses
// the new one instead of refreshing.
func TestOtherProcessRefreshed(t *testing.T) {
	s := signintest.New(t)
	open := testStore(t)
	one, two := New(open(), zerolog.Nop()).account(Settings{URL: s.URL}, ""), New(open(), zerolog.Nop()).account(Settings{URL: s.URL}, "")
	signIn(t, one)
	mustCall(t, two)
	s.Expire()
	mustCall(t, one)
	mustCall(t, two)
	if got := s.Grants("refresh_token"); got != 1 || s.Reused() != 0 {
		t.Errorf("%d refreshes, %d reused", got, s.Reused())
	}
}

// TestStoredTokenExpired: a token that another process stored has expired as well. It is
// refreshed, and nobody has to sign in.
func TestStoredTokenExpired(t *testing.T) {
	s := signintest.New(t)
	open := testStore(t)
	one, two := New(open(), zerolog.Nop()).account(Settings{URL: s.URL}, ""), New(open(), zerolog.Nop()).account(Settings{URL: s.URL}, "")
	signIn(t, one)
	mustCall(t, two)
	s.Expire()
	mustCall(t, one)
	s.Expire()
	mustCall(t, two)
	if got := s.Grants("refresh_token"); got != 2 || s.Reused() != 0 {
		t.Errorf("%d refreshes, %d reused", got, s.Reused())
	}
}

// TestRefusedAlways: a server that refuses every token gets one new one for each call.
func TestRefusedAlways(t *testing.T) {
	s := signintest.New(t)
	a := newAccount(t, Settings{URL: s.URL})
	signIn(t, a)
	s.Handlers = map[string]http.HandlerFunc{"/mcp": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+s.Issuer+`/.well-known/oauth-protected-resource/mcp"`)
		w.WriteHeader(http.StatusUnauthorized)
	}}
	before := s.Count("/mcp")
	var denied *link.Denied
	if _, err := call(t, a, "tools/call"); !errors.As(err, &denied) || denied.Cause != link.CauseSignIn {
		t.Errorf("%v", err)
	}
	if sent, refreshes := s.Count("/mcp")-before, s.Grants("refresh_token"); sent != 2 || refreshes != 1 {
		t.Errorf("sent %d times, %d refreshes", sent, refreshes)
	}
}

// TestSingleFlight: many requests at once refresh once, also with several accounts.
func TestSingleFlight(t *testing.T) {
	s := signintest.New(t)
	open := testStore(t)
	accounts := []*Account{New(open(), zerolog.Nop()).account(Settings{URL: s.URL}, ""), New(open(), zerolog.Nop()).account(Settings{URL: s.URL}, "")}
	signIn(t, accounts[0])
	for round := 1; round <= 5; round++ {
		s.Expire()
		var calls sync.WaitGroup
		for i := range 20 {
			calls.Go(func() {
				if status, err := call(t, accounts[i%2], "tools/call"); err != nil || status != http.StatusOK {
					t.Errorf("%d, %v", status, err)
				}
			})
		}
		calls.Wait()
		if got := s.Grants("refresh_token"); got != round || s.Reused() != 0 {
			t.Fatalf("round %d: %d refreshes, %d reused", round, got, s.Reused())
		}
	}
}

// TestCanceledRefresh: a refresh that has begun is finished and saved, even if its
// request is canceled meanwhile.
func TestCanceledRefresh(t *testing.T) {
	s := signintest.New(t)
	a := newAccount(t, Settings{URL: s.URL})
	signIn(t, a)
	s.Expire()
	ctx, cancel := context.WithCancel(t.Context())
	s.Handlers = map[string]http.HandlerFunc{"/token": func(w http.ResponseWriter, r *http.Request) {
		cancel()
		s.Token(w, r)
	}}
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader(`{"id":1,"method":"ping"}`))
	if response, err := a.Transport(http.DefaultTransport).RoundTrip(r); err == nil {
		_ = response.Body.Close()
		t.Error("a canceled request succeeded")
	}
	mustCall(t, a)
	if got := s.Grants("refresh_token"); got != 1 {
		t.Errorf("%d refreshes", got)
	}
}

// brokenKeeper is a store that cannot save.
type brokenKeeper struct {
	Keeper
	broken bool
}

func (s *brokenKeeper) Lock(ctx context.Context, key string) (store.Lock, error) {
	lock, err := s.Keeper.Lock(ctx, key)
	set := lock.Set
	lock.Set = func(ctx context.Context, value []byte, keep time.Duration) error {
		if s.broken {
			return errors.New("the disk is full")
		}
		return set(ctx, value, keep)
	}
	return lock, err
}

// TestUnsavedToken: if a new token cannot be saved, this process goes on with it, and
// does not use the old refresh token again.
func TestUnsavedToken(t *testing.T) {
	s := signintest.New(t)
	vault := testStore(t)()
	broken := &brokenKeeper{Keeper: vault.Keeper}
	vault.Keeper = broken
	a := New(vault, zerolog.Nop()).account(Settings{URL: s.URL}, "")
	signIn(t, a)
	broken.broken = true
	for range 3 {
		s.Expire()
		mustCall(t, a)
	}
	broken.broken = false
	s.Expire()
	mustCall(t, a)
	if got := s.Grants("refresh_token"); got != 4 || s.Reused() != 0 {
		t.Errorf("%d refreshes, %d reused", got, s.Reused())
	}
	mustCall(t, New(vault, zerolog.Nop()).account(Settings{URL: s.URL}, ""))
}

func TestStepUp(t *testing.T) {
	s := signintest.New(t)
	s.CallScope = "write"
	a := newAccount(t, Settings{URL: s.URL})
	signIn(t, a)
	var denied *link.Denied
	if _, err := call(t, a, "tools/call"); !errors.As(err, &denied) || !slices.Equal(denied.Scopes, []string{"write"}) {
		t.Fatalf("without the scope: %v", err)
	}
	if s.Grants("refresh_token") != 0 {
		t.Error("a refresh cannot bring more scopes")
	}
	signIn(t, a, "write")
	mustCall(t, a)
	if got := s.Forms("/authorize")[1].Get("scope"); got != "basic write" {
		t.Errorf("the second sign-in asks for %q, want what was granted before, too", got)
	}
	if got := s.Count("/register"); got != 1 {
		t.Errorf("%d registrations with one redirect", got)
	}
}

func TestLogout(t *testing.T) {
	s := signintest.New(t)
	open := testStore(t)
	a := New(open(), zerolog.Nop()).account(Settings{URL: s.URL}, "")
	if was, err := a.Logout(t.Context()); was || err != nil {
		t.Errorf("without a sign-in: %v, %v", was, err)
	}
	signIn(t, a)
	if was, err := a.Logout(t.Context()); !was || err != nil {
		t.Errorf("%v, %v", was, err)
	}
	if got := s.Forms("/revoke"); len(got) != 1 || !strings.HasPrefix(got[0].Get("token"), "refresh-") || got[0].Get("client_id") != "client-1" {
		t.Errorf("revocation: %v", got)
	}
	if token, err := a.Token(t.Context()); token != "" || err != nil {
		t.Errorf("token %q, %v", token, err)
	}
	signIn(t, a)
	other := New(open(), zerolog.Nop()).account(Settings{URL: s.URL, Auth: config.Auth{ClientID: "mine"}}, "") // the config has changed
	if was, err := other.Logout(t.Context()); !was || err != nil || !a.Changed(t.Context()) {
		t.Errorf("tokens of another client: %v, %v", was, err)
	}
}

// TestWait: Wait returns after a sign-in by another process, also one before Wait.
func TestWait(t *testing.T) {
	s := signintest.New(t)
	open := testStore(t)
	a, other := New(open(), zerolog.Nop()).account(Settings{URL: s.URL}, ""), New(open(), zerolog.Nop()).account(Settings{URL: s.URL}, "")
	if _, err := call(t, a, "tools/list"); err == nil {
		t.Fatal("no sign-in was needed")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.Wait(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Fatalf("nothing has changed: %v", err)
	}
	signIn(t, other)
	if err := a.Wait(t.Context(), nil); err != nil {
		t.Fatalf("after a sign-in: %v", err)
	}
	mustCall(t, a)
}

// TestSignInBeforeWait: Wait returns at once if somebody has signed in with this account since
// the upstream has refused it.
func TestSignInBeforeWait(t *testing.T) {
	s := signintest.New(t)
	a := New(testStore(t)(), zerolog.Nop()).account(Settings{URL: s.URL}, "")
	if _, err := call(t, a, "tools/list"); err == nil {
		t.Fatal("no sign-in was needed")
	}
	signIn(t, a)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := a.Wait(ctx, nil); err != nil {
		t.Fatal(err)
	}
	mustCall(t, a)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.Wait(canceled, nil); !errors.Is(err, context.Canceled) {
		t.Fatalf("nothing has changed: %v", err)
	}
}

// TestStatusWhileOneWaits: Wait notices a sign-in by another process, also if Status has read
// it before.
func TestStatusWhileOneWaits(t *testing.T) {
	s := signintest.New(t)
	open := testStore(t)
	a, other := New(open(), zerolog.Nop()).account(Settings{URL: s.URL}, ""), New(open(), zerolog.Nop()).account(Settings{URL: s.URL}, "")
	if _, err := call(t, a, "tools/list"); err == nil {
		t.Fatal("no sign-in was needed")
	}
	waiting := make(chan error, 1)
	go func() { waiting <- a.Wait(t.Context(), nil) }()
	signIn(t, other)
	for range 2 {
		if status, err := a.Status(t.Context()); err != nil || !status.SignedIn {
			t.Errorf("%+v, %v", status, err)
		}
		if !a.Changed(t.Context()) {
			t.Error("the account does not know about the sign-in, and nothing has changed")
		}
	}
	if err := <-waiting; err != nil {
		t.Error(err)
	}
	mustCall(t, a)
}

// TestOrigin: the token goes to the upstream's origin only.
func TestOrigin(t *testing.T) {
	s := signintest.New(t)
	a := newAccount(t, Settings{URL: s.URL})
	signIn(t, a)
	token, _ := a.Token(t.Context())
	for address, want := range map[string]bool{
		s.URL:                     true,
		s.Issuer + "/other":       true,
		"https://" + s.URL[7:]:    false,
		"http://localhost:1/mcp":  false,
		"http://127.0.0.1:1/mcp":  false,
		"http://evil.example/mcp": false,
	} {
		var sent http.Header
		record := roundTripper(func(r *http.Request) (*http.Response, error) {
			sent = r.Header
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
		})
		u, _ := url.Parse(address)
		response, err := a.Transport(record).RoundTrip(&http.Request{Method: http.MethodGet, URL: u, Header: http.Header{}})
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if got := sent.Get("Authorization") == "Bearer "+token; got != want {
			t.Errorf("%s: token sent: %v", address, got)
		}
	}
}

type roundTripper func(r *http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Package signin adds sign-in to upstreams that require OAuth 2.1, as MCP's authorization
// pages describe it. Hooks: link.Account and live.Account (an [Account]), live.Options.SignIn
// and executor.SignIn (a [Guide]), httpfront.Route ([Pages]); commands: mcpx auth.
//
// An [Account] is the sign-in of one upstream for one caller. Its [Account.Transport] adds
// the access token to requests, refreshes it, and returns a [*link.Denied] error if a
// person has to sign in. It never waits for a person. A person signs in with [Account.Begin] and
// [Accounts.Complete], which a command line and a web page can both use, or with
// [Account.Device].
//
// Tokens are in a [Vault] that several processes share. A process holds the lock of a key
// while it reads the credentials, decides, requests a new token and writes it, so that
// two processes never use the same refresh token.
//
// Everything that an upstream or an authorization server sends is hostile input: see
// guard.go.
package signin

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/redact"
	"mcpx/internal/store"
	"mcpx/registry/live"
)

// Settings describe how mcpx signs in to one upstream. Only URL is required.
type Settings struct {
	URL string // of the upstream
	config.Auth
}

// Accounts are the sign-ins of a process. Its methods may be called concurrently.
type Accounts struct {
	vault Vault
	log   zerolog.Logger

	mu      sync.Mutex
	pending []*pending // the oldest first
}

// New returns the accounts whose credentials are in a vault. It reads nothing yet.
func New(vault Vault, log zerolog.Logger) *Accounts {
	return &Accounts{vault: vault, log: log}
}

// For returns the account that signs in to an upstream, for its caller or for everyone. It
// returns nil if the upstream does not use OAuth: a process, one with an Authorization header,
// or one whose auth.flow is none.
func (x *Accounts) For(u *config.Upstream) *Account {
	if u.URL == "" || u.Auth.Flow == config.FlowNone {
		return nil
	}
	for name := range u.Headers {
		if http.CanonicalHeaderKey(name) == "Authorization" {
			return nil
		}
	}
	return x.account(Settings{u.URL, u.Auth}, u.Caller)
}

// Hook is For as the hook live.Options.Account.
func (x *Accounts) Hook(u *config.Upstream) live.Account {
	if a := x.For(u); a != nil {
		return a
	}
	return nil
}

// account returns the account for an upstream and a caller; the caller "" stands for
// everyone. Accounts for the same upstream and caller share their credentials.
func (x *Accounts) account(s Settings, caller string) *Account {
	sum := sha256.Sum256([]byte(withoutFragment(s.URL) + "\n" + caller))
	return &Account{
		accounts: x,
		settings: s,
		caller:   caller,
		origin:   originOf(s.URL),
		key:      fmt.Sprintf("token-%x", sum[:16]),
		client:   newGuard(s).client(),
		now:      time.Now,
		turn:     make(chan struct{}, 1),
		looking:  make(chan struct{}, 1),
	}
}

// Account is the sign-in of one upstream for one caller. Its methods may be called
// concurrently.
type Account struct {
	accounts *Accounts
	settings Settings
	caller   string
	origin   string       // of the upstream: where the token may go
	key      string       // in the vault
	client   *http.Client // for metadata and tokens, not for the upstream
	now      func() time.Time

	turn    chan struct{} // held while the credentials are replaced
	lock    store.Lock    // of the key; whoever holds turn uses it
	looking chan struct{} // held during discovery on the path of a request

	found atomic.Pointer[discovery] // cached until the credentials change

	mu      sync.Mutex
	read    bool         // the vault has been read
	creds   *credentials // nil: nobody has signed in
	stored  string       // what the vault had then, as it is there
	denied  *string      // what stored was when the upstream refused the last request; nil: it did not
	lost    lostError    // why stored cannot be used; "" if it can
	unsaved bool         // creds are newer than stored, and could not be saved
	refused string       // a refresh token that the server does not accept
	retryAt time.Time    // no refresh before, after network trouble
	trouble error        // that network trouble
}

// Is reports whether two accounts share their credentials.
func (a *Account) Is(other live.Account) bool {
	o, ok := other.(*Account)
	return ok && a.key == o.key
}

// Settings returns how the account signs in.
func (a *Account) Settings() Settings { return a.settings }

// pollEvery is how often Wait looks for a change by another process.
const pollEvery = time.Second

// Wait implements live.Account. It goes on if the vault cannot be used for a while.
func (a *Account) Wait(ctx context.Context, scopes []string) error {
	if len(scopes) > 0 {
		return a.granted(ctx, scopes)
	}
	if _, read := a.known(); !read {
		if _, err := a.load(ctx); err != nil {
			return err
		}
	}
	known := a.lastUsed() // another goroutine may load the change and set a.stored
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for !a.differs(ctx, known) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// Changed implements live.Account.
func (a *Account) Changed(ctx context.Context) bool {
	_, read := a.known()
	return read && a.differs(ctx, a.lastUsed())
}

// lastUsed returns the stored sign-in that the upstream has refused, or else the one that the
// account knows: somebody may have signed in since the refusal.
func (a *Account) lastUsed() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.denied != nil {
		return *a.denied
	}
	return a.stored
}

// setDenied sets or clears what lastUsed returns.
func (a *Account) setDenied(isDenied bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.denied = nil
	if isDenied {
		used := a.stored
		a.denied = &used
	}
}

// differs reports whether the stored sign-in is not the known one. A vault that cannot be read
// counts as unchanged.
func (a *Account) differs(ctx context.Context, known string) bool {
	stored, err := a.accounts.vault.Keeper.Get(ctx, a.key)
	return err == nil && string(stored) != known
}

// Redact implements link.Account: it replaces the tokens of the sign-in. The secrets of the
// config are not its business.
func (a *Account) Redact(text string) string {
	c, _ := a.known()
	if c == nil {
		return text
	}
	return redact.NewTokens(c.Access, c.Refresh, c.Client.Secret).Redact(text)
}

func withoutFragment(address string) string {
	address, _, _ = strings.Cut(address, "#")
	return address
}

// originOf returns the scheme and host of a URL, "" if it has none.
func originOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + strings.ToLower(u.Host)
}

// resourceOf returns the upstream's identifier as a resource: its URL without query and
// fragment.
func resourceOf(address string) string {
	address, _, _ = strings.Cut(withoutFragment(address), "?")
	return address
}

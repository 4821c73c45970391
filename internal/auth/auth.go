// Package auth signs mcpx in to upstreams that require OAuth 2.1, as MCP's authorization
// pages describe it.
//
// An [Account] is the sign-in of one upstream for one caller. Its [Account.Transport] adds
// the access token to requests, refreshes it, and returns a [*Required] error if a person
// has to sign in. It never waits for a person. A person signs in with [Account.Begin] and
// [Accounts.Complete], which a command line and a web page can both use, or with
// [Account.Device].
//
// Tokens are in a [Vault] that several processes share. A process holds the lock of a key
// while it reads the credentials, decides, requests a new token and writes it, so that
// two processes never use the same refresh token.
//
// Everything that an upstream or an authorization server sends is hostile input: see
// guard.go.
package auth

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

	"mcpx/internal/redact"
	"mcpx/internal/store"
)

// Settings describe how mcpx signs in to one upstream. Only URL is required.
type Settings struct {
	URL               string // of the upstream
	Flow              Flow
	ClientID          string // a client that was registered by hand
	ClientSecret      string
	Issuer            string   // the only authorization server that may be used
	Scopes            []string // instead of those that the upstream names
	ClientMetadataURL string   // the client ID metadata document of this client
	RedirectPort      int      // of the loopback listener; 0: any free port
	PrivateKey        string   // PEM; signs client assertions instead of a secret
	SigningAlg        string   // of the assertions; empty: the key decides
}

// Flow is the way to get a token.
type Flow string

// The flows. Auto is the browser where there is one, else the device flow.
const (
	FlowAuto              Flow = "auto"
	FlowBrowser           Flow = "browser"
	FlowDevice            Flow = "device"
	FlowClientCredentials Flow = "client_credentials"
	FlowNone              Flow = "none"
)

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

// Account returns the account for an upstream and a caller; the caller "" stands for
// everyone. Accounts for the same upstream and caller share their credentials.
func (x *Accounts) Account(s Settings, caller string) *Account {
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
	key      string       // in the store
	client   *http.Client // for metadata and tokens, not for the upstream
	now      func() time.Time

	turn    chan struct{} // held while the credentials are replaced
	lock    store.Lock    // of the key; whoever holds turn uses it
	looking chan struct{} // held during discovery on the path of a request

	found atomic.Pointer[discovery] // cached until the credentials change

	mu      sync.Mutex
	read    bool         // the store has been read
	creds   *credentials // nil: nobody has signed in
	stored  string       // what the store had then, as it is there
	lost    lostError    // why stored cannot be used; "" if it can
	unsaved bool         // creds are newer than stored, and could not be saved
	refused string       // a refresh token that the server does not accept
	retryAt time.Time    // no refresh before, after network trouble
	trouble error        // that network trouble
}

// Required is the error for a request that needs a person to sign in first.
type Required struct {
	Scopes  []string // the access that is missing; empty: sign in
	Problem error    // why signing in will fail as well, if that is known
	lost    lostError
}

func (e *Required) Error() string {
	switch {
	case len(e.Scopes) > 0:
		return "needs more access (" + strings.Join(e.Scopes, " ") + ")"
	case e.Problem != nil:
		return "needs sign-in, but its sign-in cannot be used: " + e.Problem.Error()
	case e.lost != "":
		return "needs sign-in, because " + e.lost.Error()
	}
	return "needs sign-in"
}

// Unsent is the error for a request that was not run, because its token could not be read,
// refreshed or replaced.
type Unsent struct{ error }

func (e *Unsent) Unwrap() error { return e.error }

// Is reports whether two accounts share their credentials.
func (a *Account) Is(other *Account) bool { return a.key == other.key }

// Settings returns how the account signs in.
func (a *Account) Settings() Settings { return a.settings }

// pollEvery is how often Wait looks for a change by another process.
const pollEvery = time.Second

// Wait returns when somebody has signed in or out since the account last read its
// credentials, in this process or another one. It goes on if the store cannot be used for a
// while.
func (a *Account) Wait(ctx context.Context) error {
	if _, read := a.known(); !read {
		if _, err := a.load(ctx); err != nil {
			return err
		}
	}
	a.mu.Lock()
	known := a.stored // another goroutine may load the change and set a.stored
	a.mu.Unlock()
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

// Changed reports whether Wait would return at once.
func (a *Account) Changed(ctx context.Context) bool {
	a.mu.Lock()
	read, known := a.read, a.stored
	a.mu.Unlock()
	return read && a.differs(ctx, known)
}

// differs reports whether the stored sign-in is not the known one. A vault that cannot be read
// counts as unchanged.
func (a *Account) differs(ctx context.Context, known string) bool {
	stored, err := a.accounts.vault.Store.Get(ctx, a.key)
	return err == nil && string(stored) != known
}

// Redact replaces the tokens of the sign-in in a text by ***. The secrets of the config
// are not its business. A nil Account has no tokens.
func (a *Account) Redact(text string) string {
	if a == nil {
		return text
	}
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

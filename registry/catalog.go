package registry

import (
	"context"
	"slices"
	"sync"
	"time"

	"mcpx/config"
	"mcpx/internal/child"
	"mcpx/internal/link"
	"mcpx/internal/lockfile"
	"mcpx/internal/rawjson"
	"mcpx/registry/lists"
)

// Catalog is the state of a profile's upstreams at one moment, with their lists. It is
// immutable: a new catalog replaces it.
type Catalog struct {
	Upstreams []*Upstream // in config order
	byName    map[string]*Upstream
	perUser   []*Upstream // with isolation "user"
	derived   sync.Map    // see Derived
}

// Derived returns a value that a user of the registry derives from the catalog, by the name
// of its kind. It lives as long as the catalog, and may be made twice.
func (c *Catalog) Derived(kind string, from func(c *Catalog) any) any {
	if value, ok := c.derived.Load(kind); ok {
		return value
	}
	value, _ := c.derived.LoadOrStore(kind, from(c))
	return value
}

// setPerUser sets perUser.
func (c *Catalog) setPerUser() {
	c.perUser = nil
	for _, u := range c.Upstreams {
		if u.config != nil && u.config.Isolation == config.PerUser {
			c.perUser = append(c.perUser, u)
		}
	}
}

// Upstream finds an upstream by its exact name, nil if there is none.
func (c *Catalog) Upstream(name string) *Upstream { return c.byName[name] }

// with returns the catalog with one upstream replaced.
func (c *Catalog) with(u *Upstream) *Catalog {
	next := &Catalog{Upstreams: slices.Clone(c.Upstreams), byName: make(map[string]*Upstream, len(c.byName))}
	for i, old := range next.Upstreams {
		if old.Name == u.Name {
			next.Upstreams[i] = u
		}
		next.byName[old.Name] = next.Upstreams[i]
	}
	next.setPerUser()
	return next
}

// State is the state of an upstream.
type State string

// The states.
const (
	Idle     State = "idle"     // not running; a request starts it
	Starting State = "starting" // connecting, or queued to connect
	Ready    State = "ready"
	Waiting  State = "waiting" // failed, and will be started again: at RetryAt, or by the next request
	Failed   State = "failed"  // its configuration cannot work
	Stopped  State = "stopped" // by a person, or because mcpx is stopping

	NeedsSignIn State = "needs sign-in"     // a person must sign in to it
	SigningIn   State = "signing in"        // a person is doing that in a browser
	NeedsAccess State = "needs more access" // a person must allow mcpx to do more
)

// States are all states, in the order of a listing.
var States = []State{Idle, Starting, Ready, NeedsSignIn, SigningIn, NeedsAccess, Waiting, Failed, Stopped}

// Upstream is the state of one upstream at one moment, with its lists. While it is down,
// it has the last known lists.
type Upstream struct {
	Name         string
	Description  string // from the config
	State        State
	Reason       string     // why it is not ready
	Cause        link.Cause // the kind of failure
	Stderr       []string   // the last lines of stderr before the last failure
	FailedAt     time.Time  // the last failure
	RetryAt      time.Time  // the next start, while waiting
	StartupTime  time.Duration
	ListedAt     time.Time // when its lists were read; zero: never
	Revision     string    // of MCP, as negotiated
	Software     string    // its own name and version, as the upstream declared them
	Capabilities []byte    // as the upstream declared them
	ToolsOnly    bool      // the client may use some of its tools, and nothing else of it
	lists.Lists

	whole      *Upstream     // in a View: the upstream that this is a part of
	failure    *link.Failure // for which a person must act; nil if there is none
	isStale    bool          // the lists are from before the next start
	config     *config.Upstream
	supervisor *supervisor
	session    *Session
	stderr     *child.Stderr // of the child of the session; nil without one
	changed    chan struct{} // closed when a newer Upstream replaces this one
}

// NewUpstream returns an upstream without a session that is always ready. Its user
// handles the calls.
func NewUpstream(name string, tools []lists.Item) *Upstream {
	return &Upstream{Name: name, State: Ready, Lists: lists.WithTools(tools)}
}

// Transport returns how the upstream is connected.
func (u *Upstream) Transport() config.Transport { return u.config.Transport }

// Origin returns the upstream's command or URL, for the lock file.
func (u *Upstream) Origin() lockfile.Origin { return u.config.Origin() }

// Pin returns how the config compares the upstream; empty for the default.
func (u *Upstream) Pin() config.Pin { return u.config.Pin }

// Config returns the upstream's config, which must not be changed.
func (u *Upstream) Config() *config.Upstream { return u.config }

// LatestStderr returns the last lines that the process of the shared session wrote to
// stderr, redacted; if there is no session, those before the last failure. Lines of
// per-client processes are only for their clients.
func (u *Upstream) LatestStderr() []string {
	if u.session == nil {
		return u.Stderr
	}
	if u.stderr != nil {
		return u.stderr.Lines()
	}
	return nil
}

// Unavailable returns the error for a call to an upstream that is not ready.
func (u *Upstream) Unavailable() error {
	return &Unavailable{Server: u.Name, Reason: u.Reason, Stderr: u.Stderr, RetryAt: u.RetryAt, failure: u.failure}
}

// InFirstStart reports whether the upstream starts for the first time, so that its
// lists may be known soon.
func (u *Upstream) InFirstStart() bool {
	return u.State == Starting && u.ListedAt.IsZero() && u.FailedAt.IsZero()
}

// NeedsStart reports whether a call must wait for the upstream's next start, which may
// change its lists.
func (u *Upstream) NeedsStart() bool {
	return u.isStale && (u.State == Idle || u.State == Starting || u.State == Waiting)
}

// mayStart reports whether a call can start the upstream.
func (u *Upstream) mayStart() bool {
	return slices.Contains([]State{Idle, Waiting, NeedsSignIn, NeedsAccess}, u.State)
}

// isListed reports whether the upstream's lists are known, and it can be ready again.
func (u *Upstream) isListed() bool {
	return !u.ListedAt.IsZero() && u.State != Failed && u.State != Stopped
}

// Has reports whether the upstream declared a capability.
func (u *Upstream) Has(capability string) bool {
	return !rawjson.IsNull(rawjson.Get(u.Capabilities, capability))
}

// superseded waits until a newer Upstream replaces this one in the catalog.
func (u *Upstream) superseded(ctx context.Context) error {
	select {
	case <-u.changed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

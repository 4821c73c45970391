package live

import (
	"context"
	"slices"
	"sync"
	"time"

	"mcpx/config"
	"mcpx/internal/policy"
	"mcpx/internal/rawjson"
	"mcpx/registry/child"
	"mcpx/registry/link"
	"mcpx/registry/lists"
)

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
// it has the last known lists. It is immutable once it is published: only the change
// function of Host.Publish may change it. Supervisor and Session are for the registry: what
// they return is not restricted to what a caller may see.
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

	Config     *config.Upstream // must not be changed; nil for an upstream of NewUpstream
	Supervisor *Supervisor      // nil for an upstream of NewUpstream
	Session    *Session         // nil unless the upstream is ready

	parts     *Kept[policy.Rules, *Upstream] // of Restrict
	failure   *link.Failure                  // for which a person must act; nil if there is none
	missing   *missingAccess                 // of a call that was refused; nil if there is none
	isStale   bool                           // the lists are from before the next start
	announced int64                          // how many of the changes that the upstream announced are in the lists
	stderr    *child.Stderr                  // of the child of the session; nil without one
	changed   chan struct{}                  // closed when a newer Upstream replaces this one
}

// NewUpstream returns an upstream of mcpx itself. It is always ready and has no upstream
// session: the executor handles its calls.
func NewUpstream(name string, tools []lists.Item) *Upstream {
	return &Upstream{Name: name, State: Ready, Lists: lists.WithTools(tools)}
}

// LatestStderr returns the last lines that the process of the shared session wrote to
// stderr, redacted; if there is no upstream session, those before the last failure. Lines of
// per-client processes are only for their clients.
func (u *Upstream) LatestStderr() []string {
	if u.Session == nil {
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
// change its lists. After a failure the call need not wait, unless nothing may be used that the
// views have not seen.
func (u *Upstream) NeedsStart() bool {
	return (u.isStale || u.IsStrict()) && (u.State == Idle || u.State == Starting || u.State == Waiting)
}

// MayStart reports whether a call can start the upstream.
func (u *Upstream) MayStart() bool {
	return slices.Contains([]State{Idle, Waiting, NeedsSignIn, NeedsAccess}, u.State)
}

// IsListed reports whether the upstream's lists are known, and it can be ready again.
func (u *Upstream) IsListed() bool {
	return !u.ListedAt.IsZero() && u.State != Failed && u.State != Stopped
}

// Has reports whether the upstream declared a capability.
func (u *Upstream) Has(capability string) bool {
	return !rawjson.IsNull(rawjson.Get(u.Capabilities, capability))
}

// ListsPerOwner reports whether each upstream session with an owner has its own lists. With
// isolation "client", all clients see the lists of the shared session, unless the views are
// strict: they must see the lists of every upstream session.
func (u *Upstream) ListsPerOwner() bool { return u.Config != nil && listsPerOwner(u.Config, u.Views()) }

// listsPerOwner is ListsPerOwner for a config and its views.
func listsPerOwner(c *config.Upstream, v lists.Views) bool {
	return c.Isolation == config.PerUser || c.Isolation == config.PerClient && v.IsStrict
}

// Inherit sets the lists to those of another upstream with the same views, until its own are
// read. The instructions of an open upstream session stay.
func (u *Upstream) Inherit(base *Upstream) {
	instructions := u.SentInstructions()
	u.Lists, u.ListedAt, u.isStale = base.With(u.Config), base.ListedAt, true
	if u.Session != nil {
		u.SetInstructions(instructions)
	}
}

// Apply changes the config of an upstream that keeps its session.
func (u *Upstream) Apply(c *config.Upstream) {
	c.KeepHiding(u.Config)
	u.Config, u.Description = c, c.Description
	u.Reconfigure(c, u.Supervisor.group.views(c))
}

// Changed returns a channel that is closed when a newer Upstream replaces this one.
func (u *Upstream) Changed() <-chan struct{} { return u.changed }

// Superseded waits until a newer Upstream replaces this one.
func (u *Upstream) Superseded(ctx context.Context) error {
	select {
	case <-u.changed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Restrict returns the part of an upstream that the rules grant. It is the same value for
// each call, with everything derived from it. What an upstream writes to stderr while it works
// may name any tool, so only those see it who see all tools.
func (u *Upstream) Restrict(profile string, rules policy.Rules) *Upstream {
	if part := u.parts.Load(rules); part != nil {
		return part
	}
	part := *u
	part.parts = new(Kept[policy.Rules, *Upstream])
	part.Lists = u.Lists.Restrict(profile, u.Name, rules)
	extent := rules.Extent(profile, u.Name)
	part.ToolsOnly = extent < policy.AllButSomeTools
	if part.ToolsOnly {
		part.Capabilities = nil
	}
	if extent < policy.Everything {
		part.stderr = nil
	}
	u.parts.Store(rules, &part)
	return &part
}

// KeepsRoots reports whether the upstream requests roots when there is no call, and so
// probably keeps them.
func (u *Upstream) KeepsRoots() bool { return u.Session != nil && u.Session.KeepsRoots() }

// MaxKept is the most values that a Kept holds.
const MaxKept = 256

// Kept is a bounded cache of values that can be computed again. When it is full, it drops all
// of them. The zero Kept is empty. The methods may be called concurrently.
type Kept[K comparable, V any] struct {
	mu     sync.Mutex
	values map[K]V
}

// Load returns a value; the zero V if there is none.
func (k *Kept[K, V]) Load(key K) V {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.values[key]
}

// Store adds a value.
func (k *Kept[K, V]) Store(key K, value V) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.values == nil || len(k.values) >= MaxKept {
		k.values = map[K]V{}
	}
	k.values[key] = value
}

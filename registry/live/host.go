// Package live runs one upstream: a Supervisor starts it, opens its upstream session, reads
// its lists, and starts it again when it fails. An Upstream is its state at one moment. The
// registry, its Host, handles everything that several upstreams or clients share.
package live

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/listcache"
	"mcpx/registry/child"
	"mcpx/registry/lists"
	"mcpx/registry/upstream"
)

// Host is the registry, as a Supervisor and its upstream sessions see it. Its methods may
// be called concurrently.
type Host interface {
	// Publish changes the state of the supervisor's upstream with s.Change, and shows the new
	// state to clients.
	Publish(s *Supervisor, change func(u *Upstream))
	// ListsChanged notifies clients of changed lists, by their capabilities. It does not wait.
	ListsChanged(capabilities ...string)
	// Opened prepares a new upstream session before clients can use it. The Supervisor calls
	// ready once they can.
	Opened(s *Session, capabilities []byte) (ready func())
	// HasUsers reports whether clients need an upstream session even without calls.
	HasUsers(s *Session) bool
	// Notified handles a notification of the upstream, except for those about lists. to are
	// its recipients.
	Notified(s *Session, method string, params []byte, to []upstream.Client)
	// Record receives each message of an upstream session, except for mcpx's responses.
	Record(s *Session, d upstream.Direction, message []byte)
	// OnlyClient, LogLevel and Subscriptions are those of upstream.Host for one
	// session.
	OnlyClient(s *Session) upstream.Client
	LogLevel() string
	Subscriptions(s *Session) []string
}

// Options configure a registry and its supervisors.
type Options struct {
	Log            zerolog.Logger
	Version        string // of mcpx, for initialize
	MessageBytes   int    // the largest message an upstream may send
	ConnectsAtOnce int
	PingEvery      time.Duration    // of idle network sessions; 0: the default of package upstream
	Watcher        *child.Watcher   // ends the children if mcpx is killed; may be nil
	Cache          *listcache.Cache // the lists on disk; nil: none
	// Account returns the account for an upstream, nil if it needs none; may be nil.
	Account func(u *config.Upstream) Account
	// SignIn returns how a person signs in to an upstream, with these scopes in addition; may
	// be nil.
	SignIn func(u *config.Upstream, scopes []string) string
	// Views returns the views of an upstream's lists; may be nil. It is called for each upstream
	// of a profile when the registry gets the profile, and must not wait.
	Views        func(u *config.Upstream) lists.Views
	ListObserver func() ListObserver // returns the observer of a supervisor; may be nil
	Compile      func(t *lists.Tool) // prepares a tool that was listed, in the background; may be nil
}

// Group has the limits and settings that the supervisors of a registry share.
type Group struct {
	host    Host
	options Options
	ctx     context.Context // ends when all upstreams stop

	slots       *slots        // for upstreams that start
	fills       chan struct{} // holds one for each upstream that runs only to fill the cache
	cacheWarned atomic.Bool   // that lists cannot be saved is logged as a warning once
}

// NewGroup returns a Group that ends with ctx.
func NewGroup(ctx context.Context, h Host, o Options) *Group {
	o.ConnectsAtOnce = max(o.ConnectsAtOnce, 1)
	return &Group{
		host: h, options: o, ctx: ctx,
		slots: newSlots(o.ConnectsAtOnce), fills: make(chan struct{}, o.ConnectsAtOnce),
	}
}

// views returns the views of an upstream's lists.
func (g *Group) views(c *config.Upstream) lists.Views {
	if g.options.Views == nil {
		return lists.Views{}
	}
	return g.options.Views(c)
}

// Package registry knows all upstreams of a profile and the clients that use them: which
// upstreams there are, what a client sees of them, which upstream session carries its
// requests, and what it has subscribed to. Package live runs each upstream.
package registry

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/tasks"
	"mcpx/registry/live"
)

// Registry holds the upstreams of one profile.
type Registry struct {
	Tracer Tracer // records spans of requests; nil: none; set before the first request

	profile string // the name of the profile
	log     zerolog.Logger
	catalog atomic.Pointer[Catalog]
	changed live.Changes // lists that clients must be notified of
	clients clients
	owned   ownedUpstreams
	group   *live.Group     // of the supervisors
	records records         // messages that somebody watches
	tasks   tasks.Group     // the supervisors
	ctx     context.Context // ends when Run does
	stop    context.CancelFunc

	mu           sync.Mutex                  // one change of the catalog at a time
	supervisors  map[string]*live.Supervisor // of the upstreams in the catalog, by name
	replacements map[string]*live.Supervisor // of changed upstreams, until they have started
	isRunning    bool
}

// Options are what a Registry needs besides its profile.
type Options = live.Options

// New returns a Registry of the profile's upstreams, none of them started.
func New(profile *config.Profile, o Options) *Registry {
	r := &Registry{
		profile:      profile.Name,
		log:          o.Log,
		changed:      live.NewChanges(),
		clients:      clients{attached: map[string]*attached{}, subscribed: map[sessionKey]map[string]*subscription{}},
		records:      records{byServer: map[string]*record{}},
		owned:        ownedUpstreams{byKey: map[sessionKey]*ownedUpstream{}},
		supervisors:  map[string]*live.Supervisor{},
		replacements: map[string]*live.Supervisor{},
	}
	r.ctx, r.stop = context.WithCancel(context.Background())
	r.group = live.NewGroup(r.ctx, r, o)
	r.catalog.Store(&Catalog{})
	r.Apply(profile)
	return r
}

// Run starts the upstreams and restarts those that fail, until ctx ends. It returns when
// all of them are stopped and no child is left.
func (r *Registry) Run(ctx context.Context) error {
	defer context.AfterFunc(ctx, r.stop)()
	r.mu.Lock()
	r.isRunning = true
	for _, s := range r.supervisors {
		r.start(s)
	}
	r.mu.Unlock()
	r.announce(r.ctx)
	r.tasks.Close()
	return nil
}

// Done is closed when the upstreams stop for good.
func (r *Registry) Done() <-chan struct{} { return r.ctx.Done() }

// Catalog returns the current catalog.
func (r *Registry) Catalog() *Catalog { return r.catalog.Load() }

// Settled is View.Settled for mcpx itself.
func (r *Registry) Settled(ctx context.Context, name string) *live.Upstream {
	return r.For(nil).Settled(ctx, name)
}

// SettleAll waits until no upstream is in its first start, or until the timeout.
func (r *Registry) SettleAll(ctx context.Context, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for _, u := range r.Catalog().Upstreams {
		if u.InFirstStart() {
			r.Settled(ctx, u.Name)
		}
	}
}

// Catalog is the state of a profile's upstreams at one moment, with their lists. It is
// immutable: a new catalog replaces it.
type Catalog struct {
	Upstreams []*live.Upstream // in config order
	byName    map[string]*live.Upstream
	perOwner  []*live.Upstream // with lists per owner
	derived   sync.Map         // see Derived
	views     live.Kept[viewKey, *Catalog]
}

// newCatalog returns a catalog of these upstreams.
func newCatalog(upstreams []*live.Upstream) *Catalog {
	c := &Catalog{Upstreams: upstreams, byName: make(map[string]*live.Upstream, len(upstreams))}
	for _, u := range upstreams {
		c.byName[u.Name] = u
		if u.ListsPerOwner() {
			c.perOwner = append(c.perOwner, u)
		}
	}
	return c
}

// Derived returns a value that a user of the registry derives from the catalog, by its key.
// It lives as long as the catalog, and may be made twice.
func (c *Catalog) Derived(key any, from func(c *Catalog) any) any {
	if value, ok := c.derived.Load(key); ok {
		return value
	}
	value, _ := c.derived.LoadOrStore(key, from(c))
	return value
}

// Upstream finds an upstream by its exact name, nil if there is none.
func (c *Catalog) Upstream(name string) *live.Upstream { return c.byName[name] }

// with returns the catalog with one upstream replaced.
func (c *Catalog) with(u *live.Upstream) *Catalog {
	upstreams := slices.Clone(c.Upstreams)
	for i, old := range upstreams {
		if old.Name == u.Name {
			upstreams[i] = u
		}
	}
	return newCatalog(upstreams)
}
